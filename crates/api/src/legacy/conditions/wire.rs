//! The wire shape, which has the same name as the type that it lowers to.

use crate::json::attribute_value::WireValue;
use crate::json::decode::shape;

shape! {
    /// KeyConditions, QueryFilter and ScanFilter are maps of these.
    struct Condition {
        "AttributeValueList" => attribute_value_list: Vec<WireValue>,
        "ComparisonOperator" => comparison_operator: String,
    }
}
