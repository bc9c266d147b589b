//! Stream records as JSON: in responses of GetRecords, and in the events that functions receive.

use std::sync::Arc;

use zenobe_engine::command::{StreamEvent, StreamName, StreamRecord};
use zenobe_engine::schema::Namespace;

use crate::json::{Writer, write_item};
use crate::operations::enumerations::STREAM_VIEW_TYPE;
use crate::operations::get_records;
use crate::operations::stream_input::encode_iterator;
use crate::{Api, Operation, Response};

/// A page of GetRecords, not yet rendered as JSON.
#[derive(Debug)]
pub struct RecordsRead {
    pub stream: StreamName,
    pub records: Vec<StreamRecord>,
    /// The iterator for the next page; `None` at the end of a closed shard.
    pub next: Option<String>,
}

impl Api {
    /// GetRecords for callers in this process, which saves rendering and parsing the response. They
    /// get the same errors as a client.
    pub async fn read_records(
        &self,
        namespace: &Arc<Namespace>,
        iterator: &str,
        limit: usize,
    ) -> Result<RecordsRead, Response> {
        let operation = Operation::GetRecords;
        let context = self.context(operation, namespace);
        let (position, page) = get_records::read(&context, iterator, limit)
            .await
            .map_err(|error| self.worded(operation, error).into_response())?;
        let next = page.next.as_ref().map(encode_iterator);
        Ok(RecordsRead { stream: position.stream, records: page.records, next })
    }
}

/// The recipient of a record. The forms differ in two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordForm {
    /// A member of `Records` in the response of GetRecords.
    Api,
    /// A member of `Records` in the event that a Lambda function receives: it names its stream and
    /// spells the members of `userIdentity` in lower case.
    LambdaEvent,
}

/// Appends one record as a JSON object.
pub fn write_record(
    out: &mut Vec<u8>,
    stream: &StreamName,
    record: &StreamRecord,
    form: RecordForm,
) {
    let mut writer = Writer::new();
    write(&mut writer, stream, record, form);
    out.extend_from_slice(&writer.finish());
}

pub(crate) fn write(
    writer: &mut Writer,
    stream: &StreamName,
    record: &StreamRecord,
    form: RecordForm,
) {
    writer.object(|writer| {
        writer.name("eventID").string(&format!("{:032x}", record.id));
        writer.name("eventName").string(match record.event {
            StreamEvent::Insert => "INSERT",
            StreamEvent::Modify => "MODIFY",
            StreamEvent::Remove => "REMOVE",
        });
        writer.name("eventVersion").string("1.1");
        writer.name("eventSource").string("aws:dynamodb");
        writer.name("awsRegion").string(&stream.table.namespace.region);
        writer.name("dynamodb").object(|writer| write_change(writer, record));
        if record.by_service {
            let (principal, kind) = match form {
                RecordForm::Api => ("PrincipalId", "Type"),
                RecordForm::LambdaEvent => ("principalId", "type"),
            };
            writer.name("userIdentity").object(|writer| {
                writer.name(principal).string("dynamodb.amazonaws.com");
                writer.name(kind).string("Service");
            });
        }
        if form == RecordForm::LambdaEvent {
            writer.name("eventSourceARN").string(&stream.arn());
        }
    });
}

fn write_change(writer: &mut Writer, record: &StreamRecord) {
    // Whole seconds, as on DynamoDB.
    writer.name("ApproximateCreationDateTime").integer(record.created_at_ms / 1_000);
    write_item(writer.name("Keys"), record.keys.as_item());
    if let Some(image) = &record.new {
        write_item(writer.name("NewImage"), image.as_item());
    }
    if let Some(image) = &record.old {
        write_item(writer.name("OldImage"), image.as_item());
    }
    writer.name("SequenceNumber").string(&record.sequence_number.to_string());
    writer.name("SizeBytes").integer(record.size_bytes);
    writer.name("StreamViewType").string(STREAM_VIEW_TYPE.name_of(&record.view_type));
}

#[cfg(test)]
mod tests {
    use zenobe_engine::streams::sample_record;

    use super::*;

    #[test]
    fn the_two_forms_differ_in_two_places() {
        let (stream, record) = sample_record();
        let record = StreamRecord { created_at_ms: 5_999, ..record };
        let written = |form| {
            let mut out = Vec::new();
            write_record(&mut out, &stream, &record, form);
            String::from_utf8(out).unwrap()
        };
        let common = concat!(
            r#"{"eventID":"000000000000000000000000000000ab","eventName":"REMOVE","eventVersion":"1.1","#,
            r#""eventSource":"aws:dynamodb","awsRegion":"r","dynamodb":{"ApproximateCreationDateTime":5,"#,
            r#""Keys":{"pk":{"S":"\"a\""}},"OldImage":{"pk":{"S":"\"a\""}},"SequenceNumber":"100000000000000000007","#,
            r#""SizeBytes":6,"StreamViewType":"OLD_IMAGE"},"userIdentity":"#,
        );
        let identity = r#"{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}}"#;
        assert_eq!(written(RecordForm::Api), format!("{common}{identity}"));
        let identity = concat!(
            r#"{"principalId":"dynamodb.amazonaws.com","type":"Service"},"#,
            r#""eventSourceARN":"arn:aws:dynamodb:r:1:table/t/stream/l"}"#
        );
        assert_eq!(written(RecordForm::LambdaEvent), format!("{common}{identity}"));
    }
}
