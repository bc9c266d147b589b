"""Getting, putting and deleting; table names in all their forms."""

import pytest

from support import create_table, get, invalid, item, missing_resource, put, without_metadata


def test_put_replaces_the_whole_item(dynamodb, hash_table, key):
    put(dynamodb, hash_table, pk=key, a=1, b=2)
    assert without_metadata(dynamodb.put_item(TableName=hash_table, Item=item(pk=key, c=3))) == {}
    assert get(dynamodb, hash_table, pk=key) == item(pk=key, c=3)


def test_a_missing_item_is_no_error(dynamodb, hash_table, key):
    assert without_metadata(dynamodb.get_item(TableName=hash_table, Key=item(pk=key))) == {}
    assert without_metadata(dynamodb.delete_item(TableName=hash_table, Key=item(pk=key))) == {}


def test_a_projection_that_finds_nothing_gives_an_empty_item(dynamodb, hash_table, key):
    put(dynamodb, hash_table, pk=key)
    answer = dynamodb.get_item(TableName=hash_table, Key=item(pk=key), ProjectionExpression="a, b.c[1]")
    assert answer["Item"] == {}


PROJECTIONS = [
    ("a", item(a={"b": {"c": 1, "d": 2}, "list": [10, 11, 12]})),
    ("a.b.c", item(a={"b": {"c": 1}})),
    ("a.b.c, a.b.d", item(a={"b": {"c": 1, "d": 2}})),
    ("a.#list[2], a.#list[0]", item(a={"list": [10, 12]})),
    ("a.#list[7], z", item(z=1)),
    ("#dotted", {"x.y": {"S": "dot"}}),
]


@pytest.mark.parametrize(("expression", "expected"), PROJECTIONS)
def test_projections(dynamodb, hash_table, key, expression, expected):
    stored = item(pk=key, a={"b": {"c": 1, "d": 2}, "list": [10, 11, 12]}, z=1) | {"x.y": {"S": "dot"}}
    dynamodb.put_item(TableName=hash_table, Item=stored)
    names = {"#list": "list", "#dotted": "x.y"}
    names = {placeholder: name for placeholder, name in names.items() if placeholder in expression}
    request = {"TableName": hash_table, "Key": item(pk=key), "ProjectionExpression": expression}
    if names:
        request["ExpressionAttributeNames"] = names
    assert dynamodb.get_item(**request)["Item"] == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "",
            "1 validation error detected: Value '' at 'tableName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1",
        ),
        (
            "with space",
            "1 validation error detected: Value 'with space' at 'tableName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
        ),
    ],
)
def test_bad_table_names(dynamodb, name, message):
    with invalid(message):
        dynamodb.get_item(TableName=name, Key=item(pk="x"))


def test_missing_tables(dynamodb):
    for operation in ("get_item", "delete_item", "update_item"):
        with missing_resource():
            getattr(dynamodb, operation)(TableName="missing", Key=item(pk="x"))
    with missing_resource():
        dynamodb.put_item(TableName="missing", Item=item(pk="x"))


def test_no_table_name(dynamodb):
    message = (
        "1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null"
    )
    with invalid(message):
        dynamodb.get_item(Key=item(pk="x"))


def test_an_arn_is_a_table_name(dynamodb, key):
    name = create_table(dynamodb, keys="pk:S")
    arn = dynamodb.describe_table(TableName=name)["Table"]["TableArn"]
    dynamodb.put_item(TableName=arn, Item=item(pk=key))
    assert get(dynamodb, arn, pk=key) == item(pk=key)
    assert dynamodb.describe_table(TableName=arn)["Table"]["TableName"] == name
    assert dynamodb.scan(TableName=arn)["Count"] == 1
    answer = dynamodb.query(
        TableName=arn, KeyConditionExpression="pk = :v", ExpressionAttributeValues={":v": {"S": key}}
    )
    assert answer["Count"] == 1
    dynamodb.batch_write_item(RequestItems={arn: [{"PutRequest": {"Item": item(pk=key + "2")}}]})
    dynamodb.transact_write_items(TransactItems=[{"Delete": {"TableName": arn, "Key": item(pk=key)}}])
    assert get(dynamodb, name, pk=key) is None
    assert get(dynamodb, name, pk=key + "2") == item(pk=key + "2")
    dynamodb.delete_table(TableName=arn)
    with missing_resource(f"Requested resource not found: Table: {name} not found"):
        dynamodb.describe_table(TableName=name)


def test_an_arn_of_another_region(dynamodb, hash_table):
    arn = dynamodb.describe_table(TableName=hash_table)["Table"]["TableArn"].replace("us-east-1", "us-west-2")
    with invalid(f"1 validation error detected: Invalid AWS region in '{arn}'"):
        dynamodb.get_item(TableName=arn, Key=item(pk="x"))
