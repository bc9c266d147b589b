"""Attribute values: what is stored, what comes back, what is refused."""

import pytest

from support import P, create_table, get, invalid, item, n, refused, s


def nested(levels, inner):
    """`inner` inside so many lists."""
    for _ in range(levels):
        inner = {"L": [inner]}
    return inner


def put_value(dynamodb, table, key, value):
    dynamodb.put_item(TableName=table, Item={"pk": s(key), "v": value})


VALUES = {
    "string": {"S": "text with ünïcödé and \U0001f600"},
    "empty string": {"S": ""},
    "number": {"N": "-12.5"},
    "binary": {"B": bytes(range(256))},
    "empty binary": {"B": b""},
    "true": {"BOOL": True},
    "false": {"BOOL": False},
    "null": {"NULL": True},
    "list": {"L": [{"S": "a"}, {"N": "1"}, {"L": []}, {"NULL": True}]},
    "empty list": {"L": []},
    "map": {"M": {"a.b": {"S": "x"}, " ": {"S": "a blank member name"}, "m": {"M": {}}}},
    "empty map": {"M": {}},
    "deepest list": nested(31, {"S": "bottom"}),
    "set with an empty string": {"SS": [""]},
}


@pytest.mark.parametrize("case", VALUES)
def test_round_trip(dynamodb, hash_table, key, case):
    put_value(dynamodb, hash_table, key, VALUES[case])
    assert get(dynamodb, hash_table, pk=key) == {"pk": s(key), "v": VALUES[case]}


@pytest.mark.parametrize(
    ("kind", "members"),
    [("SS", ["b", "a", "ü"]), ("NS", ["2", "-1", "10"]), ("BS", [b"\x00", b"", b"\xff\x01"])],
)
def test_sets_have_no_order(dynamodb, hash_table, key, kind, members):
    put_value(dynamodb, hash_table, key, {kind: members})
    stored = get(dynamodb, hash_table, pk=key)["v"]
    assert stored.keys() == {kind}
    assert sorted(stored[kind]) == sorted(members)


NINES = "9" * 38
NUMBERS = {
    "0": "0",
    "-0": "0",
    "+5": "5",
    ".5": "0.5",
    "5.": "5",
    "00042": "42",
    "1.500": "1.5",
    "1e3": "1000",
    "1E+2": "100",
    "12.5e-1": "1.25",
    "-1e-5": "-0.00001",
    NINES: NINES,
    "0." + NINES: "0." + NINES,
    "1." + "0" * 50: "1",
    "1E125": "1" + "0" * 125,
    "9.9999999999999999999999999999999999999E+125": NINES + "0" * 88,
    "-9.9999999999999999999999999999999999999E+125": "-" + NINES + "0" * 88,
    "1E-130": "0." + "0" * 129 + "1",
    "12345678901234567890123456789012345678": "12345678901234567890123456789012345678",
}


@pytest.mark.parametrize("written", NUMBERS)
def test_numbers_are_exact_and_canonical(dynamodb, hash_table, key, written):
    put_value(dynamodb, hash_table, key, n(written))
    assert get(dynamodb, hash_table, pk=key)["v"] == n(NUMBERS[written])


OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
NOT_NUMERIC = "The parameter cannot be converted to a numeric value"
BAD_NUMBERS = {
    "": NOT_NUMERIC,
    "abc": NOT_NUMERIC + ": abc",
    "1 ": NOT_NUMERIC + ": 1 ",
    "NaN": NOT_NUMERIC + ": NaN",
    "Infinity": NOT_NUMERIC + ": Infinity",
    "0x10": NOT_NUMERIC + ": 0x10",
    "1_000": NOT_NUMERIC + ": 1_000",
    "1e": NOT_NUMERIC + ": 1e",
    ".": NOT_NUMERIC + ": .",
    "1E126": OVERFLOW,
    "-1E126": OVERFLOW,
    "1E-131": UNDERFLOW,
    "1" * 39: "Attempting to store more than 38 significant digits in a Number",
}


@pytest.mark.parametrize("number", BAD_NUMBERS)
def test_bad_numbers(dynamodb, hash_table, key, number):
    with invalid(BAD_NUMBERS[number]):
        put_value(dynamodb, hash_table, key, {"N": number})
    with invalid(BAD_NUMBERS[number]):
        put_value(dynamodb, hash_table, key, {"NS": ["1", number]})
    assert get(dynamodb, hash_table, pk=key) is None


TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)
BAD_VALUES = {
    "no type": ({}, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"),
    "two types": (
        {"S": "a", "N": "1"},
        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
    ),
    "a bad number before two types": ({"S": "a", "N": "x"}, NOT_NUMERIC + ": x"),
    "false null": ({"NULL": False}, P + "Null attribute value types must have the value of true"),
    "empty string set": ({"SS": []}, P + "An string set  may not be empty"),
    "empty number set": ({"NS": []}, P + "An number set  may not be empty"),
    "empty binary set": ({"BS": []}, P + "Binary sets should not be empty"),
    "duplicate strings": ({"SS": ["a", "a"]}, P + "Input collection [a, a] contains duplicates."),
    "duplicate numbers": ({"NS": ["1", "1.0"]}, "Input collection contains duplicates"),
    "duplicate binaries": (
        {"BS": [b"b", b"b"]},
        P + "Input collection [Yg==, Yg==]of type BS contains duplicates.",
    ),
    "inside a list": ({"L": [{"SS": []}]}, P + "An string set  may not be empty"),
    "inside a map": ({"M": {"x": {"N": "y"}}}, NOT_NUMERIC + ": y"),
    "too deep": (nested(32, {"S": "bottom"}), TOO_DEEP),
}


@pytest.mark.parametrize("case", BAD_VALUES)
def test_bad_values(dynamodb, hash_table, key, case):
    value, message = BAD_VALUES[case]
    with invalid(message):
        put_value(dynamodb, hash_table, key, value)
    assert get(dynamodb, hash_table, pk=key) is None


def test_a_json_number_is_not_a_number(dynamodb, hash_table, key):
    with refused("SerializationException", "NUMBER_VALUE cannot be converted to String"):
        put_value(dynamodb, hash_table, key, {"N": 3})


def test_the_largest_item(dynamodb, hash_table, key):
    room = 409_600 - len("pk") - len(key) - len("v")
    put_value(dynamodb, hash_table, key, s("x" * room))
    assert len(get(dynamodb, hash_table, pk=key)["v"]["S"]) == room
    with invalid("Item size has exceeded the maximum allowed size"):
        put_value(dynamodb, hash_table, key, s("x" * (room + 1)))


def test_an_update_cannot_outgrow_an_item(dynamodb, hash_table, key):
    put_value(dynamodb, hash_table, key, s("x" * 400_000))
    with invalid("Item size to update has exceeded the maximum allowed size"):
        dynamodb.update_item(
            TableName=hash_table, Key=item(pk=key), UpdateExpression="SET w = :w",
            ExpressionAttributeValues={":w": s("y" * 10_000)},
        )


EMPTY_KEY = (
    "One or more parameter values are not valid. "
    "The AttributeValue for a key attribute cannot contain an empty string value. Key: pk"
)
SCHEMA = "The provided key element does not match the schema"
BAD_ITEMS = {
    "no partition key": (item(sk=1), P + "Missing the key pk in the item"),
    "no sort key": (item(pk="a"), P + "Missing the key sk in the item"),
    "mistyped partition key": (item(pk=1, sk=1), P + "Type mismatch for key pk expected: S actual: N"),
    "mistyped sort key": (item(pk="a", sk="1"), P + "Type mismatch for key sk expected: N actual: S"),
    "a list for a key": (item(pk=["a"], sk=1), P + "Type mismatch for key pk expected: S actual: L"),
    "empty key": (item(pk="", sk=1), EMPTY_KEY),
    "long key": (
        item(pk="x" * 2049, sk=1),
        P + "Size of hashkey has exceeded the maximum size limit of2048 bytes",
    ),
}


@pytest.mark.parametrize("case", BAD_ITEMS)
def test_bad_keys_of_items(dynamodb, range_table, case):
    attributes, message = BAD_ITEMS[case]
    with invalid(message):
        dynamodb.put_item(TableName=range_table, Item=attributes)


BAD_KEYS = {
    "too few": (item(pk="a"), SCHEMA),
    "too many": (item(pk="a", sk=1, more=1), SCHEMA),
    "another name": (item(pk="a", other=1), SCHEMA),
    "another type": (item(pk="a", sk="1"), SCHEMA),
    "empty": (item(pk="", sk=1), EMPTY_KEY),
}


@pytest.mark.parametrize("operation", ["get_item", "delete_item", "update_item"])
@pytest.mark.parametrize("case", BAD_KEYS)
def test_bad_keys(dynamodb, range_table, operation, case):
    key, message = BAD_KEYS[case]
    with invalid(message):
        getattr(dynamodb, operation)(TableName=range_table, Key=key)


def test_the_longest_keys(dynamodb):
    table = create_table(dynamodb, keys="pk:S,sk:B")
    longest = item(pk="x" * 2048, sk=b"y" * 1024)
    dynamodb.put_item(TableName=table, Item=longest)
    assert dynamodb.get_item(TableName=table, Key=longest)["Item"] == longest
    message = P + "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
    with invalid(message):
        dynamodb.put_item(TableName=table, Item=item(pk="x", sk=b"y" * 1025))


@pytest.mark.parametrize("spelling", ["1000", "1e3", "1000.0", "+1000"])
def test_a_numeric_key_is_its_value(dynamodb, range_table, key, spelling):
    dynamodb.put_item(TableName=range_table, Item={"pk": s(key), "sk": n(spelling)})
    found = dynamodb.get_item(TableName=range_table, Key={"pk": s(key), "sk": n("1000")})["Item"]
    assert found == {"pk": s(key), "sk": n("1000")}


def test_names_need_no_particular_form(dynamodb, hash_table, key):
    attributes = item(pk=key) | {"with.dot": s("a"), "Ünï code": s("b"), "a" * 1000: s("c"), "SIZE": s("d")}
    dynamodb.put_item(TableName=hash_table, Item=attributes)
    assert get(dynamodb, hash_table, pk=key) == attributes
