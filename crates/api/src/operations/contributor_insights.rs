//! ListContributorInsights. Contributor Insights can't be enabled here, and DynamoDB lists only
//! those that are.

use crate::constraints::{TableNameRule, Violations};
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::partiql::invalid_next_token;
use crate::{Context, Reply};

const RESULTS_MAX: i64 = 100;

pub(crate) async fn list(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: ListContributorInsightsInput = request(body)?;
    let table = match input.table_name.as_deref() {
        Some(given) => Some(context.table_name(Some(given), TableNameRule::Settings)?),
        None => None,
    };
    let mut violations = Violations::new();
    if let Some(count) = input.max_results {
        violations.range(count.into(), "maxResults", i64::MIN, RESULTS_MAX);
    }
    violations.finish()?;
    if let Some(table) = table {
        let found = context.engine.table(&table).await;
        found.map_err(|error| context.table(&table.name, error))?;
    }
    if input.next_token.is_some() {
        // The first page is always the last, so no token is valid.
        return Err(invalid_next_token());
    }
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("ContributorInsightsSummaries").array::<()>([], |_, ()| {});
    });
    Ok(Reply(writer.finish()))
}

shape! {
    struct ListContributorInsightsInput {
        "TableName" => table_name: String,
        "NextToken" => next_token: String,
        "MaxResults" => max_results: i32,
    }
}
