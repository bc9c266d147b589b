//! UpdateContributorInsights, DescribeContributorInsights and ListContributorInsights.
//!
//! Nothing here takes time: an update's response says ENABLING or DISABLING as DynamoDB's does, and
//! the next request sees the settled status. The reports themselves are CloudWatch's on AWS; here
//! an admin request shows them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zenobe_engine::InsightsUpdate;
use zenobe_engine::command::{InsightsSummary, UpdateContributorInsights};
use zenobe_engine::schema::InsightsStatus;

use super::enumerations::{CONTRIBUTOR_INSIGHTS_ACTION, CONTRIBUTOR_INSIGHTS_MODE};
use crate::constraints::{TableNameRule, Violations, is_name_character};
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::insights::{RULE_LIMIT_DESCRIPTION, RULE_LIMIT_NAME};
use crate::messages::partiql::invalid_next_token;
use crate::{Context, Reply};

const RESULTS_MAX: i64 = 100;

pub(crate) async fn update(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let command = lower(context, request(body)?)?;
    let updated = context.engine.update_contributor_insights(&command).await;
    let InsightsUpdate { insights, is_changed } =
        updated.map_err(|error| context.table(&command.table.name, error))?;
    let status = match (command.enable, is_changed) {
        (true, true) => "ENABLING",
        (true, false) => "ENABLED",
        (false, true) => "DISABLING",
        (false, false) => "DISABLED",
    };
    let mut writer = Writer::new();
    writer.object(|writer| {
        write_names(writer, &command.table.name, command.index.as_deref());
        writer.name("ContributorInsightsStatus").string(status);
        if let Some(insights) = insights {
            let mode = CONTRIBUTOR_INSIGHTS_MODE.name_of(&insights.mode);
            writer.name("ContributorInsightsMode").string(mode);
        }
    });
    Ok(Reply(writer.finish()))
}

pub(crate) async fn describe(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: DescribeContributorInsightsInput = request(body)?;
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let index = input.index_name.as_deref();
    let mut violations = Violations::new();
    constrain_index(index, &mut violations);
    violations.finish()?;
    let described = context.engine.describe_contributor_insights(&table, index).await;
    let (insights, rules) = described.map_err(|error| context.table(&table.name, error))?;
    let mut writer = Writer::new();
    writer.object(|writer| {
        write_names(writer, &table.name, index);
        if !rules.is_empty() {
            let list = writer.name("ContributorInsightsRuleList");
            list.array(&rules, |writer, rule| writer.string(rule));
        }
        let status = insights.map_or(InsightsStatus::Disabled, |insights| insights.status);
        writer.name("ContributorInsightsStatus").string(name_of(status));
        let Some(insights) = insights else { return };
        writer.name("LastUpdateDateTime").timestamp(insights.changed_at_ms);
        if status == InsightsStatus::Failed {
            writer.name("FailureException").object(|writer| {
                writer.name("ExceptionName").string(RULE_LIMIT_NAME);
                writer.name("ExceptionDescription").string(RULE_LIMIT_DESCRIPTION);
            });
        }
        let mode = CONTRIBUTOR_INSIGHTS_MODE.name_of(&insights.mode);
        writer.name("ContributorInsightsMode").string(mode);
    });
    Ok(Reply(writer.finish()))
}

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
    let name = table.as_ref().map(|table| table.name.as_str());
    if let Some(table) = &table {
        let found = context.engine.table(table).await;
        found.map_err(|error| context.table(&table.name, error))?;
    }
    let start = input.next_token.as_deref().map(decode_token).transpose()?;
    // The model has no least value.
    let limit = input.max_results.and_then(|count| usize::try_from(count).ok());
    let limit = limit.filter(|limit| *limit > 0).unwrap_or(RESULTS_MAX as usize);
    let engine = context.engine;
    let page =
        engine.list_contributor_insights(context.namespace, name, start.as_ref(), limit).await;
    let page = page.map_err(|error| context.table(name.unwrap_or_default(), error))?;
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("ContributorInsightsSummaries").array(&page.summaries, write_summary);
        if let Some((table, index)) = &page.next {
            writer.name("NextToken").string(&encode_token(table, index.as_deref()));
        }
    });
    Ok(Reply(writer.finish()))
}

shape! {
    struct UpdateContributorInsightsInput {
        "TableName" => table_name: String,
        "IndexName" => index_name: String,
        "ContributorInsightsAction" => contributor_insights_action: String,
        "ContributorInsightsMode" => contributor_insights_mode: String,
    }

    struct DescribeContributorInsightsInput {
        "TableName" => table_name: String,
        "IndexName" => index_name: String,
    }

    struct ListContributorInsightsInput {
        "TableName" => table_name: String,
        "NextToken" => next_token: String,
        "MaxResults" => max_results: i32,
    }
}

fn lower(
    context: &Context<'_>,
    input: UpdateContributorInsightsInput,
) -> Result<UpdateContributorInsights, ApiError> {
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let mut violations = Violations::new();
    constrain_index(input.index_name.as_deref(), &mut violations);
    let action = violations.required_enumeration(
        input.contributor_insights_action.as_deref(),
        "contributorInsightsAction",
        &CONTRIBUTOR_INSIGHTS_ACTION,
    );
    let mode = violations.enumeration(
        input.contributor_insights_mode.as_deref(),
        "contributorInsightsMode",
        &CONTRIBUTOR_INSIGHTS_MODE,
    );
    violations.finish()?;
    Ok(UpdateContributorInsights {
        table,
        index: input.index_name,
        enable: action.unwrap_or_default(),
        mode: mode.unwrap_or_default(),
    })
}

fn constrain_index(index: Option<&str>, violations: &mut Violations) {
    if let Some(index) = index {
        violations.name(index, "indexName");
    }
}

fn name_of(status: InsightsStatus) -> &'static str {
    match status {
        InsightsStatus::Enabled => "ENABLED",
        InsightsStatus::Disabled => "DISABLED",
        InsightsStatus::Failed => "FAILED",
    }
}

fn write_names(writer: &mut Writer, table: &str, index: Option<&str>) {
    writer.name("TableName").string(table);
    if let Some(index) = index {
        writer.name("IndexName").string(index);
    }
}

fn write_summary(writer: &mut Writer, summary: &InsightsSummary) {
    writer.object(|writer| {
        write_names(writer, &summary.table, summary.index.as_deref());
        writer.name("ContributorInsightsStatus").string(name_of(summary.insights.status));
        let mode = CONTRIBUTOR_INSIGHTS_MODE.name_of(&summary.insights.mode);
        writer.name("ContributorInsightsMode").string(mode);
    });
}

/// A token names the table and the index that the page ended with. Names contain no slash.
fn encode_token(table: &str, index: Option<&str>) -> String {
    STANDARD.encode(format!("{table}/{}", index.unwrap_or_default()))
}

fn decode_token(token: &str) -> Result<(String, Option<String>), ApiError> {
    let bytes = STANDARD.decode(token).map_err(|_| invalid_next_token())?;
    let text = String::from_utf8(bytes).map_err(|_| invalid_next_token())?;
    let (table, index) = text.split_once('/').ok_or_else(invalid_next_token)?;
    let is_name = |name: &str| name.chars().all(is_name_character);
    if table.is_empty() || !is_name(table) || !is_name(index) {
        return Err(invalid_next_token());
    }
    Ok((table.to_owned(), Some(index.to_owned()).filter(|index| !index.is_empty())))
}
