//! Texts of the Streams operations.

use zenobe_engine::error::StreamError;

use super::texts;
use crate::error::ApiError;

pub(crate) fn stream_error(error: StreamError, arn: &str, shard: &str) -> ApiError {
    match error {
        StreamError::NotFound => not_found(arn),
        StreamError::ShardNotFound => shard_not_found(shard, arn),
        StreamError::SequenceNumberNotInShard => sequence_number_not_in_shard(),
        StreamError::TimestampInFuture => timestamp_in_future(),
        StreamError::Trimmed => trimmed(),
        StreamError::PositionExpired => iterator_expired(),
    }
}

texts! {
    Validation, "" => {
        invalid_arn(arn: &str) "Invalid StreamArn: {arn}";
        invalid_iterator() "Invalid ShardIterator";
        invalid_sequence_number(number: &str) "Invalid SequenceNumber: {number}";
        sequence_number_required(iterator_type: &str)
            "SequenceNumber is required for ShardIteratorType {iterator_type}";
        sequence_number_unexpected(iterator_type: &str)
            "SequenceNumber must not be specified for ShardIteratorType {iterator_type}";
        timestamp_required() "Timestamp is required for ShardIteratorType AT_TIMESTAMP";
        timestamp_unexpected(iterator_type: &str)
            "Timestamp must not be specified for ShardIteratorType {iterator_type}";
        sequence_number_not_in_shard()
            "Invalid SequenceNumber: it is not within the range of the shard";
        timestamp_in_future() "Timestamp must not be in the future";
    }
    ResourceNotFound, "Requested resource not found: " => {
        not_found(arn: &str) "Stream: {arn} not found";
        shard_not_found(shard: &str, arn: &str) "Shard: {shard} in Stream: {arn} not found";
    }
    TrimmedDataAccess, "" => {
        trimmed()
            "The operation attempted to read past the oldest stream record in a shard.";
    }
    ExpiredIterator, "" => {
        iterator_expired() "The provided iterator exceeds the maximum age allowed.";
    }
}
