"""The parameters from before expressions: they lower to the same conditions and updates."""

import pytest

from support import P, all_items, condition_failed, create_table, get, invalid, item, n, names_in, put, s


@pytest.fixture(scope="module")
def table(dynamodb):
    name = create_table(dynamodb, keys="pk:S,sk:N", gsi=[("idx", "g:S")])
    for number in range(6):
        put(dynamodb, name, pk="p", sk=number, g="g", word=f"w{number}", parity=number % 2)
    return name


def condition(operator, *values):
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


EXPECTED = [
    ({"a": {"Value": n(1)}}, True),
    ({"a": {"Value": n(2)}}, False),
    ({"a": {"Exists": False}}, False),
    ({"absent": {"Exists": False}}, True),
    ({"a": condition("GE", n(1))}, True),
    ({"a": condition("BETWEEN", n(2), n(3))}, False),
    ({"a": condition("IN", n(2), n(1))}, True),
    ({"word": condition("BEGINS_WITH", s("wo"))}, True),
    ({"word": condition("CONTAINS", s("or"))}, True),
    ({"word": condition("NOT_CONTAINS", s("or"))}, False),
    ({"absent": condition("NE", s("x"))}, True),
    ({"absent": condition("NULL")}, True),
    ({"word": condition("NOT_NULL")}, True),
    ({"a": {"Value": n(1)}, "word": {"Value": s("no")}}, False),
]


@pytest.mark.parametrize(("expected", "holds"), EXPECTED)
def test_expected(dynamodb, hash_table, key, expected, holds):
    put(dynamodb, hash_table, pk=key, a=1, word="word")
    request = {"TableName": hash_table, "Key": item(pk=key), "Expected": expected}
    if holds:
        dynamodb.delete_item(**request)
        assert get(dynamodb, hash_table, pk=key) is None
    else:
        with condition_failed():
            dynamodb.delete_item(**request)
        assert get(dynamodb, hash_table, pk=key) is not None


def test_conditional_operator(dynamodb, hash_table, key):
    put(dynamodb, hash_table, pk=key, a=1, word="word")
    expected = {"a": {"Value": n(1)}, "word": {"Value": s("no")}}
    dynamodb.put_item(TableName=hash_table, Item=item(pk=key), Expected=expected, ConditionalOperator="OR")
    assert get(dynamodb, hash_table, pk=key) == item(pk=key)


EXPECTED_ERRORS = [
    (
        {"a": {"Value": n(1), "AttributeValueList": [n(1)]}},
        P + "Value and AttributeValueList cannot be used together for Attribute: a",
    ),
    (
        {"a": {"ComparisonOperator": "EQ", "Exists": True, "Value": n(1)}},
        P + "Exists and ComparisonOperator cannot be used together for Attribute: a",
    ),
    (
        {"a": {"ComparisonOperator": "EQ"}},
        P + "Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: a",
    ),
    ({"a": condition("EQ", n(1), n(2))}, P + "Invalid number of argument(s) for the EQ ComparisonOperator"),
    ({"a": condition("BETWEEN", n(1))}, P + "Invalid number of argument(s) for the BETWEEN ComparisonOperator"),
    ({"a": condition("IN", n(1), s("x"))}, P + "AttributeValues inside AttributeValueList must be of same type"),
    (
        {"a": condition("BETWEEN", n(2), n(1))},
        "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
    ),
    (
        {"a": {"AttributeValueList": [n(1)]}},
        P + "AttributeValueList can only be used with a ComparisonOperator for Attribute: a",
    ),
    ({"a": {}}, P + "Value must be provided when Exists is null for Attribute: a"),
    ({"a": {"Exists": True}}, P + "Value must be provided when Exists is true for Attribute: a"),
    ({"a": {"Exists": False, "Value": n(1)}}, P + "Value cannot be used when Exists is false for Attribute: a"),
]


@pytest.mark.parametrize(("expected", "message"), EXPECTED_ERRORS)
def test_expected_errors(dynamodb, hash_table, expected, message):
    with invalid(message):
        dynamodb.delete_item(TableName=hash_table, Key=item(pk="x"), Expected=expected)


UPDATES = [
    ({"a": {"Value": n(5)}}, item(a=5, word="x")),
    ({"a": {"Action": "PUT", "Value": s("t")}}, item(a="t", word="x")),
    ({"a": {"Action": "ADD", "Value": n(5)}}, item(a=6, word="x")),
    ({"new": {"Action": "ADD", "Value": n(5)}}, item(a=1, word="x", new=5)),
    ({"a": {"Action": "DELETE"}}, item(word="x")),
    ({"absent": {"Action": "DELETE"}}, item(a=1, word="x")),
    ({"new": {"Action": "ADD", "Value": {"SS": ["s"]}}}, item(a=1, word="x") | {"new": {"SS": ["s"]}}),
    ({"a": {"Action": "DELETE"}, "b": {"Value": n(1)}}, item(word="x", b=1)),
]


@pytest.mark.parametrize(("updates", "expected"), UPDATES)
def test_attribute_updates(dynamodb, hash_table, key, updates, expected):
    put(dynamodb, hash_table, pk=key, a=1, word="x")
    answer = dynamodb.update_item(
        TableName=hash_table, Key=item(pk=key), AttributeUpdates=updates, ReturnValues="ALL_NEW"
    )
    assert answer["Attributes"] == expected | item(pk=key)


def test_returned_values_of_attribute_updates(dynamodb, hash_table, key):
    put(dynamodb, hash_table, pk=key, a=1, b=1)
    request = {"TableName": hash_table, "Key": item(pk=key), "AttributeUpdates": {"a": {"Value": n(5)}}}
    assert dynamodb.update_item(**request, ReturnValues="UPDATED_OLD")["Attributes"] == item(a=1)
    assert dynamodb.update_item(**request, ReturnValues="UPDATED_NEW")["Attributes"] == item(a=5)


UPDATE_ERRORS = [
    ({"a": {"Action": "PUT"}}, P + "Only DELETE action is allowed when no attribute value is specified"),
    ({"a": {"Action": "DELETE", "Value": n(1)}}, P + "DELETE action with value is not supported for the type N"),
    ({"a": {"Action": "ADD", "Value": s("x")}}, P + "ADD action is not supported for the type S"),
    ({"word": {"Action": "ADD", "Value": n(1)}}, "Type mismatch for attribute to update"),
    ({"pk": {"Value": s("x")}}, P + "Cannot update attribute pk. This attribute is part of the key"),
]


@pytest.mark.parametrize(("updates", "message"), UPDATE_ERRORS)
def test_attribute_update_errors(dynamodb, hash_table, key, updates, message):
    put(dynamodb, hash_table, pk=key, a=1, word="x")
    with invalid(message):
        dynamodb.update_item(TableName=hash_table, Key=item(pk=key), AttributeUpdates=updates)
    assert get(dynamodb, hash_table, pk=key) == item(pk=key, a=1, word="x")


KEY_CONDITIONS = [
    ({"pk": condition("EQ", s("p"))}, ["0", "1", "2", "3", "4", "5"]),
    ({"pk": condition("EQ", s("p")), "sk": condition("LT", n(2))}, ["0", "1"]),
    ({"pk": condition("EQ", s("p")), "sk": condition("BETWEEN", n(2), n(4))}, ["2", "3", "4"]),
    ({"pk": condition("EQ", s("p")), "sk": condition("EQ", n(9))}, []),
]


@pytest.mark.parametrize(("conditions", "expected"), KEY_CONDITIONS)
def test_key_conditions(dynamodb, table, conditions, expected):
    page = dynamodb.query(TableName=table, KeyConditions=conditions, AttributesToGet=["sk"])
    assert names_in(page["Items"], "sk") == expected
    assert all(entry.keys() == {"sk"} for entry in page["Items"])


KEY_CONDITION_ERRORS = [
    ({"sk": condition("EQ", n(1))}, "Query condition missed key schema element: pk"),
    (
        {"pk": condition("NE", s("p"))},
        "Attempted conditional constraint is not an indexable operation",
    ),
    ({"pk": condition("GT", s("p"))}, "Query key condition not supported"),
    (
        {"pk": condition("EQ", s("p")), "sk": condition("EQ", s("1"))},
        P + "Condition parameter type does not match schema type",
    ),
    ({name: condition("EQ", s("p")) for name in ("pk", "sk", "third")}, "Conditions can be of length 1 or 2 only"),
]


@pytest.mark.parametrize(("conditions", "message"), KEY_CONDITION_ERRORS)
def test_key_condition_errors(dynamodb, table, conditions, message):
    with invalid(message):
        dynamodb.query(TableName=table, KeyConditions=conditions)


def test_filters(dynamodb, table):
    partition = {"pk": condition("EQ", s("p"))}
    page = dynamodb.query(TableName=table, KeyConditions=partition, QueryFilter={"parity": condition("EQ", n(1))})
    assert names_in(page["Items"], "sk") == ["1", "3", "5"]
    assert (page["Count"], page["ScannedCount"]) == (3, 6)
    both = {"parity": condition("EQ", n(1)), "word": condition("EQ", s("w0"))}
    page = dynamodb.query(TableName=table, KeyConditions=partition, QueryFilter=both, ConditionalOperator="OR")
    assert names_in(page["Items"], "sk") == ["0", "1", "3", "5"]
    items = all_items(dynamodb.scan, TableName=table, ScanFilter={"sk": condition("GT", n(3))}, Limit=2)
    assert sorted(names_in(items, "sk")) == ["4", "5"]
    message = "QueryFilter can only contain non-primary key attributes: Primary key attribute: sk"
    with invalid(message):
        dynamodb.query(TableName=table, KeyConditions=partition, QueryFilter={"sk": condition("EQ", n(1))})


def test_key_conditions_with_a_filter_expression(dynamodb, table):
    page = dynamodb.query(
        TableName=table, KeyConditions={"pk": condition("EQ", s("p"))}, FilterExpression="parity = :v",
        ExpressionAttributeValues={":v": n(0)},
    )
    assert names_in(page["Items"], "sk") == ["0", "2", "4"]


def test_attributes_to_get(dynamodb, hash_table, key):
    put(dynamodb, hash_table, pk=key, a=1, b=2)
    request = {"TableName": hash_table, "Key": item(pk=key)}
    assert dynamodb.get_item(**request, AttributesToGet=["a", "absent"])["Item"] == item(a=1)
    with invalid(P + "Duplicate value in attribute name: a"):
        dynamodb.get_item(**request, AttributesToGet=["a", "a"])


def mixing(legacy, expressions):
    return (
        "Can not use both expression and non-expression parameters in the same request: "
        f"Non-expression parameters: {{{legacy}}} Expression parameters: {{{expressions}}}"
    )


MIXED = {
    "delete_item": (
        {"Key": item(pk="x"), "Expected": {}, "ConditionExpression": "attribute_exists(pk)"},
        mixing("Expected", "ConditionExpression"),
    ),
    "update_item": (
        {"Key": item(pk="x"), "AttributeUpdates": {}, "Expected": {}, "UpdateExpression": "REMOVE a",
         "ConditionExpression": "attribute_exists(pk)"},
        mixing("AttributeUpdates, Expected", "UpdateExpression, ConditionExpression"),
    ),
    "get_item": (
        {"Key": item(pk="x"), "AttributesToGet": ["a"], "ProjectionExpression": "a"},
        mixing("AttributesToGet", "ProjectionExpression"),
    ),
    "query": (
        {"KeyConditions": {}, "AttributesToGet": ["a"], "KeyConditionExpression": "pk = :v",
         "ProjectionExpression": "a", "ExpressionAttributeValues": {":v": s("x")}},
        mixing("AttributesToGet, KeyConditions", "ProjectionExpression, KeyConditionExpression"),
    ),
    "scan": (
        {"ScanFilter": {}, "AttributesToGet": ["a"], "FilterExpression": "attribute_exists(a)"},
        mixing("AttributesToGet, ScanFilter", "FilterExpression"),
    ),
}


@pytest.mark.parametrize("operation", MIXED)
def test_mixing_is_refused(dynamodb, hash_table, operation):
    request, message = MIXED[operation]
    with invalid(message):
        getattr(dynamodb, operation)(TableName=hash_table, **request)
