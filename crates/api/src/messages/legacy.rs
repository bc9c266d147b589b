//! Texts about the parameters that expressions replaced.

use super::{INVALID, texts};

texts! {
    Validation, INVALID => {
        value_and_list(attribute: &str)
            "Value and AttributeValueList cannot be used together for Attribute: {attribute}";
        exists_and_operator(attribute: &str)
            "Exists and ComparisonOperator cannot be used together for Attribute: {attribute}";
        operator_without_value(operator: &str, attribute: &str) "Value or AttributeValueList must \
            be used with ComparisonOperator: {operator} for Attribute: {attribute}";
        list_without_operator(attribute: &str) "AttributeValueList can only be used with a \
            ComparisonOperator for Attribute: {attribute}";
        value_required(exists: &str, attribute: &str)
            "Value must be provided when Exists is {exists} for Attribute: {attribute}";
        value_not_allowed(attribute: &str)
            "Value cannot be used when Exists is false for Attribute: {attribute}";
        argument_count(operator: &str)
            "Invalid number of argument(s) for the {operator} ComparisonOperator";
        argument_types_differ()
            "AttributeValues inside AttributeValueList must be of same type";
        argument_type(operator: &str, attribute_type: &str)
            "ComparisonOperator {operator} is not valid for {attribute_type} AttributeValue type";
        only_delete_without_value()
            "Only DELETE action is allowed when no attribute value is specified";
        delete_type(attribute_type: &str)
            "DELETE action with value is not supported for the type {attribute_type}";
        add_type(attribute_type: &str)
            "ADD action is not supported for the type {attribute_type}";
    }
    Validation, "" => {
        between_reversed() "The BETWEEN condition was provided a range where the lower bound is \
            greater than the upper bound";
        conditional_operator_alone()
            "ConditionalOperator cannot be used without Filter or Expected";
        conditional_operator_on_one() "ConditionalOperator can only be used when Filter or \
            Expected has two or more elements";
    }
}
