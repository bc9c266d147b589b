use proptest::prelude::*;

use super::*;

/// Trees as requests have them: what every protocol can say.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Integer),
        // Numbers of few digits: serde_json reads others to within one unit of their last place.
        (any::<i32>(), -40..40)
            .prop_map(|(digits, power)| { Value::Float(f64::from(digits) * 2f64.powi(power / 4)) }),
        "[a-zA-Zé0-9 &=%+<>\"]{0,12}".prop_map(Value::Text),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let members = prop::collection::btree_map("[A-Z][a-z]{1,6}", inner.clone(), 0..4);
        let members = members.prop_map(|members| {
            Value::Structure(members.into_iter().map(|(name, it)| (name.into(), it)).collect())
        });
        prop_oneof![prop::collection::vec(inner, 0..4).prop_map(Value::List), members]
    })
}

/// As a form says it: everything is text, and an empty list or structure is an empty text.
fn as_form(name: &str, value: &Value, out: &mut Vec<(String, String)>) {
    let child =
        |step: &str| if name.is_empty() { step.to_owned() } else { format!("{name}.{step}") };
    match value {
        Value::List(list) if list.is_empty() => out.push((name.to_owned(), String::new())),
        Value::Structure(members) if members.is_empty() => {
            out.push((name.to_owned(), String::new()));
        }
        Value::List(list) => {
            for (position, element) in list.iter().enumerate() {
                as_form(&child(&format!("member.{}", position + 1)), element, out);
            }
        }
        Value::Structure(members) => {
            members.iter().for_each(|(step, value)| as_form(&child(step), value, out));
        }
        Value::Bool(flag) => out.push((name.to_owned(), flag.to_string())),
        Value::Integer(number) => out.push((name.to_owned(), number.to_string())),
        Value::Float(number) => out.push((name.to_owned(), number.to_string())),
        Value::Text(text) => out.push((name.to_owned(), text.clone())),
        other => unreachable!("{other:?}"),
    }
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// What is left of a tree in a form.
fn loose(value: &Value) -> Value {
    match value {
        Value::List(list) if list.is_empty() => Value::Form(String::new()),
        Value::Structure(members) if members.is_empty() => Value::Form(String::new()),
        Value::List(list) => Value::List(list.iter().map(loose).collect()),
        Value::Structure(members) => {
            Value::Structure(members.iter().map(|(name, it)| (name.clone(), loose(it))).collect())
        }
        Value::Bool(flag) => Value::Form(flag.to_string()),
        Value::Integer(number) => Value::Form(number.to_string()),
        Value::Float(number) => Value::Form(number.to_string()),
        Value::Text(text) => Value::Form(text.clone()),
        other => unreachable!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn cbor_survives_encoding(value in tree()) {
        prop_assert_eq!(cbor::decode(&cbor::encode(&value)), Ok(value));
    }

    #[test]
    fn times_survive_cbor(at_ms in -10_000_000_000_000..10_000_000_000_000_i64) {
        let value = Value::Timestamp(at_ms);
        prop_assert_eq!(cbor::decode(&cbor::encode(&value)), Ok(value));
    }

    #[test]
    fn json_survives_encoding(value in tree()) {
        let decoded = json::decode(&json::encode(&value));
        // JSON does not tell 1.0 from 1, and neither do members.
        prop_assert_eq!(decoded.map(|it| json::encode(&it)), Ok(json::encode(&value)));
    }

    #[test]
    fn forms_carry_the_same_tree(members in prop::collection::btree_map("[A-Z][a-z]{1,6}", tree(), 1..4)) {
        let value = Value::Structure(members.into_iter().map(|(name, it)| (name.into(), it)).collect());
        let mut pairs = Vec::new();
        as_form("", &value, &mut pairs);
        let pair = |(name, value): &(String, String)| format!("{name}={}", escaped(value));
        let form = pairs.iter().map(pair).collect::<Vec<_>>().join("&");
        prop_assert_eq!(decode(Protocol::Query, form.as_bytes()), Ok(loose(&value)));
    }

    #[test]
    fn decoders_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for protocol in [Protocol::Cbor, Protocol::Json, Protocol::Query] {
            let _ = decode(protocol, &bytes);
        }
    }
}

#[test]
fn cbor_is_read_as_sdks_write_it() {
    let cases: [(&[u8], Value); 9] = [
        (b"\x18\x64", Value::Integer(100)),
        (b"\x39\x03\xe7", Value::Integer(-1_000)),
        (b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff", Value::Float(u64::MAX as f64)),
        (b"\xf9\x7c\x00", Value::Float(f64::INFINITY)),
        (b"\xf9\x3e\x00", Value::Float(1.5)),
        (b"\xfa\x40\x20\x00\x00", Value::Float(2.5)),
        (b"\xc1\xfb\x41\xd9\x54\xfc\x40\x40\x00\x00", Value::Timestamp(1_700_000_001_000)),
        (b"\x9f\x01\x7f\x61a\x61b\xff\xff", Value::List(vec![Value::Integer(1), "ab".into()])),
        (b"\xbf\x61a\xf6\xff", Value::Structure(vec![("a".into(), Value::Null)])),
    ];
    for (bytes, expected) in cases {
        assert_eq!(cbor::decode(bytes), Ok(expected), "{bytes:x?}");
    }
}

#[test]
fn small_bytes_cannot_become_large_trees() {
    let deep = [vec![0x81; 1_000], vec![0x01]].concat();
    assert!(cbor::decode(&deep).is_err());
    // A list that claims to have two to the power of 63 elements.
    assert!(cbor::decode(b"\x9b\x7f\xff\xff\xff\xff\xff\xff\xff\x01").is_err());
    let many = [b"\x9f".to_vec(), vec![0x01; VALUES_MAX + 1], b"\xff".to_vec()].concat();
    assert!(cbor::decode(&many).is_err());
    for broken in [&b""[..], b"\x01\x01", b"\x41a", b"\xc0\x01", b"\xa1\x01\x01", b"\x1c", b"\xff"]
    {
        assert!(cbor::decode(broken).is_err(), "{broken:x?}");
    }
    let large = vec![b'x'; BODY_SIZE_BYTES_MAX + 1];
    assert_eq!(decode(Protocol::Query, &large).unwrap_err().kind, CloudWatchErrorKind::TooLarge);
}

#[test]
fn members_take_what_a_form_says() {
    let form = b"At=2026-11-18T03%3A04%3A05.250Z&Zoned=2026-11-18T04:04:05%2B01:00&Flag=true&N=1.5\
        &Dimensions.member.2.Name=b&Dimensions.member.10.Name=c&Dimensions.member.1.Name=a&Empty=";
    let decoded = decode(Protocol::Query, form).unwrap();
    let members = Members::of(&decoded);
    assert_eq!(members.timestamp_ms("At"), Ok(Some(1_794_971_045_250)));
    assert_eq!(members.timestamp_ms("Zoned"), Ok(Some(1_794_971_045_000)));
    assert_eq!((members.flag("Flag"), members.number("N")), (Ok(Some(true)), Ok(Some(1.5))));
    assert_eq!(members.texts("Empty"), Ok(Some(Vec::new())));
    let names = members.structures("Dimensions").unwrap();
    let names: Vec<_> = names.iter().map(|it| it.required_text("Name").unwrap()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(
        members.required_text("Nothing").unwrap_err().kind,
        CloudWatchErrorKind::MissingParameter
    );
    assert_eq!(members.integer("N").unwrap_err().kind, CloudWatchErrorKind::Serialization);
}

#[test]
fn times_that_overflow_are_refused() {
    let time = |text: &str| {
        let value = Value::Structure(vec![("At".into(), Value::Form(text.to_owned()))]);
        Members::of(&value).timestamp_ms("At").map_err(|fault| fault.kind)
    };
    for (offset, expected_s) in [("+0100", 0), ("+01", 0), ("-01:30", 9_000), ("+00:00", 3_600)] {
        let text = format!("1970-01-01T01:00:00{offset}");
        assert_eq!(time(&text), Ok(Some(expected_s * 1_000)), "{text}");
    }
    for clock in [
        "00:00:00+009223372036854775807",
        "00:00:00+1",
        "00:00:00+-1:0",
        "00:00:00.5e999",
        "00:00:00.5e9",
    ] {
        let text = format!("2026-11-18T{clock}");
        assert_eq!(time(&text), Err(CloudWatchErrorKind::Serialization), "{text}");
    }
}

#[test]
fn answers_look_as_clients_expect_them() {
    let result = || {
        let mut point: Structure = vec![("Timestamp".into(), Value::Timestamp(1_700_000_000_000))];
        let percentiles = vec![("p99".to_owned(), Value::Float(1.5))];
        point.push(("ExtendedStatistics".into(), Value::Dictionary(percentiles)));
        let label = ("Label".into(), Value::from("a<b & \u{1}"));
        Ok(Some(vec![label, ("Datapoints".into(), Value::structures([point]))]))
    };
    let xml = answer(Protocol::Query, "GetMetricStatistics", "id", result());
    let expected = "<GetMetricStatisticsResponse xmlns=\"http://monitoring.amazonaws.com/doc/2010-08-01/\">\
        <GetMetricStatisticsResult><Label>a&lt;b &amp;  </Label><Datapoints><member><Timestamp>2023-11-14T22:13:20Z</Timestamp>\
        <ExtendedStatistics><entry><key>p99</key><value>1.5</value></entry></ExtendedStatistics></member></Datapoints>\
        </GetMetricStatisticsResult><ResponseMetadata><RequestId>id</RequestId></ResponseMetadata></GetMetricStatisticsResponse>";
    assert_eq!(String::from_utf8(xml.body).unwrap(), expected);
    let json = answer(Protocol::Json, "GetMetricStatistics", "id", result());
    let expected = "{\"Datapoints\":[{\"ExtendedStatistics\":{\"p99\":1.5},\"Timestamp\":1700000000}],\"Label\":\"a<b & \\u0001\"}";
    assert_eq!(String::from_utf8(json.body).unwrap(), expected);
}

#[test]
fn errors_have_the_names_of_their_protocol() {
    let fault = || Err(CloudWatchError::missing("AlarmName"));
    let xml = answer(Protocol::Query, "X", "id", fault());
    let expected = "<ErrorResponse xmlns=\"http://monitoring.amazonaws.com/doc/2010-08-01/\"><Error><Type>Sender</Type>\
        <Code>MissingParameter</Code><Message>The parameter AlarmName is required.</Message></Error><RequestId>id</RequestId></ErrorResponse>";
    assert_eq!(String::from_utf8(xml.body).unwrap(), expected);
    assert_eq!((xml.status, xml.content_type), (400, "text/xml"));
    for (protocol, decode) in
        [(Protocol::Json, json::decode as fn(&[u8]) -> _), (Protocol::Cbor, cbor::decode)]
    {
        let answer = answer(protocol, "X", "id", fault());
        let header = ("x-amzn-query-error", "MissingParameter;Sender".to_owned());
        assert!(answer.headers.contains(&header), "{answer:?}");
        let body = decode(&answer.body).unwrap();
        let shape = "com.amazonaws.cloudwatch#MissingRequiredParameterException";
        assert_eq!(Members::of(&body).text("__type"), Ok(Some(shape)));
        assert_eq!(
            Members::of(&body).text("message"),
            Ok(Some("The parameter AlarmName is required."))
        );
    }
}
