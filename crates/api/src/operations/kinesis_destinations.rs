//! The operations on Kinesis streaming destinations. There is no Kinesis beside this server, so no
//! table ever has a destination. Describing, disabling or updating one fails as it does on DynamoDB
//! for such a table, and enabling one does not find the stream.

use zenobe_engine::command::TableName;

use super::enumerations::CREATION_TIME_PRECISION;
use super::stream_input::required_arn;
use crate::constraints::{TableNameRule, Violations};
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::kinesis;
use crate::{Context, Reply};

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

pub(crate) async fn enable(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let destination = Destination::enabled_or_disabled(context, body)?;
    check_stream_arn(&destination.stream)?;
    check_exists(context, &destination.table).await?;
    Err(kinesis::stream_not_found(&destination.stream))
}

pub(crate) async fn disable(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let destination = Destination::enabled_or_disabled(context, body)?;
    if destination.has_precision {
        return Err(kinesis::configuration_while_disabling());
    }
    check_exists(context, &destination.table).await?;
    Err(kinesis::not_active_to_disable())
}

pub(crate) async fn update(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: UpdateKinesisStreamingDestinationInput = request(body)?;
    let configuration = input.update_kinesis_streaming_configuration.unwrap_or_default();
    let destination = Destination::check(
        context,
        input.table_name.as_deref(),
        input.stream_arn,
        configuration.approximate_creation_date_time_precision.as_deref(),
        "updateKinesisStreamingConfiguration",
    )?;
    if !destination.has_precision {
        return Err(kinesis::nothing_to_update());
    }
    check_exists(context, &destination.table).await?;
    Err(kinesis::not_active_to_update(&destination.table.name, &destination.stream))
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

/// The table and the stream that a request names.
struct Destination {
    table: TableName,
    stream: String,
    has_precision: bool,
}

impl Destination {
    /// EnableKinesisStreamingDestination and DisableKinesisStreamingDestination share a shape.
    fn enabled_or_disabled(context: &Context<'_>, body: &[u8]) -> Result<Destination, ApiError> {
        let input: KinesisStreamingDestinationInput = request(body)?;
        let configuration = input.enable_kinesis_streaming_configuration.unwrap_or_default();
        Destination::check(
            context,
            input.table_name.as_deref(),
            input.stream_arn,
            configuration.approximate_creation_date_time_precision.as_deref(),
            "enableKinesisStreamingConfiguration",
        )
    }

    fn check(
        context: &Context<'_>,
        table_name: Option<&str>,
        stream_arn: Option<String>,
        precision: Option<&str>,
        configuration: &str,
    ) -> Result<Destination, ApiError> {
        let table = context.table_name(table_name, TableNameRule::Settings)?;
        let mut violations = Violations::new();
        // The ARN of a Kinesis stream may be as long as that of a table's stream.
        let stream = required_arn(stream_arn, "streamArn", &mut violations);
        let path = format!("{configuration}.approximateCreationDateTimePrecision");
        violations.enumeration(precision, &path, &CREATION_TIME_PRECISION);
        violations.finish()?;
        Ok(Destination { table, stream, has_precision: precision.is_some() })
    }
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
    let found = context.engine.current_table(table).await;
    found.map(|_| ()).map_err(|error| context.table(&table.name, error))
}
