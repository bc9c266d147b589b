//! A value of every type, for the cases below the API.

use std::collections::BTreeMap;

use zenobe_value::{AttributeValue, Attributes, Number};

/// An item of an online shop, about 500 bytes.
pub fn product() -> Attributes {
    attributes([
        ("pk", text("product#000000004711")),
        ("name", text("Espresso machine with a mill and a steam nozzle, brushed steel")),
        ("status", text("active")),
        ("price", number("1299.95")),
        ("stock", number("37")),
        ("weight", number("11.2")),
        ("featured", AttributeValue::Bool(true)),
        ("draft", AttributeValue::Null),
        ("image", AttributeValue::B((0..64).collect())),
        ("tags", AttributeValue::Ss(["coffee", "kitchen", "steel"].map(str::to_owned).into())),
        ("sizes", AttributeValue::Ns(["28.5", "38", "41"].map(parsed).into())),
        (
            "maker",
            AttributeValue::M(attributes([
                ("name", text("Officine Rossi")),
                ("address", AttributeValue::M(attributes([("city", text("Milano"))]))),
                ("visits", number("120")),
            ])),
        ),
        ("ratings", AttributeValue::L(["5", "4", "5", "3"].map(number).to_vec())),
    ])
}

/// The names that the expressions use.
pub fn expression_names() -> BTreeMap<String, String> {
    [("#status", "status"), ("#name", "name")]
        .map(|(placeholder, name)| (placeholder.to_owned(), name.to_owned()))
        .into()
}

pub fn attributes<const N: usize>(entries: [(&str, AttributeValue); N]) -> Attributes {
    entries.map(|(name, value)| (name.to_owned(), value)).into()
}

pub fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub fn number(text: &str) -> AttributeValue {
    AttributeValue::N(parsed(text))
}

fn parsed(text: &str) -> Number {
    Number::parse(text).expect("samples are numbers")
}
