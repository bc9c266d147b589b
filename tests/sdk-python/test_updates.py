"""Update expressions: what they make of an item, and what they refuse."""

import pytest

from support import P, get, invalid, item, n, put, s

BEFORE = item(a=1, b=2, word="x", list=["l0", "l1", "l2"], map={"m": 1}) | {"tags": {"SS": ["t1", "t2"]}}


def after(**changes):
    """BEFORE with some attributes replaced (None: removed)."""
    result = BEFORE | {name: value for name, value in changes.items() if value is not None}
    return {name: value for name, value in result.items() if changes.get(name, value) is not None}


def strings(*elements):
    return {"L": [s(element) for element in elements]}


CASES = {
    "set": ("SET a = :v", s("new"), after(a=s("new"))),
    "set from another": ("SET a = b, b = a", None, after(a=n(2), b=n(1))),
    "add numbers": ("SET a = a + :v", n("0.5"), after(a=n("1.5"))),
    "subtract": ("SET a = b - a", None, after(a=n(1))),
    "if present": ("SET a = if_not_exists(a, :v)", n(9), after()),
    "if missing": ("SET c = if_not_exists(c, :v)", n(9), after(c=n(9))),
    "count up from nothing": ("SET c = if_not_exists(c, :v) + :v", n(1), after(c=n(2))),
    "append": ("SET #list = list_append(#list, :v)", strings("z"), after(list=strings("l0", "l1", "l2", "z"))),
    "prepend": ("SET #list = list_append(:v, #list)", strings("z"), after(list=strings("z", "l0", "l1", "l2"))),
    "append to nothing": ("SET c = list_append(if_not_exists(c, :v), :v)", strings("z"), after(c=strings("z", "z"))),
    "replace an element": ("SET #list[1] = :v", s("z"), after(list=strings("l0", "z", "l2"))),
    "beyond the end": ("SET #list[90] = :v", s("z"), after(list=strings("l0", "l1", "l2", "z"))),
    "nested": ("SET #map.n = :v", n(2), after(map={"M": {"m": n(1), "n": n(2)}})),
    "remove": ("REMOVE a, b", None, after(a=None, b=None)),
    "remove missing": ("REMOVE nowhere", None, after()),
    "remove elements": ("REMOVE #list[0], #list[1], #list[7]", None, after(list=strings("l2"))),
    "remove nested": ("REMOVE #map.m", None, after(map={"M": {}})),
    "add to a number": ("ADD a :v", n(-5), after(a=n(-4))),
    "add to nothing": ("ADD c :v", n(3), after(c=n(3))),
    "add to a set": ("ADD tags :v", {"SS": ["t2", "t3"]}, after(tags={"SS": ["t1", "t2", "t3"]})),
    "delete from a set": ("DELETE tags :v", {"SS": ["t1", "none"]}, after(tags={"SS": ["t2"]})),
    "delete all": ("DELETE tags :v", {"SS": ["t1", "t2"]}, after(tags=None)),
    "delete from nothing": ("DELETE nowhere :v", {"SS": ["t1"]}, after()),
    "all sections": (
        "REMOVE b ADD c :v SET a = b DELETE nowhere :w", n(1), after(a=n(2), b=None, c=n(1)),
    ),
}


def update(dynamodb, table, key, expression, value=None, **more):
    names = {"#list": "list", "#map": "map"}
    names = {placeholder: name for placeholder, name in names.items() if placeholder in expression}
    values = {":v": value} if value is not None else {}
    if ":w" in expression:
        values[":w"] = {"SS": ["w"]}
    request = {"TableName": table, "Key": item(pk=key), "UpdateExpression": expression, **more}
    if names:
        request["ExpressionAttributeNames"] = names
    if values:
        request["ExpressionAttributeValues"] = values
    return dynamodb.update_item(**request)


def with_sorted_sets(attributes):
    return {name: {"SS": sorted(value["SS"])} if "SS" in value else value for name, value in attributes.items()}


@pytest.mark.parametrize("case", CASES)
def test_update(dynamodb, hash_table, key, case):
    expression, value, expected = CASES[case]
    dynamodb.put_item(TableName=hash_table, Item=BEFORE | item(pk=key))
    answer = update(dynamodb, hash_table, key, expression, value, ReturnValues="ALL_NEW")
    assert with_sorted_sets(answer["Attributes"]) == expected | item(pk=key)
    assert with_sorted_sets(get(dynamodb, hash_table, pk=key)) == expected | item(pk=key)


INCORRECT_TYPE = "An operand in the update expression has an incorrect data type"
BAD_PATH = "The document path provided in the update expression is invalid for update"
MISSING = "The provided expression refers to an attribute that does not exist in the item"
RUNTIME = {
    "missing operand": ("SET a = nowhere + :v", n(1), MISSING),
    "missing source": ("SET a = nowhere", None, MISSING),
    "text plus number": ("SET a = #map + :v", n(1), INCORRECT_TYPE),
    "append to text": ("SET a = list_append(b, :v)", strings("z"), INCORRECT_TYPE),
    "add to text": ("ADD word :v", n(1), INCORRECT_TYPE),
    "other set type": ("ADD tags :v", {"NS": ["1"]}, INCORRECT_TYPE),
    "delete other set type": ("DELETE tags :v", {"NS": ["1"]}, INCORRECT_TYPE),
    "below nothing": ("SET nowhere.x = :v", n(1), BAD_PATH),
    "below a scalar": ("SET a.x = :v", n(1), BAD_PATH),
    "index into a map": ("SET #map[0] = :v", n(1), BAD_PATH),
    "remove below nothing": ("REMOVE nowhere.x", None, BAD_PATH),
    "sum with too many digits": (
        "SET a = a + :v", n("1e50"),
        "Number overflow. Attempting to store a number with magnitude larger than supported range",
    ),
    "key": ("SET pk = :v", n(1), P + "Cannot update attribute pk. This attribute is part of the key"),
}


@pytest.mark.parametrize("case", RUNTIME)
def test_runtime_errors_change_nothing(dynamodb, hash_table, key, case):
    expression, value, message = RUNTIME[case]
    dynamodb.put_item(TableName=hash_table, Item=BEFORE | item(pk=key))
    with invalid(message):
        update(dynamodb, hash_table, key, expression, value)
    assert with_sorted_sets(get(dynamodb, hash_table, pk=key)) == BEFORE | item(pk=key)


STATIC = [
    ("SET a = :v SET b = :v", n(1), 'The "SET" section can only be used once in an update expression;'),
    ("SET a = :v +", n(1), 'Syntax error; token: "<EOF>", near: "+"'),
    ("SET _123 = :v", n(1), 'Syntax error; token: "_", near: "SET _123"'),
    ("SET name = :v", n(1), "Attribute name is a reserved keyword; reserved keyword: name"),
    ("SET a = nope(a, :v)", n(1), "Invalid function name; function: nope"),
    (
        "SET a = :v, a.b = :v", n(1),
        "Two document paths overlap with each other; must remove or rewrite one of these paths; "
        "path one: [a], path two: [a, b]",
    ),
    (
        "SET a.b = :v REMOVE a[1]", n(1),
        "Two document paths conflict with each other; must remove or rewrite one of these paths; "
        "path one: [a, b], path two: [a, [1]]",
    ),
    (
        "ADD a :v", s("x"),
        "Incorrect operand type for operator or function; operator: ADD, operand type: STRING, "
        "typeSet: ALLOWED_FOR_ADD_OPERAND",
    ),
    (
        "DELETE a :v", n(1),
        "Incorrect operand type for operator or function; operator: DELETE, operand type: NUMBER, "
        "typeSet: ALLOWED_FOR_DELETE_OPERAND",
    ),
    (
        "SET a = list_append(:v)", strings("x"),
        "Incorrect number of operands for operator or function; "
        "operator or function: list_append, number of operands: 1",
    ),
    (
        "SET a = if_not_exists(:v, :v)", n(1),
        "Operator or function requires a document path; operator or function: if_not_exists",
    ),
    (
        "SET a = b + :v", s("x"),
        "Incorrect operand type for operator or function; operator or function: +, operand type: S",
    ),
]


@pytest.mark.parametrize(("expression", "value", "message"), STATIC, ids=[case[0] for case in STATIC])
def test_static_errors(dynamodb, hash_table, expression, value, message):
    with invalid("Invalid UpdateExpression: " + message):
        update(dynamodb, hash_table, "none", expression, value)


def test_an_update_creates_the_item(dynamodb, hash_table, key):
    update(dynamodb, hash_table, key, "SET a = :v", n(1))
    assert get(dynamodb, hash_table, pk=key) == item(pk=key, a=1)


def test_an_update_without_expression_creates_the_key(dynamodb, hash_table, key):
    dynamodb.update_item(TableName=hash_table, Key=item(pk=key))
    assert get(dynamodb, hash_table, pk=key) == item(pk=key)


@pytest.mark.parametrize("expression", ["REMOVE a", "REMOVE a.b", "DELETE a :w"])
def test_taking_away_creates_nothing(dynamodb, hash_table, key, expression):
    update(dynamodb, hash_table, key, expression)
    assert get(dynamodb, hash_table, pk=key) is None


# mode, expression, value, what comes back for BEFORE
RETURNED = [
    ("NONE", "SET a = :v", n(5), None),
    ("ALL_OLD", "SET a = :v", n(5), "old"),
    ("ALL_NEW", "SET a = :v", n(5), "new"),
    ("UPDATED_OLD", "SET a = :v, c = :v", n(5), item(a=1)),
    ("UPDATED_NEW", "SET a = :v, c = :v", n(5), item(a=5, c=5)),
    ("UPDATED_OLD", "REMOVE a", None, item(a=1)),
    ("UPDATED_NEW", "REMOVE a", None, None),
    ("UPDATED_OLD", "SET #map.m = :v", n(5), item(map={"m": 1})),
    ("UPDATED_NEW", "SET #map.n = :v", n(5), item(map={"n": 5})),
    ("UPDATED_NEW", "SET #list[2] = :v, #list[0] = :v", s("z"), {"list": strings("z", "z")}),
    ("UPDATED_NEW", "SET #list[100] = :v", s("z"), None),
    ("UPDATED_NEW", "REMOVE #list[1]", None, {"list": strings("l2")}),
    ("UPDATED_NEW", "ADD a :v", n(1), item(a=2)),
    ("UPDATED_OLD", "SET c = :v", n(1), None),
]


@pytest.mark.parametrize(("mode", "expression", "value", "expected"), RETURNED)
def test_returned_values_of_update(dynamodb, hash_table, key, mode, expression, value, expected):
    old = BEFORE | item(pk=key)
    del old["tags"]
    dynamodb.put_item(TableName=hash_table, Item=old)
    answer = update(dynamodb, hash_table, key, expression, value, ReturnValues=mode)
    if isinstance(expected, str):
        expected = {"old": old, "new": old | item(a=5)}[expected]
    assert answer.get("Attributes") == expected


@pytest.mark.parametrize("mode", ["ALL_OLD", "UPDATED_OLD"])
def test_a_new_item_has_no_old_values(dynamodb, hash_table, key, mode):
    answer = update(dynamodb, hash_table, key, "SET a = :v", n(1), ReturnValues=mode)
    assert "Attributes" not in answer


def test_returned_values_of_put_and_delete(dynamodb, hash_table, key):
    assert "Attributes" not in dynamodb.put_item(TableName=hash_table, Item=item(pk=key, a=1), ReturnValues="ALL_OLD")
    answer = dynamodb.put_item(TableName=hash_table, Item=item(pk=key, b=2), ReturnValues="ALL_OLD")
    assert answer["Attributes"] == item(pk=key, a=1)
    assert "Attributes" not in dynamodb.put_item(TableName=hash_table, Item=item(pk=key, c=3))
    answer = dynamodb.delete_item(TableName=hash_table, Key=item(pk=key), ReturnValues="ALL_OLD")
    assert answer["Attributes"] == item(pk=key, c=3)
    assert "Attributes" not in dynamodb.delete_item(TableName=hash_table, Key=item(pk=key), ReturnValues="ALL_OLD")


@pytest.mark.parametrize("mode", ["ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
@pytest.mark.parametrize("operation", ["put_item", "delete_item"])
def test_put_and_delete_return_old_values_only(dynamodb, hash_table, operation, mode):
    target = {"Item": item(pk="x")} if operation == "put_item" else {"Key": item(pk="x")}
    with invalid("ReturnValues can only be ALL_OLD or NONE"):
        getattr(dynamodb, operation)(TableName=hash_table, ReturnValues=mode, **target)


def test_unknown_return_values(dynamodb, hash_table):
    message = (
        "1 validation error detected: Value 'SOME' at 'returnValues' failed to satisfy constraint: "
        "Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
    )
    with invalid(message):
        dynamodb.update_item(TableName=hash_table, Key=item(pk="x"), ReturnValues="SOME")


def test_exact_arithmetic(dynamodb, hash_table, key):
    put(dynamodb, hash_table, pk=key)
    update(dynamodb, hash_table, key, "SET a = :v", n("0.1"))
    update(dynamodb, hash_table, key, "ADD a :v", n("0.2"))
    assert get(dynamodb, hash_table, pk=key)["a"] == n("0.3")
    update(dynamodb, hash_table, key, "SET a = :v", n("9" * 38))
    update(dynamodb, hash_table, key, "ADD a :v", n(-1))
    assert get(dynamodb, hash_table, pk=key)["a"] == n("9" * 37 + "8")
