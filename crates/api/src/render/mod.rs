//! Response structures that several operations share.

mod table_description;

pub(crate) use table_description::{
    Presentation, WarmThroughput, write_deleted_table, write_table,
};
