"""The high-level interface of boto3: decimals, conditions as objects, batch writers."""

from decimal import Decimal

import pytest
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary

from support import definition


@pytest.fixture(scope="module")
def table(resource):
    created = resource.create_table(**definition(keys="pk:S,sk:N", gsi=[("by-kind", "kind:S,sk:N")]))
    created.wait_until_exists()
    return created


def test_python_values(table, key):
    stored = {
        "pk": key, "sk": Decimal(1), "text": "t", "number": Decimal("-1.25"), "data": Binary(b"\x00\xff"),
        "flag": False, "nothing": None, "list": [Decimal(1), "two", [True]], "map": {"a": {"b": Decimal("1E+30")}},
        "strings": {"a", "b"}, "numbers": {Decimal(1), Decimal("2.5")}, "binaries": {Binary(b"x")},
    }
    table.put_item(Item=stored)
    assert table.get_item(Key={"pk": key, "sk": 1})["Item"] == stored


def test_a_batch_writer_sends_full_batches(table, key):
    with table.batch_writer(overwrite_by_pkeys=["pk", "sk"]) as batch:
        for number in range(60):
            batch.put_item(Item={"pk": key, "sk": number % 40, "kind": f"{key}-{number % 2}", "round": number // 40})
        batch.delete_item(Key={"pk": key, "sk": 39})
    found = table.query(KeyConditionExpression=Key("pk").eq(key))["Items"]
    assert [entry["sk"] for entry in found] == list(range(39))
    assert [entry["round"] for entry in found] == [1] * 20 + [0] * 19


def test_conditions_as_objects(table, key):
    for number in range(10):
        table.put_item(Item={"pk": key, "sk": number, "kind": key, "tags": {f"t{number % 3}"}, "map": {"n": number}})

    def found(condition, **more):
        return [int(entry["sk"]) for entry in table.query(KeyConditionExpression=condition, **more)["Items"]]

    assert found(Key("pk").eq(key) & Key("sk").between(2, 4)) == [2, 3, 4]
    assert found(Key("kind").eq(key) & Key("sk").gte(8), IndexName="by-kind", ScanIndexForward=False) == [9, 8]
    filters = {
        (0, 3, 6, 9): Attr("tags").contains("t0"),
        (1, 2): Attr("map.n").is_in([1, 2]),
        (0, 9): Attr("map.n").lt(1) | Attr("map.n").gt(8),
        (5, 6, 7, 8, 9): ~Attr("map.n").lt(5),
        (): Attr("absent").exists(),
        tuple(range(10)): Attr("map").size().eq(1) & Attr("kind").begins_with("key"),
    }
    for expected, condition in filters.items():
        assert found(Key("pk").eq(key), FilterExpression=condition) == list(expected)


def test_typed_exceptions(resource, table, key):
    table.put_item(Item={"pk": key, "sk": 0})
    with pytest.raises(resource.meta.client.exceptions.ConditionalCheckFailedException):
        table.put_item(Item={"pk": key, "sk": 0}, ConditionExpression=Attr("pk").not_exists())
    with pytest.raises(resource.meta.client.exceptions.ResourceNotFoundException):
        resource.Table("missing").get_item(Key={"pk": key, "sk": 0})
    assert table.table_status == "ACTIVE"
    assert table.key_schema[0] == {"AttributeName": "pk", "KeyType": "HASH"}
