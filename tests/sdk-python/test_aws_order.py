"""What AWS's own hash orders: scans, segments, index entries with equal keys. And what a new item's key is good for."""

import hashlib

import pytest

from support import P, create_table, invalid


def aws_hash(*keys):
    return int.from_bytes(hashlib.md5(b"Outliers" + "".join(keys).encode()).digest(), "big")


def put(dynamodb, table, **attributes):
    item = {name: {"N": str(value)} if isinstance(value, int) else {"S": value} for name, value in attributes.items()}
    dynamodb.put_item(TableName=table, Item=item)


def test_a_scan_follows_the_hash_and_so_do_its_segments(dynamodb):
    table = create_table(dynamodb)
    keys = [f"user#{number}" for number in range(40)]
    for key in keys:
        put(dynamodb, table, pk=key)
    expected = sorted(keys, key=aws_hash)
    pages = dynamodb.get_paginator("scan").paginate(TableName=table, PaginationConfig={"PageSize": 7})
    assert [item["pk"]["S"] for page in pages for item in page["Items"]] == expected
    for total in (3, 4, 10):
        for segment in range(total):
            found = dynamodb.scan(TableName=table, TotalSegments=total, Segment=segment)["Items"]
            belong = [key for key in expected if aws_hash(key) * total >> 128 == segment]
            assert [item["pk"]["S"] for item in found] == belong


@pytest.mark.parametrize("forward", [True, False])
def test_equal_index_keys_are_in_the_order_of_the_tables_keys_hash(dynamodb, forward):
    table = create_table(dynamodb, keys="pk:S,sk:S", gsi=[("by-group", "g:S", "KEYS_ONLY")])
    keys = [(f"u{number}", str(2000 + number)) for number in range(20)]
    for pk, sk in keys:
        put(dynamodb, table, pk=pk, sk=sk, g="g")
    query = {
        "TableName": table, "IndexName": "by-group", "ScanIndexForward": forward,
        "KeyConditionExpression": "g = :g", "ExpressionAttributeValues": {":g": {"S": "g"}},
    }
    pages = dynamodb.get_paginator("query").paginate(**query, PaginationConfig={"PageSize": 3})
    found = [(item["pk"]["S"], item["sk"]["S"]) for page in pages for item in page["Items"]]
    assert found == sorted(keys, key=lambda key: aws_hash(*key), reverse=not forward)


def test_an_update_of_a_new_item_sees_its_key(dynamodb):
    table = create_table(dynamodb)
    for number, right_side in enumerate(["pk", "if_not_exists(pk, :v)", "if_not_exists(b, pk)"]):
        values = {"ExpressionAttributeValues": {":v": {"S": "default"}}} if ":v" in right_side else {}
        new = dynamodb.update_item(
            TableName=table, Key={"pk": {"S": str(number)}}, UpdateExpression=f"SET b = {right_side}",
            ReturnValues="ALL_NEW", **values,
        )["Attributes"]
        assert new == {"pk": {"S": str(number)}, "b": {"S": str(number)}}


def test_a_query_filters_by_what_its_index_projects(dynamodb):
    table = create_table(
        dynamodb, keys="pk:S,sk:S",
        gsi=[("global", "g:S", ["x"])], lsi=[("local", "pk:S,r:S", "KEYS_ONLY")],
    )
    put(dynamodb, table, pk="a", sk="b", g="g", r="r", x="x", y="y")
    values = {"ExpressionAttributeValues": {":k": {"S": "a"}}}
    for index, key in [("global", "g"), ("local", "pk")]:
        message = f"Secondary index {index} does not project one or more filter attributes: [y]"
        with invalid(P + message):
            dynamodb.query(TableName=table, IndexName=index, KeyConditionExpression=f"{key} = :k",
                           FilterExpression="y = :k", **values)
        scanned = dynamodb.scan(TableName=table, IndexName=index, FilterExpression="y = :y",
                                ExpressionAttributeValues={":y": {"S": "y"}})
        assert (scanned["Count"], scanned["ScannedCount"]) == (0, 1)


def test_legacy_conditions_on_an_index_of_many_keys(dynamodb):
    keys = [("h1", "HASH"), ("h2", "HASH"), ("r1", "RANGE"), ("r2", "RANGE")]
    table = create_table(dynamodb)
    dynamodb.update_table(
        TableName=table,
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        GlobalSecondaryIndexUpdates=[{"Create": {
            "IndexName": "multi", "Projection": {"ProjectionType": "ALL"},
            "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        }}],
    )
    dynamodb.get_waiter("table_exists").wait(TableName=table)
    put(dynamodb, table, pk="a", h1="1", h2="2", r1="3", r2="4")
    put(dynamodb, table, pk="b", h1="1", h2="2", r1="3", r2="5")

    def wait_for_index():
        while True:
            index = dynamodb.describe_table(TableName=table)["Table"]["GlobalSecondaryIndexes"][0]
            if index["IndexStatus"] == "ACTIVE":
                return

    wait_for_index()
    equal = lambda value: {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": value}]}
    found = dynamodb.query(TableName=table, IndexName="multi", KeyConditions={
        "h1": equal("1"), "h2": equal("2"), "r1": equal("3"),
        "r2": {"ComparisonOperator": "GT", "AttributeValueList": [{"S": "4"}]},
    })
    assert [item["pk"]["S"] for item in found["Items"]] == ["b"]
    with invalid("HASH key attributes h2 must have equality conditions specified in the query"):
        dynamodb.query(TableName=table, IndexName="multi", KeyConditions={"h1": equal("1")})


def test_number_sets_come_with_the_largest_first(dynamodb):
    table = create_table(dynamodb)
    dynamodb.put_item(TableName=table, Item={"pk": {"S": "a"}, "n": {"NS": ["-1", "10", "2.5"]}})
    item = dynamodb.get_item(TableName=table, Key={"pk": {"S": "a"}})["Item"]
    assert item["n"]["NS"] == ["10", "2.5", "-1"]


@pytest.mark.parametrize("settings, units", [
    ({}, (2.0, 4.0)),
    ({"ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}}, (0.5, 1.0)),
])
def test_a_scan_of_a_small_table_is_charged_by_partition(dynamodb, settings, units):
    table = create_table(dynamodb, **settings)
    put(dynamodb, table, pk="user#1")
    scan = lambda consistent: dynamodb.scan(TableName=table, ConsistentRead=consistent, ReturnConsumedCapacity="TOTAL")
    found = tuple(scan(consistent)["ConsumedCapacity"]["CapacityUnits"] for consistent in (False, True))
    assert found == units
