"""TransactWriteItems and TransactGetItems."""

import pytest

from support import (
    condition_failed, create_table, get, invalid, item, missing_resource, n, put, refused, s, unique_name,
)

CANCELLED = "Transaction cancelled, please refer cancellation reasons for specific reasons"
FAILED = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
NONE = {"Code": "None"}


class Actions:
    """Actions on one table, in the short form."""

    def __init__(self, table):
        self.table = table

    def put(self, attributes, **more):
        return {"Put": {"TableName": self.table, "Item": attributes, **more}}

    def update(self, key, expression, values, **more):
        return {"Update": {"TableName": self.table, "Key": key, "UpdateExpression": expression,
                           "ExpressionAttributeValues": values, **more}}

    def delete(self, key, **more):
        return {"Delete": {"TableName": self.table, "Key": key, **more}}

    def check(self, key, condition, **more):
        return {"ConditionCheck": {"TableName": self.table, "Key": key, "ConditionExpression": condition, **more}}


@pytest.fixture(scope="module")
def act(hash_table):
    return Actions(hash_table)


def cancelled(*codes):
    return refused("TransactionCanceledException", f"{CANCELLED} [{', '.join(codes)}]")


def reasons(caught):
    return caught.value.response["CancellationReasons"]


def test_all_kinds_of_actions_over_tables(dynamodb, act, range_table, key):
    put(dynamodb, act.table, pk=key + "update", a=1)
    put(dynamodb, act.table, pk=key + "delete")
    put(dynamodb, act.table, pk=key + "check", open=True)
    dynamodb.transact_write_items(TransactItems=[
        act.put(item(pk=key + "put")),
        act.update(item(pk=key + "update"), "SET a = a + :one", {":one": n(1)}),
        act.delete(item(pk=key + "delete")),
        act.check(item(pk=key + "check"), "attribute_exists(pk)"),
        Actions(range_table).put(item(pk=key, sk=1)),
    ])
    assert get(dynamodb, act.table, pk=key + "put") == item(pk=key + "put")
    assert get(dynamodb, act.table, pk=key + "update") == item(pk=key + "update", a=2)
    assert get(dynamodb, act.table, pk=key + "delete") is None
    assert get(dynamodb, range_table, pk=key, sk=1) == item(pk=key, sk=1)


def test_a_failed_condition_cancels_everything(dynamodb, act, key):
    put(dynamodb, act.table, pk=key, a=1)
    absent = {"ConditionExpression": "attribute_not_exists(pk)"}
    with cancelled("None", "ConditionalCheckFailed", "ConditionalCheckFailed") as caught:
        dynamodb.transact_write_items(TransactItems=[
            act.put(item(pk=key + "new")),
            act.put(item(pk=key), ReturnValuesOnConditionCheckFailure="ALL_OLD", **absent),
            act.check(item(pk=key + "other"), "attribute_exists(pk)"),
        ])
    assert reasons(caught) == [NONE, FAILED | {"Item": item(pk=key, a=1)}, FAILED]
    assert get(dynamodb, act.table, pk=key + "new") is None
    assert get(dynamodb, act.table, pk=key) == item(pk=key, a=1)


SCHEMA = "The provided key element does not match the schema"


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda act, key: act.delete(item(pk=5)), SCHEMA),
        (lambda act, key: act.delete({"sk": s(key)}), SCHEMA),
        (lambda act, key: act.check(item(pk=5), "attribute_exists(pk)"), SCHEMA),
        (
            lambda act, key: act.update(item(pk=key), "SET a = nowhere + :one", {":one": n(1)}),
            "The provided expression refers to an attribute that does not exist in the item",
        ),
        (
            lambda act, key: act.update(item(pk=key), "SET a.b = :one", {":one": n(1)}),
            "The document path provided in the update expression is invalid for update",
        ),
        (
            lambda act, key: act.update(item(pk=key), "ADD word :one", {":one": n(1)}),
            "An operand in the update expression has an incorrect data type",
        ),
    ],
)
def test_validation_reasons(dynamodb, act, key, action, message):
    put(dynamodb, act.table, pk=key, word="x")
    with cancelled("None", "ValidationError") as caught:
        dynamodb.transact_write_items(TransactItems=[act.put(item(pk=key + "new")), action(act, key)])
    assert reasons(caught) == [NONE, {"Code": "ValidationError", "Message": message}]
    assert get(dynamodb, act.table, pk=key + "new") is None


REFUSALS = {
    "two actions on one item": (
        lambda act: [act.put(item(pk="a")), act.delete(item(pk="a"))],
        "Transaction request cannot include multiple operations on one item",
    ),
    "no action": (lambda act: [{}], "TransactItems can only contain one of Check, Put, Update or Delete"),
    "two actions in one element": (
        lambda act: [act.put(item(pk="a")) | act.delete(item(pk="b"))],
        "TransactItems can only contain one of Check, Put, Update or Delete",
    ),
    "no items": (
        lambda act: [],
        "1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: "
        "Member must have length greater than or equal to 1",
    ),
    "oversize": (
        lambda act: [act.put(item(pk="a", f="x" * 409_600))], "Item size has exceeded the maximum allowed size",
    ),
    "empty key": (
        lambda act: [act.put(item(pk=""))],
        "One or more parameter values are not valid. "
        "The AttributeValue for a key attribute cannot contain an empty string value. Key: pk",
    ),
    "syntax": (
        lambda act: [act.check(item(pk="a"), "name = pk")],
        "Invalid ConditionExpression: Attribute name is a reserved keyword; reserved keyword: name",
    ),
    "bad number": (
        lambda act: [act.put({"pk": s("a"), "v": {"N": "x"}})],
        "The parameter cannot be converted to a numeric value: x",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(dynamodb, act, case):
    actions, message = REFUSALS[case]
    with invalid(message):
        dynamodb.transact_write_items(TransactItems=actions(act))


def test_a_check_needs_a_condition(dynamodb, act):
    message = (
        "1 validation error detected: Value null at 'transactItems.1.member.conditionCheck.conditionExpression' "
        "failed to satisfy constraint: Member must not be null"
    )
    with invalid(message):
        dynamodb.transact_write_items(
            TransactItems=[{"ConditionCheck": {"TableName": act.table, "Key": item(pk="a")}}]
        )


def test_a_missing_table(dynamodb, act, key):
    with missing_resource():
        dynamodb.transact_write_items(
            TransactItems=[act.put(item(pk=key)), Actions("missing").put(item(pk="a"))]
        )
    assert get(dynamodb, act.table, pk=key) is None
    with missing_resource():
        dynamodb.transact_get_items(TransactItems=[{"Get": {"TableName": "missing", "Key": item(pk="a")}}])


def test_a_hundred_actions(dynamodb, key):
    act = Actions(create_table(dynamodb, keys="pk:S,sk:N"))
    dynamodb.transact_write_items(TransactItems=[act.put(item(pk=key, sk=number)) for number in range(100)])
    gets = [{"Get": {"TableName": act.table, "Key": item(pk=key, sk=number)}} for number in range(100)]
    answer = dynamodb.transact_get_items(TransactItems=gets)
    assert [entry["Item"]["sk"] for entry in answer["Responses"]] == [n(number) for number in range(100)]
    with pytest.raises(dynamodb.exceptions.ClientError) as caught:
        dynamodb.transact_write_items(TransactItems=[act.put(item(pk=key, sk=number)) for number in range(101)])
    assert caught.value.response["Error"]["Message"].endswith(
        "at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100"
    )


def test_conditions_see_the_state_before(dynamodb, act, key):
    put(dynamodb, act.table, pk=key + "a", v=1)
    dynamodb.transact_write_items(TransactItems=[
        act.delete(item(pk=key + "a")),
        act.update(item(pk=key + "b"), "SET v = :one", {":one": n(1)}, ConditionExpression="attribute_not_exists(pk)"),
    ])
    assert get(dynamodb, act.table, pk=key + "a") is None
    assert get(dynamodb, act.table, pk=key + "b") == item(pk=key + "b", v=1)


def test_get_answers_in_order(dynamodb, act, key):
    put(dynamodb, act.table, pk=key, a=1, b=2)

    def entry(**more):
        return {"Get": {"TableName": act.table, "Key": item(pk=key), **more}}

    other = {"Get": {"TableName": act.table, "Key": item(pk=key + "none")}}
    answer = dynamodb.transact_get_items(TransactItems=[other, entry(ProjectionExpression="a")])
    assert answer["Responses"] == [{}, {"Item": item(a=1)}]
    # A projection that finds nothing leaves no item.
    answer = dynamodb.transact_get_items(TransactItems=[entry(ProjectionExpression="nowhere")])
    assert answer["Responses"] == [{}]
    with invalid("Transaction request cannot include multiple operations on one item"):
        dynamodb.transact_get_items(TransactItems=[entry(), entry()])


@pytest.mark.parametrize(
    ("key_given", "message"),
    [
        (item(pk=1), SCHEMA),
        (item(sk="a"), SCHEMA),
        (
            item(pk=""),
            "One or more parameter values are not valid. "
            "The AttributeValue for a key attribute cannot contain an empty string value. Key: pk",
        ),
    ],
)
def test_bad_keys_of_get_are_reasons(dynamodb, act, key, key_given, message):
    good = {"Get": {"TableName": act.table, "Key": item(pk=key)}}
    bad = {"Get": {"TableName": act.table, "Key": key_given}}
    with cancelled("None", "ValidationError") as caught:
        dynamodb.transact_get_items(TransactItems=[good, bad])
    assert reasons(caught) == [NONE, {"Code": "ValidationError", "Message": message}]


def test_a_token_makes_it_happen_once(dynamodb, act, key):
    token = unique_name("token")[:36]

    def increment(by):
        return dynamodb.transact_write_items(
            ClientRequestToken=token, TransactItems=[act.update(item(pk=key), "ADD v :by", {":by": n(by)})],
            ReturnConsumedCapacity="TOTAL",
        )

    first = increment(1)
    assert first["ConsumedCapacity"][0]["WriteCapacityUnits"] == 2.0
    replay = increment(1)
    assert replay["ConsumedCapacity"][0]["ReadCapacityUnits"] == 2.0
    assert get(dynamodb, act.table, pk=key)["v"] == n(1)
    with pytest.raises(dynamodb.exceptions.IdempotentParameterMismatchException):
        increment(2)
    assert get(dynamodb, act.table, pk=key)["v"] == n(1)


def test_a_cancelled_transaction_is_not_remembered(dynamodb, act, key):
    token = unique_name("token")[:36]
    request = {
        "ClientRequestToken": token,
        "TransactItems": [
            act.update(item(pk=key), "ADD v :one", {":one": n(1)}, ConditionExpression="attribute_exists(pk)")
        ],
    }
    with cancelled("ConditionalCheckFailed"):
        dynamodb.transact_write_items(**request)
    put(dynamodb, act.table, pk=key)
    dynamodb.transact_write_items(**request)
    assert get(dynamodb, act.table, pk=key)["v"] == n(1)


def test_a_long_token(dynamodb, act):
    message = (
        f"1 validation error detected: Value '{'t' * 37}' at 'clientRequestToken' failed to satisfy constraint: "
        "Member must have length less than or equal to 36"
    )
    with invalid(message):
        dynamodb.transact_write_items(ClientRequestToken="t" * 37, TransactItems=[act.put(item(pk="a"))])


def test_index_keys_of_the_wrong_type_are_reasons(dynamodb, key):
    act = Actions(create_table(dynamodb, keys="pk:S", gsi=[("idx", "g:S")]))
    with cancelled("ValidationError") as caught:
        dynamodb.transact_write_items(TransactItems=[act.put(item(pk=key, g=1))])
    message = (
        "One or more parameter values were invalid: "
        "Type mismatch for Index Key g Expected: S Actual: N IndexName: idx"
    )
    assert reasons(caught) == [{"Code": "ValidationError", "Message": message}]
    put(dynamodb, act.table, pk=key, g="x")
    with condition_failed():
        dynamodb.delete_item(
            TableName=act.table, Key=item(pk=key), ConditionExpression="attribute_not_exists(g)"
        )
