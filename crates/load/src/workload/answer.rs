//! Reads the few parts of a response that matter. It finds them by name, because parsing megabytes
//! of pages would make the generator the bottleneck.

/// The fields of a page besides its items are close to its start or its end.
const EDGE_BYTES: usize = 512;

/// The name under which a batch with unprocessed items is counted.
pub const UNPROCESSED: &str = "(unprocessed items)";

/// Whether an error asks to slow down.
pub fn is_throttling(name: &str) -> bool {
    matches!(
        name,
        "ProvisionedThroughputExceededException"
            | "ThrottlingException"
            | "RequestLimitExceeded"
            | UNPROCESSED
    )
}

/// How many items a page of Query or Scan holds.
pub fn item_count(body: &[u8]) -> Option<u64> {
    let name = br#""Count":"#;
    let head = &body[..body.len().min(EDGE_BYTES / 4)];
    let tail = &body[body.len().saturating_sub(EDGE_BYTES / 4)..];
    let rest = after(head, name).or_else(|| after_last(tail, name))?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// The object after `"LastEvaluatedKey":` of a page of our own items.
pub fn last_evaluated_key(body: &[u8]) -> Option<&[u8]> {
    let name = br#""LastEvaluatedKey":"#;
    let tail = &body[body.len().saturating_sub(EDGE_BYTES)..];
    let head = &body[..body.len().min(EDGE_BYTES)];
    object(after_last(tail, name).or_else(|| after(head, name))?)
}

/// The object with the unprocessed items of a batch, if there are any.
pub fn unprocessed(body: &[u8]) -> Option<&[u8]> {
    let found = after_last(body, br#""UnprocessedItems":"#)
        .or_else(|| after_last(body, br#""UnprocessedKeys":"#))?;
    object(found).filter(|object| object.contains(&b':'))
}

/// The name of the exception in an error response, such as `ThrottlingException`.
pub fn error_name(body: &[u8]) -> Option<&str> {
    let kind = std::str::from_utf8(text(after(body, br#""__type":"#)?)?).ok()?;
    kind.rsplit('#').next()
}

pub fn error_message(body: &[u8]) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    let message = answer.get("message").or_else(|| answer.get("Message"))?;
    message.as_str().map(str::to_owned)
}

fn after<'a>(haystack: &'a [u8], needle: &[u8]) -> Option<&'a [u8]> {
    let at = haystack.windows(needle.len()).position(|window| window == needle)?;
    Some(haystack[at + needle.len()..].trim_ascii_start())
}

fn after_last<'a>(haystack: &'a [u8], needle: &[u8]) -> Option<&'a [u8]> {
    let at = haystack.windows(needle.len()).rposition(|window| window == needle)?;
    Some(haystack[at + needle.len()..].trim_ascii_start())
}

/// The string at the start, up to its closing quote.
fn text(from: &[u8]) -> Option<&[u8]> {
    let rest = from.strip_prefix(b"\"")?;
    rest.iter().position(|&byte| byte == b'"').map(|end| &rest[..end])
}

/// The object at the start. Strings inside it hold no braces or quotes, because the generator wrote
/// them.
fn object(from: &[u8]) -> Option<&[u8]> {
    let mut depth = 0u32;
    for (index, byte) in from.iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => return None,
            _ => (),
        }
        if depth == 0 {
            return Some(&from[..=index]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_and_last_key_of_a_page_are_found_anywhere() {
        let items = format!(r#""Items":[{}]"#, vec![r#"{"pk":{"S":"a"}}"#; 500].join(","));
        let key = r#"{"pk":{"S":"user#1"}}"#;
        for body in [
            format!(r#"{{"Count":500,"ScannedCount":501,"LastEvaluatedKey":{key},{items}}}"#),
            format!(r#"{{{items},"Count":500,"ScannedCount":501,"LastEvaluatedKey":{key}}}"#),
            format!(r#"{{"Count":500,{items},"LastEvaluatedKey": {key},"ScannedCount":501}}"#),
        ] {
            assert_eq!(item_count(body.as_bytes()), Some(500));
            assert_eq!(last_evaluated_key(body.as_bytes()), Some(key.as_bytes()));
        }
        let last = format!(r#"{{{items},"Count":500,"ScannedCount":501}}"#);
        assert_eq!(last_evaluated_key(last.as_bytes()), None);
        for body in ["", "{}", "xxxx", r#"{"LastEvaluatedKey":{"pk"#] {
            assert_eq!(item_count(body.as_bytes()), None);
            assert_eq!(last_evaluated_key(body.as_bytes()), None);
        }
    }

    #[test]
    fn unprocessed_items_of_a_batch_are_found() {
        let none = br#"{"UnprocessedItems":{}}"#;
        assert_eq!(unprocessed(none), None);
        let some = br#"{"UnprocessedItems":{"t":[{"PutRequest":{}}]},"ConsumedCapacity":[]}"#;
        assert_eq!(unprocessed(some), Some(br#"{"t":[{"PutRequest":{}}]}"#.as_slice()));
        let keys = br#"{"Responses":{"t":[]},"UnprocessedKeys":{"t":{"Keys":[]}}}"#;
        assert_eq!(unprocessed(keys), Some(br#"{"t":{"Keys":[]}}"#.as_slice()));
        assert_eq!(unprocessed(b"fixed"), None);
    }

    #[test]
    fn exceptions_are_named_without_their_namespace() {
        let body = br#"{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slow"}"#;
        assert_eq!(error_name(body), Some("ThrottlingException"));
        assert_eq!(error_message(body).as_deref(), Some("slow"));
        assert_eq!(
            error_name(br#"{"__type":"com.amazon.coral.validate#ValidationException"}"#),
            Some("ValidationException")
        );
        assert_eq!(error_name(b"<html>"), None);
    }
}
