//! The operations on Kinesis streaming destinations. There is no Kinesis beside this server, so no
//! table ever has a destination. Describing, disabling or updating one fails as it does on DynamoDB
//! for such a table, and enabling one does not find the stream.

use zenobe_engine::command::TableName;

use super::enumerations::CREATION_TIME_PRECISION;
use super::stream_input::constrain_arn;
use crate::constraints::{TableNameRule, Violations};
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::kinesis;
use crate::{Context, Operation, Reply};

pub(crate) async fn describe(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: DescribeKinesisStreamingDestinationInput = request(body)?;
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    check_exists(context, &table).await?;
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("TableName").string(&table.name);
        writer.name("KinesisDataStreamDestinations").array::<()>([], |_, ()| {});
    });
    Ok(Reply(writer.finish()))
}

/// EnableKinesisStreamingDestination and DisableKinesisStreamingDestination, which share a shape.
pub(crate) async fn enable_or_disable(
    context: &Context<'_>,
    body: &[u8],
) -> Result<Reply, ApiError> {
    let input: KinesisStreamingDestinationInput = request(body)?;
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let mut violations = Violations::new();
    let stream = stream_arn(input.stream_arn, &mut violations);
    let configuration = input.enable_kinesis_streaming_configuration.unwrap_or_default();
    let precision = configuration.approximate_creation_date_time_precision;
    let path = "enableKinesisStreamingConfiguration.approximateCreationDateTimePrecision";
    violations.enumeration(precision.as_deref(), path, &CREATION_TIME_PRECISION);
    violations.finish()?;
    if context.operation == Operation::DisableKinesisStreamingDestination {
        if precision.is_some() {
            return Err(kinesis::configuration_while_disabling());
        }
        check_exists(context, &table).await?;
        return Err(kinesis::not_active_to_disable());
    }
    check_stream_arn(&stream)?;
    check_exists(context, &table).await?;
    Err(kinesis::stream_not_found(&stream))
}

pub(crate) async fn update(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: UpdateKinesisStreamingDestinationInput = request(body)?;
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let mut violations = Violations::new();
    let stream = stream_arn(input.stream_arn, &mut violations);
    let configuration = input.update_kinesis_streaming_configuration.unwrap_or_default();
    let precision = configuration.approximate_creation_date_time_precision;
    let path = "updateKinesisStreamingConfiguration.approximateCreationDateTimePrecision";
    violations.enumeration(precision.as_deref(), path, &CREATION_TIME_PRECISION);
    violations.finish()?;
    if precision.is_none() {
        return Err(kinesis::nothing_to_update());
    }
    check_exists(context, &table).await?;
    Err(kinesis::not_active_to_update(&table.name, &stream))
}

shape! {
    struct DescribeKinesisStreamingDestinationInput {
        "TableName" => table_name: String,
    }

    struct KinesisStreamingDestinationInput {
        "TableName" => table_name: String,
        "StreamArn" => stream_arn: String,
        "EnableKinesisStreamingConfiguration" => enable_kinesis_streaming_configuration:
            EnableKinesisStreamingConfiguration,
    }

    struct EnableKinesisStreamingConfiguration {
        "ApproximateCreationDateTimePrecision" => approximate_creation_date_time_precision: String,
    }

    struct UpdateKinesisStreamingDestinationInput {
        "TableName" => table_name: String,
        "StreamArn" => stream_arn: String,
        "UpdateKinesisStreamingConfiguration" => update_kinesis_streaming_configuration:
            UpdateKinesisStreamingConfiguration,
    }

    struct UpdateKinesisStreamingConfiguration {
        "ApproximateCreationDateTimePrecision" => approximate_creation_date_time_precision: String,
    }
}

/// The constraints of a `StreamArn` member. ARNs of Kinesis streams have the same length limits as
/// those of table streams.
fn stream_arn(arn: Option<String>, violations: &mut Violations) -> String {
    constrain_arn(arn.as_deref(), "streamArn", violations);
    violations.required(arn, "streamArn")
}

fn check_stream_arn(arn: &str) -> Result<(), ApiError> {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let names_stream = match parts[..] {
        ["arn", _, "kinesis", region, account, resource] => {
            let is_account =
                account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
            let name = resource.strip_prefix("stream/").unwrap_or_default();
            !region.is_empty() && is_account && !name.is_empty() && !name.contains('/')
        }
        _ => false,
    };
    if names_stream { Ok(()) } else { Err(kinesis::invalid_stream_arn(arn)) }
}

async fn check_exists(context: &Context<'_>, table: &TableName) -> Result<(), ApiError> {
    let found = context.engine.table(table).await;
    found.map(|_| ()).map_err(|error| context.table(&table.name, error))
}
