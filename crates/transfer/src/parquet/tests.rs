//! The columns that items get. That others can read the files is tested with DuckDB (`tests/sdk-python`).

use zenobe_value::{AttributeValue, Attributes, EncodedItem, Number};

use super::{ColumnType, Columns, PartFile, Scalar, TooManyColumns};

fn number(text: &str) -> AttributeValue {
    AttributeValue::N(Number::parse(text).unwrap())
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// The type of a column with these values.
fn inferred(values: &[AttributeValue]) -> ColumnType {
    let mut columns = Columns::default();
    for value in values {
        let item = Attributes::from([("a".to_owned(), value.clone())]);
        columns.add(EncodedItem::encode(&item).as_item()).unwrap();
    }
    columns.types(&[])[0].1
}

#[test]
fn a_column_has_the_type_of_all_its_values() {
    use AttributeValue::{B, Bool, L, M, Null};
    let scalar = ColumnType::Scalar;
    assert_eq!(inferred(&[text("x"), Null]), scalar(Scalar::Text));
    assert_eq!(inferred(&[Null]), scalar(Scalar::Text));
    assert_eq!(inferred(&[B(vec![1])]), scalar(Scalar::Binary));
    assert_eq!(inferred(&[Bool(true)]), scalar(Scalar::Bool));
    assert_eq!(inferred(&[text("x"), Bool(true)]), scalar(Scalar::Json));
    assert_eq!(inferred(&[number("1"), number("-9223372036854775808")]), scalar(Scalar::Int64));
    let decimal = |precision, scale| Scalar::Decimal { precision, scale };
    assert_eq!(inferred(&[number("9223372036854775808")]), scalar(decimal(19, 0)));
    assert_eq!(inferred(&[number("120"), number("-0.05")]), scalar(decimal(5, 2)));
    let small = "0.00000000000000000000000000000000000001";
    assert_eq!(inferred(&[number(small)]), scalar(decimal(38, 38)));
    assert_eq!(inferred(&[number("1"), number(small)]), scalar(Scalar::Double));
    let numbers = AttributeValue::Ns([Number::from(1_u64)].into());
    assert_eq!(inferred(std::slice::from_ref(&numbers)), ColumnType::List(Scalar::Int64));
    assert_eq!(inferred(&[numbers, L(vec![])]), scalar(Scalar::Json));
    assert_eq!(inferred(&[L(vec![]), L(vec![text("x"), Null])]), ColumnType::List(Scalar::Text));
    assert_eq!(inferred(&[L(vec![text("x"), number("1")])]), scalar(Scalar::Json));
    assert_eq!(inferred(&[L(vec![L(vec![])])]), scalar(Scalar::Json));
    let map = |value| M(Attributes::from([("k".to_owned(), value)]));
    assert_eq!(inferred(&[map(number("1.5"))]), ColumnType::Map(decimal(2, 1)));
    assert_eq!(inferred(&[map(text("x")), map(number("1"))]), scalar(Scalar::Json));
}

#[test]
fn names_that_are_data_make_no_columns() {
    let mut columns = Columns::default();
    let item = |number: usize| {
        let item = Attributes::from([(format!("a{number}"), AttributeValue::Null)]);
        EncodedItem::encode(&item)
    };
    for number in 0..2_000 {
        columns.add(item(number).as_item()).unwrap();
    }
    assert_eq!(columns.add(item(0).as_item()), Ok(()));
    assert_eq!(columns.add(item(2_000).as_item()), Err(TooManyColumns));
    let first = columns.types(&["a7".to_owned(), "missing".to_owned()]);
    assert_eq!((first.len(), first[0].0.as_str(), first[1].0.as_str()), (2_000, "a7", "a0"));
}

#[test]
fn a_file_begins_and_ends_as_it_should() {
    let file = PartFile::new(&[("a".to_owned(), ColumnType::Scalar(Scalar::Text))]);
    let bytes = file.finish();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let at = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!(length as usize, at - 4, "nothing but the footer");
}
