//! Response structures that several operations share.

mod consumed_capacity;
mod item_collection;
mod item_responses;
mod table_arns;
mod table_description;
mod write_outcome;

pub(crate) use consumed_capacity::{
    write_batch_consumed_member, write_consumed_list_member, write_consumed_member,
    write_transaction_consumed_member,
};
pub(crate) use item_collection::{write_item_collection, write_item_collections_member};
pub(crate) use item_responses::write_item_responses_member;
pub(crate) use table_arns::TableArns;
pub(crate) use table_description::{
    Presentation, ShownWarmThroughput, write_deleted_table, write_features, write_key_schema,
    write_on_demand_maxima, write_table,
};
pub(crate) use write_outcome::{write_reply, write_reply_with_old};
