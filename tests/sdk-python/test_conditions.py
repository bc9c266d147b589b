"""Condition expressions: how each leaf judges, and what is refused before anything is read."""

import pytest

from support import condition_failed, get, invalid, item, n, put, s

TEXT = "hello"
STORED = item(text=TEXT, number=10, flag=True, nothing=None, list=["a", 1, {"deep": "x"}], map={"middle": {"leaf": 5}},
              data=b"\x01\x02\x03") | {
    "strings": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2.5"]},
}

# expression, value of :v, value of :w, whether it holds for STORED
LEAVES = [
    ("#text = :v", s("hello"), None, True),
    ("#text = :v", s("Hello"), None, False),
    ("#text = :v", n(1), None, False),
    ("#number = :v", n("10.0"), None, True),
    ("#number <> :v", s("10"), None, True),
    ("absent = :v", s("x"), None, False),
    ("absent <> :v", s("x"), None, True),
    ("NOT absent = :v", s("x"), None, True),
    ("absent < :v", s("x"), None, False),
    ("NOT absent < :v", s("x"), None, True),
    ("absent = another", None, None, False),
    ("#number < :v", n(11), None, True),
    ("#number < :v", s("x"), None, False),
    ("#number >= :v", n(10), None, True),
    ("#number > :v", n(10), None, False),
    (":v <= #number", n(10), None, True),
    ("#number BETWEEN :v AND :w", n(10), n(11), True),
    ("#number BETWEEN :v AND :w", n(11), n(12), False),
    ("#text BETWEEN :v AND :w", s("h"), s("i"), True),
    ("#number IN (:v, :w)", n(1), n(10), True),
    ("#number IN (:v, :w)", n(1), s("10"), False),
    ("absent IN (:v, :w)", n(1), n(2), False),
    ("attribute_exists(#nothing)", None, None, True),
    ("attribute_exists(absent)", None, None, False),
    ("attribute_exists(#map.middle.leaf)", None, None, True),
    ("attribute_exists(#map.middle.nowhere)", None, None, False),
    ("attribute_exists(#list[2].deep)", None, None, True),
    ("attribute_exists(#list[3])", None, None, False),
    ("attribute_not_exists(absent)", None, None, True),
    ("attribute_type(#nothing, :v)", s("NULL"), None, True),
    ("attribute_type(strings, :v)", s("SS"), None, True),
    ("attribute_type(#list, :v)", s("M"), None, False),
    ("attribute_type(absent, :v)", s("S"), None, False),
    ("begins_with(#text, :v)", s("hel"), None, True),
    ("begins_with(#text, :v)", s(""), None, True),
    ("begins_with(#text, :v)", s("el"), None, False),
    ("begins_with(#data, :v)", {"B": b"\x01\x02"}, None, True),
    ("begins_with(#data, :v)", s("\x01"), None, False),
    ("contains(#text, :v)", s("ell"), None, True),
    ("contains(strings, :v)", s("a"), None, True),
    ("contains(strings, :v)", s("c"), None, False),
    ("contains(numbers, :v)", n("2.50"), None, True),
    ("contains(#list, :v)", n(1), None, True),
    ("contains(#list, :v)", item(x={"deep": "x"})["x"], None, True),
    ("contains(#data, :v)", {"B": b"\x02"}, None, True),
    ("contains(#number, :v)", n(1), None, False),
    ("size(#text) = :v", n(5), None, True),
    ("size(#data) = :v", n(3), None, True),
    ("size(strings) = :v", n(2), None, True),
    ("size(#list) > :v", n(2), None, True),
    ("size(#map) = :v", n(1), None, True),
    ("size(#number) = :v", n(2), None, False),
    ("size(absent) <> :v", n(2), None, True),
    ("strings = :v", {"SS": ["b", "a"]}, None, True),
    ("#map = :v", item(x={"middle": {"leaf": 5}})["x"], None, True),
    ("#map.middle.leaf = :v", n("5.0"), None, True),
    ("#list[0] = :v", s("a"), None, True),
    ("#text = :v OR #number = :w", s("no"), n(10), True),
    ("#text = :v AND #number = :w", s("no"), n(10), False),
    ("NOT #text = :v AND #number = :w", s("no"), n(10), True),
    ("NOT (#text = :v OR #number = :w)", s("no"), n(10), False),
    ("#text = :v OR #text = :w AND #number = :v", s("hello"), s("no"), True),
]

NAMES = {"#text": "text", "#number": "number", "#nothing": "nothing", "#list": "list", "#map": "map", "#data": "data"}


def arguments(expression, value, other):
    names = {placeholder: name for placeholder, name in NAMES.items() if placeholder in expression}
    values = {":v": value, ":w": other}
    values = {placeholder: value for placeholder, value in values.items() if value is not None}
    arguments = {}
    if names:
        arguments["ExpressionAttributeNames"] = names
    if values:
        arguments["ExpressionAttributeValues"] = values
    return arguments


@pytest.fixture(scope="module")
def stored(dynamodb, hash_table):
    dynamodb.put_item(TableName=hash_table, Item=STORED | item(pk="stored"))
    return hash_table


@pytest.mark.parametrize(("expression", "value", "other", "holds"), LEAVES)
def test_condition_and_filter_agree(dynamodb, stored, expression, value, other, holds):
    request = arguments(expression, value, other)
    found = dynamodb.query(
        TableName=stored, KeyConditionExpression="pk = :pk", FilterExpression=expression,
        **request | {"ExpressionAttributeValues": request.get("ExpressionAttributeValues", {}) | {":pk": s("stored")}},
    )
    assert (found["Count"], found["ScannedCount"]) == (int(holds), 1)
    update = {"TableName": stored, "Key": item(pk="stored"), "ConditionExpression": expression, **request}
    if holds:
        dynamodb.update_item(**update)
    else:
        with condition_failed():
            dynamodb.update_item(**update)


def test_conditions_on_a_missing_item_see_nothing(dynamodb, hash_table, key):
    with condition_failed():
        dynamodb.update_item(
            TableName=hash_table, Key=item(pk=key), ConditionExpression="attribute_exists(pk)",
            UpdateExpression="SET a = :a", ExpressionAttributeValues={":a": n(1)},
        )
    with condition_failed():
        dynamodb.delete_item(TableName=hash_table, Key=item(pk=key), ConditionExpression="attribute_exists(pk)")
    assert get(dynamodb, hash_table, pk=key) is None
    dynamodb.put_item(TableName=hash_table, Item=item(pk=key), ConditionExpression="attribute_not_exists(pk)")
    with condition_failed():
        dynamodb.put_item(TableName=hash_table, Item=item(pk=key), ConditionExpression="attribute_not_exists(pk)")


@pytest.mark.parametrize("operation", ["put_item", "update_item", "delete_item"])
def test_a_failed_condition_returns_the_item_on_request(dynamodb, hash_table, key, operation):
    put(dynamodb, hash_table, pk=key, a=1)
    target = {"Item": item(pk=key)} if operation == "put_item" else {"Key": item(pk=key)}
    request = {"TableName": hash_table, "ConditionExpression": "attribute_not_exists(pk)", **target}
    with condition_failed() as caught:
        getattr(dynamodb, operation)(**request)
    assert "Item" not in caught.value.response
    with condition_failed() as caught:
        getattr(dynamodb, operation)(**request, ReturnValuesOnConditionCheckFailure="ALL_OLD")
    assert caught.value.response["Item"] == item(pk=key, a=1)
    assert get(dynamodb, hash_table, pk=key) == item(pk=key, a=1)


def test_a_failed_condition_on_a_missing_item_returns_none(dynamodb, hash_table, key):
    with condition_failed() as caught:
        dynamodb.delete_item(
            TableName=hash_table, Key=item(pk=key), ConditionExpression="attribute_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert "Item" not in caught.value.response


STATIC = [
    ("a = ", {}, 'Syntax error; token: "<EOF>", near: "="'),
    ("a-b = :v", {":v": n(1)}, 'Syntax error; token: "-", near: "a-b"'),
    ("((a = :v))", {":v": n(1)}, "The expression has redundant parentheses;"),
    ("Contains(a, :v)", {":v": n(1)}, "Invalid function name; function: Contains"),
    ("size(a)", {}, "The function is not allowed to be used this way in an expression; function: size"),
    ("name = :v", {":v": n(1)}, "Attribute name is a reserved keyword; reserved keyword: name"),
    ("Status = :v", {":v": n(1)}, "Attribute name is a reserved keyword; reserved keyword: Status"),
    (
        "#a = :v", {":v": n(1)},
        "An expression attribute name used in the document path is not defined; attribute name: #a",
    ),
    (
        "a = :x", {":v": n(1)},
        "An expression attribute value used in expression is not defined; attribute value: :x",
    ),
    (
        "begins_with(a)", {},
        "Incorrect number of operands for operator or function; "
        "operator or function: begins_with, number of operands: 1",
    ),
    (
        "a.b[1] = a.b[1]", {},
        "The first operand must be distinct from the remaining operands for this operator or function; "
        "operator: =, first operand: [a, b, [1]]",
    ),
    (
        "attribute_exists(:v)", {":v": n(1)},
        "Operator or function requires a document path; operator or function: attribute_exists",
    ),
    (
        "begins_with(a, :v)", {":v": n(1)},
        "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
    ),
    (
        "a < :v", {":v": {"BOOL": True}},
        "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL",
    ),
    (
        "attribute_type(a, :v)", {":v": s("X")},
        "Invalid attribute type name found; type: X, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}",
    ),
    (
        "a BETWEEN :v AND :w", {":v": n(1), ":w": s("a")},
        "The BETWEEN operator requires same data type for lower and upper bounds; "
        "lower bound operand: AttributeValue: {N:1}, upper bound operand: AttributeValue: {S:a}",
    ),
    (
        "a BETWEEN :v AND :w", {":v": s("b"), ":w": s("a")},
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
        "lower bound operand: AttributeValue: {S:b}, upper bound operand: AttributeValue: {S:a}",
    ),
    ("", {}, "The expression can not be empty;"),
    (
        "a = :v OR " * 500 + "a = :v", {":v": n(1)},
        "Expression size has exceeded the maximum allowed size; expression size: 5006",
    ),
]


@pytest.mark.parametrize(("expression", "values", "message"), STATIC, ids=[case[0][:30] for case in STATIC])
def test_static_errors(dynamodb, hash_table, expression, values, message):
    # Even a table that does not exist is not looked at.
    for table in (hash_table, "missing"):
        request = {"TableName": table, "Key": item(pk="x"), "ConditionExpression": expression}
        if values:
            request["ExpressionAttributeValues"] = values
        with invalid("Invalid ConditionExpression: " + message):
            dynamodb.delete_item(**request)


PLACEHOLDERS = {
    "names without expression": (
        {"ExpressionAttributeNames": {"#a": "a"}},
        "ExpressionAttributeNames can only be specified when using expressions",
    ),
    "values without expression": (
        {"ExpressionAttributeValues": {":a": n(1)}},
        "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null",
    ),
    "empty names": (
        {"ConditionExpression": "a = b", "ExpressionAttributeNames": {}},
        "ExpressionAttributeNames must not be empty",
    ),
    "empty values": (
        {"ConditionExpression": "a = b", "ExpressionAttributeValues": {}},
        "ExpressionAttributeValues must not be empty",
    ),
    "bad name key": (
        {"ConditionExpression": "a = b", "ExpressionAttributeNames": {"a": "a"}},
        'ExpressionAttributeNames contains invalid key: Syntax error; key: "a"',
    ),
    "bad value key": (
        {"ConditionExpression": "a = b", "ExpressionAttributeValues": {"v": n(1)}},
        'ExpressionAttributeValues contains invalid key: Syntax error; key: "v"',
    ),
    "unused names": (
        {"ConditionExpression": "a = b", "ExpressionAttributeNames": {"#b": "b", "#a": "a"}},
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a, #b}",
    ),
    "unused values": (
        {"ConditionExpression": "a = b", "ExpressionAttributeValues": {":v": n(1)}},
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}",
    ),
}


@pytest.mark.parametrize("case", PLACEHOLDERS)
def test_placeholder_errors(dynamodb, hash_table, case):
    request, message = PLACEHOLDERS[case]
    with invalid(message):
        dynamodb.delete_item(TableName=hash_table, Key=item(pk="x"), **request)


def test_keys_are_scalars(dynamodb, hash_table):
    message = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: pk"
    with invalid(message):
        dynamodb.delete_item(TableName=hash_table, Key=item(pk="x"), ConditionExpression="attribute_exists(pk.a)")
