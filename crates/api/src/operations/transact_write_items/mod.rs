//! TransactWriteItems.

mod action;
mod digest;
mod wire;

use std::sync::Arc;

use zenobe_engine::command::{
    TransactAction, TransactWrite, TransactWriteOutcome, TransactionToken,
};
use zenobe_engine::error::Error;

use self::action::ConstrainedAction;
use self::wire::{TransactWriteItem, TransactWriteItemsInput, WireAction};
use crate::constraints::{Violations, printed_list};
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::request;
use crate::messages::constraint::java_object;
use crate::messages::engine::transaction_cancelled;
use crate::messages::transaction;
use crate::parameters::returns::ItemsWriteReturns;
use crate::render::{TableArns, write_consumed_list_member, write_item_collections_member};
use crate::{Context, Reply};

pub(crate) const ACTIONS_MAX: usize = 100;
pub(crate) const TOKEN_LENGTH_MAX: usize = 36;
/// The largest total size of a transaction's data.
pub(crate) const PAYLOAD_SIZE_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: TransactWriteItemsInput = request(body)?;
    let constrained = constrained(input)?;
    let token = constrained.token(context);
    let returns = constrained.returns;
    let arns = constrained.table_arns();
    let (actions, shown) = constrained.lowered(context, body.len())?;
    let command = TransactWrite { token, actions };
    let outcome = context.engine.transact_write(command).await.map_err(|error| match error {
        Error::TransactionCancelled(reasons) => {
            transaction_cancelled(reasons, |position| shown.get(position).is_some_and(|it| *it))
        }
        error => context.items(error),
    })?;
    Ok(render(&arns, &outcome, returns))
}

/// A request that passed the API model's constraints.
struct Constrained {
    /// The actions of each element, which should have exactly one.
    elements: Vec<Vec<ConstrainedAction>>,
    client_request_token: Option<String>,
    returns: ItemsWriteReturns,
}

fn constrained(input: TransactWriteItemsInput) -> Result<Constrained, ApiError> {
    let mut violations = Violations::new();
    let returns = ItemsWriteReturns::parse(
        input.return_consumed_capacity.as_deref(),
        input.return_item_collection_metrics.as_deref(),
        &mut violations,
    );
    if let Some(token) = &input.client_request_token {
        violations.length(token, "clientRequestToken", 1, TOKEN_LENGTH_MAX);
    }
    let given = input.transact_items.is_some();
    let items = violations.required(input.transact_items, "transactItems");
    if given {
        let print = || printed_list(&items, |_| java_object("TransactWriteItem"));
        violations.count(items.len(), "transactItems", 1, ACTIONS_MAX, print);
    }
    let mut element = |(position, item): (usize, TransactWriteItem)| {
        let path = format!("transactItems.{}.member", position + 1);
        let actions: Vec<WireAction> = item.into_actions();
        actions.into_iter().map(|action| action.constrained(&path, &mut violations)).collect()
    };
    let elements = items.into_iter().enumerate().map(&mut element).collect();
    violations.finish()?;
    Ok(Constrained { elements, client_request_token: input.client_request_token, returns })
}

impl Constrained {
    /// The token covers the actions, not what else the request wants returned.
    fn token(&self, context: &Context<'_>) -> Option<TransactionToken> {
        let token = self.client_request_token.clone()?;
        let actions = self.elements.iter().flatten().map(ConstrainedAction::wire);
        Some(TransactionToken {
            namespace: Arc::clone(context.namespace),
            token,
            parameters_digest: digest::of(actions),
        })
    }

    fn table_arns(&self) -> TableArns {
        let actions = self.elements.iter().flatten();
        TableArns::among(actions.filter_map(|action| action.wire().table_name.as_deref()))
    }

    /// The actions, and which of them want the item returned if their condition fails.
    fn lowered(
        self,
        context: &Context<'_>,
        request_size_bytes: usize,
    ) -> Result<(Vec<TransactAction>, Vec<bool>), ApiError> {
        let payload_size_bytes = self.payload_size_bytes(request_size_bytes);
        if self.elements.iter().any(|element| element.len() != 1) {
            return Err(transaction::not_one_action());
        }
        // Checked before binding, which takes memory in proportion.
        if payload_size_bytes > PAYLOAD_SIZE_BYTES_MAX {
            return Err(transaction::payload_too_large());
        }
        let mut actions = Vec::with_capacity(self.elements.len());
        let mut shown = Vec::with_capacity(self.elements.len());
        for action in self.elements.into_iter().flatten() {
            shown.push(action.item_on_failure);
            actions.push(action.lowered(context, request_size_bytes)?);
        }
        Ok((actions, shown))
    }

    /// The JSON is never smaller than its data, so small requests need no measuring.
    fn payload_size_bytes(&self, request_size_bytes: usize) -> usize {
        if request_size_bytes <= PAYLOAD_SIZE_BYTES_MAX {
            return request_size_bytes;
        }
        self.elements.iter().flatten().map(|action| action.wire().payload_size_bytes()).sum()
    }
}

fn render(arns: &TableArns, outcome: &TransactWriteOutcome, returns: ItemsWriteReturns) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| {
        let consumed = outcome.consumed.iter().map(|one| (arns.shown(&one.table), one));
        write_consumed_list_member(writer, consumed, returns.capacity);
        if returns.collection_metrics {
            let collections = outcome.collections.iter();
            let named = collections.map(|(table, collection)| (arns.shown(table), collection));
            write_item_collections_member(writer, named);
        }
    });
    Reply(writer.finish())
}
