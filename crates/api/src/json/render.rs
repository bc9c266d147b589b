//! Items and values as DynamoDB JSON, written directly from their encoded bytes.

use zenobe_value::{
    AttributeType, Attributes, EncodedItem, ItemRef, MapRef, SetRef, ValueRef, ValueView,
};

use super::writer::Writer;

/// A stored item.
pub(crate) fn write_item(writer: &mut Writer, item: ItemRef<'_>) {
    write_members(writer, item.attributes());
}

fn write_members(writer: &mut Writer, members: MapRef<'_>) {
    writer.begin_object();
    for (name, value) in members.iter_utf8() {
        write_value(writer.utf8_name(name), value);
    }
    writer.end_object();
}

/// A stored value, under its type's name. Writes texts without checking their UTF-8 again.
///
/// Always inlined, like [`Writer::enclosed`]: rendering an item calls it once per attribute.
#[inline(always)]
pub(crate) fn write_value(writer: &mut Writer, value: ValueRef<'_>) {
    match value.attribute_type() {
        AttributeType::S => writer.enclosed("{\"S\":\"", value.payload(), "\"}"),
        AttributeType::N => writer.enclosed("{\"N\":\"", value.payload(), "\"}"),
        _ => write_view(writer, value.view()),
    }
}

fn write_view(writer: &mut Writer, view: ValueView<'_>) {
    match view {
        ValueView::S(text) => writer.object(|writer| writer.name("S").string(text)),
        ValueView::N(text) => writer.object(|writer| writer.name("N").string(text)),
        ValueView::B(bytes) => writer.object(|writer| writer.name("B").base64(bytes)),
        ValueView::Bool(true) => writer.raw("{\"BOOL\":true}"),
        ValueView::Bool(false) => writer.raw("{\"BOOL\":false}"),
        ValueView::Null => writer.raw("{\"NULL\":true}"),
        ValueView::Ss(set) => write_set(writer, "SS", set, Writer::utf8_string),
        ValueView::Ns(set) => write_numbers(writer, set),
        ValueView::Bs(set) => write_set(writer, "BS", set, Writer::base64),
        ValueView::L(list) => {
            writer.object(|writer| writer.name("L").array(list.iter(), write_value));
        }
        ValueView::M(map) => writer.object(|writer| write_members(writer.name("M"), map)),
    }
}

fn write_set(
    writer: &mut Writer,
    type_name: &str,
    set: SetRef<'_>,
    member: fn(&mut Writer, &[u8]),
) {
    writer.object(|writer| writer.name(type_name).array(set.iter(), member));
}

/// AWS returns the largest number first.
fn write_numbers(writer: &mut Writer, set: SetRef<'_>) {
    let mut members: Vec<&[u8]> = set.iter().collect();
    members.reverse();
    writer.object(|writer| writer.name("NS").array(members, Writer::utf8_string));
}

/// Attributes that exist as a tree: keys of pages and collections, fragments of updates. They are few and small, and
/// encoding them first leaves one way to render a value.
pub(crate) fn write_attributes(writer: &mut Writer, attributes: &Attributes) {
    write_item(writer, EncodedItem::encode(attributes).as_item());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::attribute_value::{ValueFault, WireAttributes};
    use crate::json::decode::request;

    /// Reads an item and writes it again.
    fn round_trip(text: &str) -> String {
        let attributes =
            request::<WireAttributes>(text.as_bytes()).unwrap().into_attributes().unwrap();
        let mut writer = Writer::new();
        write_attributes(&mut writer, &attributes);
        String::from_utf8(writer.finish()).unwrap()
    }

    #[test]
    fn items_are_read_and_written() {
        let canonical = concat!(
            r#"{"a":{"S":"é\""},"b":{"N":"1000"},"c":{"B":"AAE="},"d":{"BOOL":false},"#,
            r#""e":{"NULL":true},"f":{"SS":["a","b"]},"g":{"NS":["2.5","-1"]},"h":{"BS":["AA==","AQ=="]},"#,
            r#""i":{"L":[{"S":""},{"L":[]}]},"j":{"M":{"k":{"M":{}},"l":{"N":"0"}}}}"#,
        );
        assert_eq!(round_trip(canonical), canonical);
        let loose = r#" { "b" : { "N" : "1E3", "S": null }, "a" : { "BOOL" : "Yes", "x": [1] } } "#;
        assert_eq!(round_trip(loose), r#"{"a":{"BOOL":true},"b":{"N":"1000"}}"#);
        let duplicate = r#"{"a":{"S":"1"},"b":{"S":"2"},"a":{"S":"3"}}"#;
        assert_eq!(round_trip(duplicate), r#"{"a":{"S":"3"},"b":{"S":"2"}}"#);
    }

    #[track_caller]
    fn check_fault(value: &str, expected: &str) {
        let text = format!(r#"{{"a":{value}}}"#);
        let fault =
            request::<WireAttributes>(text.as_bytes()).unwrap().into_attributes().unwrap_err();
        assert_eq!(crate::messages::value::value_fault_text(&fault), expected);
    }

    #[test]
    fn value_faults_are_reported_in_order() {
        let empty =
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes";
        let multiple = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes";
        check_fault("{}", empty);
        check_fault("null", empty);
        check_fault(r#"{"S":null}"#, empty);
        check_fault(r#"{"L":[null]}"#, empty);
        check_fault(r#"{"S":"a","N":"1"}"#, multiple);
        check_fault(
            r#"{"S":"a","N":"x"}"#,
            "The parameter cannot be converted to a numeric value: x",
        );
        check_fault(r#"{"N":""}"#, "The parameter cannot be converted to a numeric value");
        check_fault(
            r#"{"M":{"x":{"N":"1e126"}}}"#,
            "Number overflow. Attempting to store a number with magnitude larger than supported range",
        );
        check_fault(
            r#"{"NULL":false}"#,
            "One or more parameter values were invalid: Null attribute value types must have the value of true",
        );
        check_fault(
            r#"{"SS":[]}"#,
            "One or more parameter values were invalid: An string set  may not be empty",
        );
        check_fault(
            r#"{"NS":[]}"#,
            "One or more parameter values were invalid: An number set  may not be empty",
        );
        check_fault(
            r#"{"BS":[]}"#,
            "One or more parameter values were invalid: Binary sets should not be empty",
        );
        check_fault(
            r#"{"SS":["a","a"]}"#,
            "One or more parameter values were invalid: Input collection [a, a] contains duplicates.",
        );
        check_fault(r#"{"NS":["1","1.0"]}"#, "Input collection contains duplicates");
        check_fault(
            r#"{"BS":["Yg==","Yg=="]}"#,
            "One or more parameter values were invalid: Input collection [Yg==, Yg==]of type BS contains duplicates.",
        );
    }

    #[test]
    fn nesting_is_checked_last() {
        let nested = |levels: usize, inner: &str| {
            r#"{"L":["#.repeat(levels - 1) + inner + &"]}".repeat(levels - 1)
        };
        let item = |value: String| format!(r#"{{"a":{value}}}"#);
        let decode =
            |text: String| request::<WireAttributes>(text.as_bytes()).unwrap().into_attributes();
        assert!(decode(item(nested(32, r#"{"S":"x"}"#))).is_ok());
        assert_eq!(decode(item(nested(33, r#"{"S":"x"}"#))), Err(ValueFault::NestedTooDeeply));
        assert_eq!(decode(item(nested(400, r#"{"S":"x"}"#))), Err(ValueFault::NestedTooDeeply));
        let both = format!(r#"{{"L":[{},{{"NULL":false}}]}}"#, nested(33, "{}"));
        assert_eq!(decode(item(both)), Err(ValueFault::NullNotTrue));
    }

    mod properties {
        use proptest::collection::{btree_map, btree_set, vec};
        use proptest::prelude::*;
        use zenobe_value::{AttributeValue, Number};

        use super::*;

        fn number() -> impl Strategy<Value = Number> {
            (any::<i64>(), -60..60_i32)
                .prop_map(|(digits, exponent)| format!("{digits}e{exponent}"))
                .prop_filter_map("out of range", |text| Number::parse(&text).ok())
        }

        fn value() -> impl Strategy<Value = AttributeValue> {
            let leaf = prop_oneof![
                any::<String>().prop_map(AttributeValue::S),
                number().prop_map(AttributeValue::N),
                vec(any::<u8>(), 0..9).prop_map(AttributeValue::B),
                any::<bool>().prop_map(AttributeValue::Bool),
                Just(AttributeValue::Null),
                btree_set(any::<String>(), 1..4).prop_map(AttributeValue::Ss),
                btree_set(number(), 1..4).prop_map(AttributeValue::Ns),
                btree_set(vec(any::<u8>(), 0..4), 1..4).prop_map(AttributeValue::Bs),
            ];
            leaf.prop_recursive(5, 40, 4, |inner| {
                prop_oneof![
                    vec(inner.clone(), 0..4).prop_map(AttributeValue::L),
                    btree_map(".{1,9}", inner, 0..4).prop_map(AttributeValue::M),
                ]
            })
        }

        proptest! {
            /// Everything written is valid JSON and reads back unchanged.
            #[test]
            fn items_survive_a_round_trip(item in btree_map(any::<String>(), value(), 0..6)) {
                let mut writer = Writer::new();
                write_attributes(&mut writer, &item);
                let text = writer.finish();
                prop_assert!(crate::is_valid_json(&text));
                prop_assert_eq!(round_trip(std::str::from_utf8(&text).unwrap()).into_bytes(), text.clone());
                let read = request::<WireAttributes>(&text).unwrap().into_attributes().unwrap();
                prop_assert_eq!(read, item);
            }

            /// Damaged requests are rejected or understood; they never panic.
            #[test]
            fn damaged_items_are_harmless(
                item in btree_map(any::<String>(), value(), 1..4),
                at in any::<prop::sample::Index>(),
                byte in any::<u8>(),
                cut in any::<bool>(),
            ) {
                let mut writer = Writer::new();
                write_attributes(&mut writer, &item);
                let mut text = writer.finish();
                let at = at.index(text.len());
                if cut {
                    text.truncate(at);
                } else {
                    text[at] = byte;
                }
                let understood = request::<WireAttributes>(&text).is_ok();
                prop_assert!(!understood || crate::is_valid_json(&text));
            }

            #[test]
            fn any_bytes_are_harmless(bytes in vec(any::<u8>(), 0..60)) {
                let understood = request::<WireAttributes>(&bytes).is_ok();
                prop_assert!(!understood || crate::is_valid_json(&bytes));
            }
        }
    }
}
