//! Texts about tags and the resources that carry them.

use super::{INVALID, texts};

texts! {
    Validation, INVALID => {
        arn_prefix(arn: &str) "ARNs must start with 'arn:': {arn}";
        not_a_dynamodb_arn(arn: &str) "Provided Arn is not a DynamoDB resource arn: {arn}";
        not_a_table_or_stream(arn: &str)
            "Invalid resource arn provided, only table or stream is accepted. Provided resource arn: {arn}";
    }
    Validation, "" => {
        arn_missing() "Invalid TableArn";
        invalid_resource(arn: &str)
            "Invalid TableArn: Invalid ResourceArn provided as input {arn}";
        no_tags() "Atleast one Tag needs to be provided as Input.";
        no_tag_keys() "Atleast one Tag Key needs to be provided as Input.";
        invalid_key(key: &str) "The Tag Key provided is invalid, Key: {key}";
        invalid_value(value: &str) "The Tag Value provided is invalid, Value: {value}";
        reserved_key(key: &str) "Tag Key cannot be prefixed with aws:, Key: {key}";
        duplicate_key(key: &str)
            "Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}";
        wrong_test_rule(key: &str, problem: &str) "The tag {key} is not a valid fault rule: {problem}";
        unknown_mode(key: &str, value: &str) "The tag {key} must be off, observe or enforce, not \
            `{value}`";
        mode_too_lax(key: &str, mode: &str, min: &str) "The tag {key} can't be {mode}: the server's \
            throughput mode is {min}, and its tables can't loosen it";
        too_many() "Number of Tags exceed the current limit for the provided ResourceArn";
    }
    ResourceNotFound, "Requested resource not found: " => {
        resource_not_found(arn: &str) "ResourceArn: {arn} not found";
    }
}
