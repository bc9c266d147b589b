//! GetShardIterator.

use zenobe_engine::command::IteratorStart;
use zenobe_engine::streams::SequenceNumber;

use super::stream_input::{constrain_shard_id, encode_iterator, required_arn, stream_name, worded};
use crate::constraints::{Enumeration, Violations};
use crate::error::ApiError;
use crate::json::decode::{Decode, JsonError, JsonPosition, TypeFault, request, shape};
use crate::json::{JsonReader, Kind, Writer};
use crate::messages::stream;
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input = check(request(body)?)?;
    let stream = stream_name(context, &input.arn)?;
    let start = input.start()?;
    let position = context
        .engine
        .shard_iterator(&stream, &input.shard, start)
        .await
        .map_err(|error| worded(error, &input.arn, &input.shard))?;
    let mut writer = Writer::new();
    writer.object(|writer| writer.name("ShardIterator").string(&encode_iterator(&position)));
    Ok(Reply(writer.finish()))
}

shape! {
    struct GetShardIteratorInput {
        "StreamArn" => stream_arn: String,
        "ShardId" => shard_id: String,
        "ShardIteratorType" => shard_iterator_type: String,
        "SequenceNumber" => sequence_number: String,
        "Timestamp" => timestamp: WireTimestamp,
    }
}

/// Seconds since the epoch, possibly with a fraction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WireTimestamp {
    pub(crate) at_ms: u64,
}

impl Decode for WireTimestamp {
    fn collection_type() -> String {
        "class java.util.Date".to_owned()
    }

    fn decode(reader: &mut JsonReader<'_>, _: JsonPosition) -> Result<Self, JsonError> {
        match reader.peek()? {
            Kind::Integer | Kind::Decimal => {
                let seconds = reader.number()?.parse::<f64>().unwrap_or_default();
                Ok(WireTimestamp { at_ms: whole_ms(seconds) })
            }
            Kind::Object => Err(TypeFault::StructureNotExpected.into()),
            Kind::Array => {
                let expected = Self::collection_type();
                Err(TypeFault::CollectionNotExpected { expected }.into())
            }
            given => Err(TypeFault::NotConvertible { given, target: "Timestamp" }.into()),
        }
    }
}

/// The millisecond that a time falls into: an export of a time must not show what happened later. Whole milliseconds stay what they are,
/// although few of them are whole fractions of a second in binary.
fn whole_ms(seconds: f64) -> u64 {
    // The conversion saturates at both ends of the range.
    (seconds * 1_000.0 + 0.000_5).floor() as u64
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IteratorType {
    AtSequenceNumber,
    AfterSequenceNumber,
    TrimHorizon,
    Latest,
    AtTimestamp,
}

static SHARD_ITERATOR_TYPE: Enumeration<IteratorType> = Enumeration(&[
    ("AFTER_SEQUENCE_NUMBER", IteratorType::AfterSequenceNumber),
    ("LATEST", IteratorType::Latest),
    ("AT_TIMESTAMP", IteratorType::AtTimestamp),
    ("AT_SEQUENCE_NUMBER", IteratorType::AtSequenceNumber),
    ("TRIM_HORIZON", IteratorType::TrimHorizon),
]);

/// A request that passed its constraints.
struct Constrained {
    arn: String,
    shard: String,
    iterator_type: IteratorType,
    sequence_number: Option<String>,
    timestamp: Option<WireTimestamp>,
}

fn check(input: GetShardIteratorInput) -> Result<Constrained, ApiError> {
    let mut violations = Violations::new();
    let arn = required_arn(input.stream_arn, "streamArn", &mut violations);
    constrain_shard_id(input.shard_id.as_deref(), "shardId", &mut violations);
    let shard = violations.required(input.shard_id, "shardId");
    let iterator_type = violations.required_enumeration(
        input.shard_iterator_type.as_deref(),
        "shardIteratorType",
        &SHARD_ITERATOR_TYPE,
    );
    if let Some(number) = &input.sequence_number {
        violations.length(number, "sequenceNumber", 21, 40);
    }
    violations.finish()?;
    Ok(Constrained {
        arn,
        shard,
        iterator_type: iterator_type.unwrap_or(IteratorType::Latest),
        sequence_number: input.sequence_number,
        timestamp: input.timestamp,
    })
}

impl Constrained {
    /// Some types require a sequence number or a time; the others must not have them.
    fn start(&self) -> Result<IteratorStart, ApiError> {
        let name = SHARD_ITERATOR_TYPE.name_of(&self.iterator_type);
        let by_time = self.iterator_type == IteratorType::AtTimestamp;
        if self.timestamp.is_some() && !by_time {
            return Err(stream::timestamp_unexpected(name));
        }
        let by_number = matches!(
            self.iterator_type,
            IteratorType::AtSequenceNumber | IteratorType::AfterSequenceNumber
        );
        if self.sequence_number.is_some() && !by_number {
            return Err(stream::sequence_number_unexpected(name));
        }
        Ok(match self.iterator_type {
            IteratorType::TrimHorizon => IteratorStart::TrimHorizon,
            IteratorType::Latest => IteratorStart::Latest,
            IteratorType::AtSequenceNumber => IteratorStart::At(self.number(name)?),
            IteratorType::AfterSequenceNumber => IteratorStart::After(self.number(name)?),
            IteratorType::AtTimestamp => {
                let WireTimestamp { at_ms } =
                    self.timestamp.ok_or_else(stream::timestamp_required)?;
                IteratorStart::AtTimestamp { at_ms }
            }
        })
    }

    fn number(&self, iterator_type: &str) -> Result<SequenceNumber, ApiError> {
        let number = self.sequence_number.as_deref();
        let number = number.ok_or_else(|| stream::sequence_number_required(iterator_type))?;
        number.parse().map_err(|_| stream::invalid_sequence_number(number))
    }
}

#[cfg(test)]
mod tests {
    use super::whole_ms;

    #[test]
    fn times_fall_into_their_millisecond() {
        assert_eq!(whole_ms(1_795_063_270.468_6), 1_795_063_270_468);
        assert_eq!(whole_ms(1_795_063_270.468_999), 1_795_063_270_468);
        for at_ms in (1_795_063_270_000..1_795_063_280_000).chain([0, 1, 999, 4_102_444_800_001]) {
            assert_eq!(whole_ms(at_ms as f64 / 1_000.0), at_ms);
        }
        assert_eq!((whole_ms(-1.0), whole_ms(f64::INFINITY)), (0, u64::MAX));
    }
}
