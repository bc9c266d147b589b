"""Query: key conditions, order, paging, filters, selection, and its refusals."""

import pytest

from support import P, all_items, b, create_table, invalid, item, missing_resource, n, names_in, put, s

NUMBERS = ["-100", "-2.5", "-1", "0", "0.001", "1", "9", "10", "11", "1000000000000000000000000000000000001"]
# Byte order of UTF-8: upper case first, and U+FFFD before U+1F600, unlike in UTF-16. A zero byte is a
# character as any other.
STRINGS = ["\0", "\0\0", "A", "B", "a", "a\0", "a\0b", "a\x01", "aa", "ab", "b", "é", "\ufffd", "\U0001f600"]
BINARIES = [b"\x00", b"\x00\x00", b"\x00\xff", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\x00"]


@pytest.fixture(scope="module")
def numbers(dynamodb):
    table = create_table(dynamodb, keys="pk:S,sk:N")
    for position, number in enumerate(reversed(NUMBERS)):
        dynamodb.put_item(TableName=table, Item=item(pk="p", odd=position % 2) | {"sk": n(number)})
    put(dynamodb, table, pk="other", sk=5)
    return table


@pytest.fixture(scope="module")
def strings(dynamodb):
    table = create_table(dynamodb, keys="pk:S,sk:S")
    for text in reversed(STRINGS):
        put(dynamodb, table, pk="p", sk=text, length=len(text))
    return table


def query(dynamodb, table, condition="pk = :pk", values=(), **more):
    bound = {":pk": s("p")} | dict(values)
    return dynamodb.query(
        TableName=table, KeyConditionExpression=condition, ExpressionAttributeValues=bound, **more
    )


RANGES = [
    ("sk = :v", "1", None, ["1"]),
    ("sk = :v", "2", None, []),
    ("sk < :v", "0", None, ["-100", "-2.5", "-1"]),
    ("sk <= :v", "0", None, ["-100", "-2.5", "-1", "0"]),
    ("sk > :v", "10", None, ["11", NUMBERS[-1]]),
    ("sk >= :v", "10", None, ["10", "11", NUMBERS[-1]]),
    ("sk BETWEEN :v AND :w", "-1", "1", ["-1", "0", "0.001", "1"]),
    (":v < sk", "10", None, ["11", NUMBERS[-1]]),
    ("(sk >= :v)", "11", None, ["11", NUMBERS[-1]]),
]


@pytest.mark.parametrize(("condition", "value", "other", "expected"), RANGES)
@pytest.mark.parametrize("forward", [True, False])
def test_numeric_ranges(dynamodb, numbers, condition, value, other, expected, forward):
    values = {":v": n(value)} | ({":w": n(other)} if other else {})
    page = query(dynamodb, numbers, f"pk = :pk AND {condition}", values, ScanIndexForward=forward)
    assert names_in(page["Items"], "sk") == (expected if forward else expected[::-1])
    assert (page["Count"], page["ScannedCount"]) == (len(expected), len(expected))
    assert "LastEvaluatedKey" not in page


def test_order_of_numbers(dynamodb, numbers):
    assert names_in(query(dynamodb, numbers)["Items"], "sk") == NUMBERS
    assert names_in(query(dynamodb, numbers, ScanIndexForward=False)["Items"], "sk") == NUMBERS[::-1]


def test_order_of_strings(dynamodb, strings):
    assert names_in(query(dynamodb, strings)["Items"], "sk") == STRINGS


def test_order_of_binaries(dynamodb):
    table = create_table(dynamodb, keys="pk:S,sk:B")
    for data in reversed(BINARIES):
        dynamodb.put_item(TableName=table, Item={"pk": s("p"), "sk": b(data)})
    assert names_in(query(dynamodb, table)["Items"], "sk") == BINARIES
    page = query(dynamodb, table, "pk = :pk AND begins_with(sk, :v)", {":v": b(b"\x00")})
    assert names_in(page["Items"], "sk") == [b"\x00", b"\x00\x00", b"\x00\xff"]
    page = query(dynamodb, table, "pk = :pk AND begins_with(sk, :v)", {":v": b(b"\xff")})
    assert names_in(page["Items"], "sk") == [b"\xff", b"\xff\x00"]


@pytest.mark.parametrize(
    ("prefix", "expected"), [
        ("a", ["a", "a\0", "a\0b", "a\x01", "aa", "ab"]),
        ("a\0", ["a\0", "a\0b"]),
        ("ab", ["ab"]),
        ("x", []),
        ("\ufffd", ["\ufffd"]),
    ]
)
def test_prefixes(dynamodb, strings, prefix, expected):
    page = query(dynamodb, strings, "begins_with(sk, :v) AND pk = :pk", {":v": s(prefix)})
    assert names_in(page["Items"], "sk") == expected


@pytest.mark.parametrize("limit", [1, 3, 4, 10, 100])
@pytest.mark.parametrize("forward", [True, False])
def test_paging_visits_each_item_once(dynamodb, numbers, limit, forward):
    items = all_items(
        dynamodb.query, TableName=numbers, KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": s("p")}, Limit=limit, ScanIndexForward=forward,
    )
    assert names_in(items, "sk") == (NUMBERS if forward else NUMBERS[::-1])


def test_a_page_that_ends_by_its_limit_has_a_last_key(dynamodb, numbers):
    page = query(dynamodb, numbers, Limit=len(NUMBERS))
    assert page["Count"] == len(NUMBERS)
    assert page["LastEvaluatedKey"] == {"pk": s("p"), "sk": n(NUMBERS[-1])}
    rest = query(dynamodb, numbers, Limit=5, ExclusiveStartKey=page["LastEvaluatedKey"])
    assert (rest["Items"], rest["Count"]) == ([], 0)
    assert "LastEvaluatedKey" not in rest


def test_a_start_key_need_not_exist(dynamodb, numbers):
    page = query(dynamodb, numbers, ExclusiveStartKey={"pk": s("p"), "sk": n("9.5")})
    assert names_in(page["Items"], "sk") == NUMBERS[NUMBERS.index("10"):]


def test_filters_come_after_the_limit(dynamodb, numbers):
    page = query(dynamodb, numbers, values={":v": n(7)}, Limit=4, FilterExpression="odd = :v")
    assert (page["Items"], page["Count"], page["ScannedCount"]) == ([], 0, 4)
    assert page["LastEvaluatedKey"] == {"pk": s("p"), "sk": n(NUMBERS[3])}


def test_a_page_ends_at_a_megabyte(dynamodb):
    table = create_table(dynamodb, keys="pk:S,sk:N")
    for number in range(6):
        put(dynamodb, table, pk="p", sk=number, filler="x" * 300_000)
    page = query(dynamodb, table)
    assert names_in(page["Items"], "sk") == ["0", "1", "2", "3"]
    assert page["LastEvaluatedKey"] == {"pk": s("p"), "sk": n(3)}
    counted = query(dynamodb, table, Select="COUNT")
    assert counted["Count"] == 4
    assert "Items" not in counted
    rest = query(dynamodb, table, ExclusiveStartKey=page["LastEvaluatedKey"])
    assert names_in(rest["Items"], "sk") == ["4", "5"]
    assert "LastEvaluatedKey" not in rest


def test_projection(dynamodb, range_table, key):
    put(dynamodb, range_table, pk=key, sk=1, a={"b": 1, "c": [1, 2, 3]}, d="x", hidden="y")
    page = query(
        dynamodb, range_table, values={":pk": s(key)},
        ProjectionExpression="a.c[2], a.c[0], #d, nowhere", ExpressionAttributeNames={"#d": "d"},
    )
    assert page["Items"] == [item(a={"c": [1, 3]}, d="x")]


REFUSALS = {
    "no condition": (
        {"KeyConditionExpression": None, "ExpressionAttributeValues": None},
        "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
    ),
    "no partition key": (
        {"KeyConditionExpression": "sk = :n", "ExpressionAttributeValues": {":n": n(1)}},
        "Query condition missed key schema element: pk",
    ),
    "not a key": (
        {"KeyConditionExpression": "pk = :pk AND other1 = :pk"},
        "Query condition missed key schema element: sk",
    ),
    "range on the partition key": ({"KeyConditionExpression": "pk > :pk"}, "Query key condition not supported"),
    "OR": (
        {"KeyConditionExpression": "pk = :pk OR sk = :pk"},
        "Invalid operator used in KeyConditionExpression: OR",
    ),
    "<>": (
        {"KeyConditionExpression": "pk = :pk AND sk <> :pk"},
        "Invalid operator used in KeyConditionExpression: <>",
    ),
    "contains": (
        {"KeyConditionExpression": "pk = :pk AND contains(sk, :pk)"},
        "Invalid operator used in KeyConditionExpression: contains",
    ),
    "size": (
        {"KeyConditionExpression": "pk = :pk AND size(sk) = :pk"},
        "KeyConditionExpressions cannot contain nested operations",
    ),
    "twice": (
        {"KeyConditionExpression": "pk = :pk AND pk = :pk"},
        "KeyConditionExpressions must only contain one condition per key",
    ),
    "nested": (
        {"KeyConditionExpression": "pk = :pk AND sk.a = :pk"},
        "KeyConditionExpressions cannot have conditions on nested attributes",
    ),
    "type": (
        {"KeyConditionExpression": "pk = :pk AND sk = :pk"},
        P + "Condition parameter type does not match schema type",
    ),
    "prefix of a number": (
        {"KeyConditionExpression": "pk = :pk AND begins_with(sk, :pk)"},
        P + "Condition parameter type does not match schema type",
    ),
    "reversed": (
        {"KeyConditionExpression": "pk = :pk AND sk BETWEEN :hi AND :lo",
         "ExpressionAttributeValues": {":pk": s("p"), ":hi": n(2), ":lo": n(1)}},
        "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal to "
        "lower bound; lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}",
    ),
    "empty partition key": (
        {"ExpressionAttributeValues": {":pk": s("")}},
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an "
        "empty string value. Key: pk",
    ),
    "unknown index": ({"IndexName": "nope"}, "The table does not have the specified index: nope"),
    "filter on a key": (
        {"FilterExpression": "sk = :pk"},
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: sk",
    ),
    "projection and ALL_ATTRIBUTES": (
        {"ProjectionExpression": "a", "Select": "ALL_ATTRIBUTES"},
        "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES",
    ),
    "projection and COUNT": (
        {"ProjectionExpression": "a", "Select": "COUNT"},
        "Cannot specify the ProjectionExpression when choosing to get only the Count",
    ),
    "no projection": (
        {"Select": "SPECIFIC_ATTRIBUTES"},
        "1 validation error detected: Must specify the AttributesToGet or ProjectionExpression when choosing to get "
        "SPECIFIC_ATTRIBUTES",
    ),
    "projected attributes of a table": (
        {"Select": "ALL_PROJECTED_ATTRIBUTES"},
        "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
    ),
    "no limit": (
        {"Limit": 0},
        "1 validation error detected: Value at 'Limit' failed to satisfy constraint: "
        "Member must have value greater than or equal to 1",
    ),
    "start key of another shape": (
        {"ExclusiveStartKey": item(pk="p")},
        "The provided starting key is invalid",
    ),
    "start key of another partition": (
        {"ExclusiveStartKey": item(pk="q", sk=1)},
        "The provided starting key is outside query boundaries based on provided conditions",
    ),
    "overlapping projection": (
        {"ProjectionExpression": "a, a.b"},
        "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of "
        "these paths; path one: [a], path two: [a, b]",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal(dynamodb, numbers, case):
    changes, message = REFUSALS[case]
    request = {
        "TableName": numbers,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": s("p")},
    } | changes
    with invalid(message):
        dynamodb.query(**{name: value for name, value in request.items() if value is not None})


def test_a_sort_condition_on_a_table_without_sort_key(dynamodb, hash_table):
    with invalid("Query key condition not supported"):
        query(dynamodb, hash_table, "pk = :pk AND sk = :pk")


def test_a_start_key_outside_the_range(dynamodb, numbers):
    with invalid("The provided starting key does not match the range key predicate"):
        query(
            dynamodb, numbers, "pk = :pk AND sk > :v", {":v": n(10)},
            ExclusiveStartKey={"pk": s("p"), "sk": n(1)},
        )


def test_a_missing_table(dynamodb):
    with missing_resource():
        query(dynamodb, "missing")
