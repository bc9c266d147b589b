//! Texts about Kinesis streaming destinations.

use super::{INVALID, texts};

/// The prefix for faults of a destination's state, whatever the operation.
const STATE: &str = "Table is not in a valid state to enable Kinesis Streaming Destination: ";

texts! {
    Validation, STATE => {
        not_active_to_disable()
            "KinesisStreamingDestination must be ACTIVE to perform DISABLE operation.";
        not_active_to_update(table: &str, stream: &str) "Kinesis streaming is not in ACTIVE state. \
            Updates are only allowed in ACTIVE state. TableName: {table}, kdsArn: {stream}";
    }
    Validation, "" => {
        nothing_to_update() "Streaming destination cannot be updated with given parameters: \
            UpdateKinesisStreamingConfiguration cannot be null or contain only null values";
        configuration_while_disabling()
            "Stream cannot be disabled using EnableKinesisStreamingConfiguration parameters";
    }
    // These two texts are our own: DynamoDB looks for the stream only after it has responded.
    Validation, INVALID => {
        invalid_stream_arn(arn: &str) "Invalid Kinesis stream ARN: {arn}";
    }
    ResourceNotFound, "Requested resource not found: " => {
        stream_not_found(arn: &str)
            "Kinesis stream: {arn} not found. Zenobe has no Kinesis to stream to";
    }
}
