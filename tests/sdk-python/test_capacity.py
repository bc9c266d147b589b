"""Consumed capacity and item collection metrics, to the unit."""

import pytest

from support import create_table, invalid, item, n, put, s


@pytest.fixture(scope="module")
def table(dynamodb):
    return create_table(
        dynamodb, keys="pk:S,sk:N",
        gsi=[("global", "g:S", "ALL"), ("keys", "h:S", "KEYS_ONLY")],
        lsi=[("local", "pk:S,l:N", "ALL")],
    )


@pytest.fixture(scope="module")
def plain(dynamodb):
    return create_table(dynamodb, keys="pk:S", ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5})


def filled(key, size_bytes):
    """An item of exactly this size."""
    empty = len("pk") + len(key) + len("f")
    return item(pk=key, f="x" * (size_bytes - empty))


WRITES = [(100, 1), (1024, 1), (1025, 2), (10_240, 10), (409_600, 400)]


@pytest.mark.parametrize(("size", "units"), WRITES)
def test_write_units(dynamodb, plain, key, size, units):
    expected = {"TableName": plain, "CapacityUnits": float(units)}
    stored = filled(key, size)
    answer = dynamodb.put_item(TableName=plain, Item=stored, ReturnConsumedCapacity="TOTAL")
    assert answer["ConsumedCapacity"] == expected
    # Replacing it with a small item, updating it a little and deleting it all cost the larger size.
    answer = dynamodb.update_item(
        TableName=plain, Key=item(pk=key), ReturnConsumedCapacity="TOTAL", UpdateExpression="REMOVE nothing",
    )
    assert answer["ConsumedCapacity"] == expected
    answer = dynamodb.put_item(TableName=plain, Item=item(pk=key), ReturnConsumedCapacity="TOTAL")
    assert answer["ConsumedCapacity"] == expected
    dynamodb.put_item(TableName=plain, Item=stored)
    answer = dynamodb.delete_item(TableName=plain, Key=item(pk=key), ReturnConsumedCapacity="TOTAL")
    assert answer["ConsumedCapacity"] == expected


READS = [(100, 1), (4096, 1), (4097, 2), (8192, 2), (409_600, 100)]


@pytest.mark.parametrize(("size", "units"), READS)
def test_read_units(dynamodb, plain, key, size, units):
    dynamodb.put_item(TableName=plain, Item=filled(key, size))

    def consumed(operation, **request):
        return operation(TableName=plain, ReturnConsumedCapacity="TOTAL", **request)["ConsumedCapacity"]

    query = {"KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": s(key)}}
    for consistent, factor in ((True, 1.0), (False, 0.5)):
        expected = {"TableName": plain, "CapacityUnits": units * factor}
        assert consumed(dynamodb.get_item, Key=item(pk=key), ConsistentRead=consistent) == expected
        assert consumed(dynamodb.query, ConsistentRead=consistent, **query) == expected
    # Neither a projection nor a filter makes it cheaper.
    answer = consumed(dynamodb.get_item, Key=item(pk=key), ConsistentRead=True, ProjectionExpression="pk")
    assert answer["CapacityUnits"] == units
    filtered = {"Select": "COUNT", "FilterExpression": "attribute_exists(x)", **query}
    answer = consumed(dynamodb.query, ConsistentRead=True, **filtered)
    assert answer["CapacityUnits"] == units


def test_reading_and_writing_nothing_costs_the_least(dynamodb, plain, key):
    request = {"TableName": plain, "Key": item(pk=key), "ReturnConsumedCapacity": "TOTAL"}
    assert dynamodb.get_item(**request)["ConsumedCapacity"]["CapacityUnits"] == 0.5
    assert dynamodb.get_item(**request, ConsistentRead=True)["ConsumedCapacity"]["CapacityUnits"] == 1.0
    assert dynamodb.delete_item(**request)["ConsumedCapacity"]["CapacityUnits"] == 1.0
    answer = dynamodb.query(
        TableName=plain, KeyConditionExpression="pk = :v", ExpressionAttributeValues={":v": s(key)},
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer["ConsumedCapacity"]["CapacityUnits"] == 0.5


def test_a_query_rounds_the_page_not_the_items(dynamodb, range_table, key):
    for number in range(10):
        put(dynamodb, range_table, pk=key, sk=number, f="x" * 500)
    answer = dynamodb.query(
        TableName=range_table, KeyConditionExpression="pk = :v", ExpressionAttributeValues={":v": s(key)},
        ConsistentRead=True, ReturnConsumedCapacity="TOTAL",
    )
    assert answer["ConsumedCapacity"]["CapacityUnits"] == 2.0


def test_nothing_is_reported_unasked(dynamodb, plain, key):
    assert "ConsumedCapacity" not in dynamodb.put_item(TableName=plain, Item=item(pk=key))
    answer = dynamodb.put_item(TableName=plain, Item=item(pk=key), ReturnConsumedCapacity="NONE")
    assert "ConsumedCapacity" not in answer


def indexes(dynamodb, table, operation, **request):
    consumed = operation(TableName=table, ReturnConsumedCapacity="INDEXES", **request)["ConsumedCapacity"]
    assert consumed.pop("TableName") == table
    return consumed


def units(total, table, gsi=(), lsi=()):
    expected = {"CapacityUnits": float(total), "Table": {"CapacityUnits": float(table)}}
    if gsi:
        expected["GlobalSecondaryIndexes"] = {name: {"CapacityUnits": float(u)} for name, u in dict(gsi).items()}
    if lsi:
        expected["LocalSecondaryIndexes"] = {name: {"CapacityUnits": float(u)} for name, u in dict(lsi).items()}
    return expected


def test_index_units_of_writes(dynamodb, table, key):
    def put_item(**attributes):
        return indexes(dynamodb, table, dynamodb.put_item, Item=item(pk=key, sk=1, **attributes))

    assert put_item() == units(1, 1)
    assert put_item(g="a", l=1) == units(3, 1, {"global": 1}, {"local": 1})
    # Unchanged: the table is charged, its indexes are not.
    assert put_item(g="a", l=1) == units(1, 1)
    # Same index keys, other content.
    assert put_item(g="a", l=1, f="x") == units(3, 1, {"global": 1}, {"local": 1})
    # A moved entry is a deletion and an insertion.
    assert put_item(g="b", l=1, f="x") == units(4, 1, {"global": 2}, {"local": 1})
    # An entry that projects keys only does not change with other attributes.
    assert put_item(g="b", l=1, f="x", h="h") == units(4, 1, {"global": 1, "keys": 1}, {"local": 1})
    assert put_item(g="b", l=1, f="y", h="h") == units(3, 1, {"global": 1}, {"local": 1})
    assert indexes(dynamodb, table, dynamodb.delete_item, Key=item(pk=key, sk=1)) == units(
        4, 1, {"global": 1, "keys": 1}, {"local": 1}
    )


def test_index_units_grow_with_the_entry(dynamodb, table, key):
    stored = item(pk=key, sk=1, g="a", f="x" * 3000)
    assert indexes(dynamodb, table, dynamodb.put_item, Item=stored) == units(6, 3, {"global": 3})


def test_index_units_of_reads(dynamodb, table, key):
    put(dynamodb, table, pk=key, sk=1, g=key, l=1, f="x" * 5000)

    def query(index, name, **more):
        return indexes(
            dynamodb, table, dynamodb.query, IndexName=index, KeyConditionExpression=f"{name} = :v",
            ExpressionAttributeValues={":v": s(key)}, **more,
        )

    assert query("global", "g") == units(1, 0, {"global": 1})
    assert query("local", "pk") == units(1, 0, (), {"local": 1})
    assert query("local", "pk", ConsistentRead=True) == units(2, 0, (), {"local": 2})
    table_query = indexes(
        dynamodb, table, dynamodb.query, KeyConditionExpression="pk = :v", ExpressionAttributeValues={":v": s(key)}
    )
    assert table_query == units(1, 1)


def test_batches_report_a_list(dynamodb, plain, range_table, key):
    requests = {
        plain: [{"PutRequest": {"Item": filled(key + suffix, 1500)}} for suffix in ("a", "b")],
        range_table: [{"PutRequest": {"Item": item(pk=key, sk=1)}}],
    }
    answer = dynamodb.batch_write_item(RequestItems=requests, ReturnConsumedCapacity="TOTAL")
    consumed = {entry["TableName"]: entry["CapacityUnits"] for entry in answer["ConsumedCapacity"]}
    assert consumed == {plain: 4.0, range_table: 1.0}
    answer = dynamodb.batch_get_item(
        RequestItems={
            plain: {"Keys": [item(pk=key + suffix) for suffix in ("a", "b", "c")], "ConsistentRead": True},
            range_table: {"Keys": [item(pk=key, sk=1)]},
        },
        ReturnConsumedCapacity="TOTAL",
    )
    consumed = {entry["TableName"]: entry["CapacityUnits"] for entry in answer["ConsumedCapacity"]}
    assert consumed == {plain: 3.0, range_table: 0.5}


def test_transactions_cost_double(dynamodb, plain, key):
    answer = dynamodb.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": plain, "Item": filled(key + "a", 1500)}},
            {"ConditionCheck": {"TableName": plain, "Key": item(pk=key + "b"),
                                "ConditionExpression": "attribute_not_exists(pk)"}},
        ],
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer["ConsumedCapacity"] == [
        {"TableName": plain, "CapacityUnits": 6.0, "WriteCapacityUnits": 6.0}
    ]
    answer = dynamodb.transact_get_items(
        TransactItems=[
            {"Get": {"TableName": plain, "Key": item(pk=key + "a")}},
            {"Get": {"TableName": plain, "Key": item(pk=key + "none")}},
        ],
        ReturnConsumedCapacity="TOTAL",
    )
    assert answer["ConsumedCapacity"] == [{"TableName": plain, "CapacityUnits": 4.0, "ReadCapacityUnits": 4.0}]


def test_item_collection_metrics(dynamodb, table, plain, key):
    metrics = {"ItemCollectionKey": {"pk": s(key)}, "SizeEstimateRangeGB": [0.0, 1.0]}
    request = {"TableName": table, "ReturnItemCollectionMetrics": "SIZE"}
    answer = dynamodb.put_item(**request, Item=item(pk=key, sk=1))
    assert answer["ItemCollectionMetrics"] == metrics
    answer = dynamodb.update_item(
        **request, Key=item(pk=key, sk=1), UpdateExpression="SET a = :a", ExpressionAttributeValues={":a": n(1)}
    )
    assert answer["ItemCollectionMetrics"] == metrics
    answer = dynamodb.batch_write_item(
        RequestItems={table: [{"DeleteRequest": {"Key": item(pk=key, sk=1)}}]}, ReturnItemCollectionMetrics="SIZE"
    )
    assert answer["ItemCollectionMetrics"] == {table: [metrics]}
    # Without local indexes there is no item collection to measure.
    answer = dynamodb.put_item(TableName=plain, Item=item(pk=key), ReturnItemCollectionMetrics="SIZE")
    assert "ItemCollectionMetrics" not in answer


@pytest.mark.parametrize(
    ("member", "path", "values"),
    [
        ("ReturnConsumedCapacity", "returnConsumedCapacity", "[INDEXES, TOTAL, NONE]"),
        ("ReturnItemCollectionMetrics", "returnItemCollectionMetrics", "[SIZE, NONE]"),
    ],
)
def test_unknown_settings(dynamodb, plain, member, path, values):
    message = (
        f"1 validation error detected: Value 'SOME' at '{path}' failed to satisfy constraint: "
        f"Member must satisfy enum value set: {values}"
    )
    with invalid(message):
        dynamodb.put_item(TableName=plain, Item=item(pk="x"), **{member: "SOME"})
