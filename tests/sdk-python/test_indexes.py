"""Secondary indexes: sparse, projected, ordered, and always in step with the table."""

import pytest

from support import P, all_items, create_table, get, invalid, item, n, names_in, put, s, unique_name


@pytest.fixture(scope="module")
def table(dynamodb):
    return create_table(
        dynamodb,
        keys="pk:S,sk:S",
        gsi=[
            ("all", "g:S,r:N", "ALL"),
            ("keys", "g:S", "KEYS_ONLY"),
            ("include", "g:S", ["extra"]),
        ],
        lsi=[("local", "pk:S,l:N", "KEYS_ONLY"), ("local-all", "pk:S,l:N", "ALL")],
    )


def query(dynamodb, table, index, name, value, **more):
    return dynamodb.query(
        TableName=table, IndexName=index, KeyConditionExpression=f"{name} = :v",
        ExpressionAttributeValues={":v": s(value)}, **more,
    )


def entries(dynamodb, table, index, name, value):
    return query(dynamodb, table, index, name, value)["Items"]


def test_projections(dynamodb, table, key):
    put(dynamodb, table, pk=key, sk="a", g=key, r=1, l=2, extra="e", more="m")
    whole = item(pk=key, sk="a", g=key, r=1, l=2, extra="e", more="m")
    assert entries(dynamodb, table, "all", "g", key) == [whole]
    assert entries(dynamodb, table, "keys", "g", key) == [item(pk=key, sk="a", g=key)]
    assert entries(dynamodb, table, "include", "g", key) == [item(pk=key, sk="a", g=key, extra="e")]
    assert entries(dynamodb, table, "local", "pk", key) == [item(pk=key, sk="a", l=2)]
    assert entries(dynamodb, table, "local-all", "pk", key) == [whole]


def test_an_item_without_the_keys_is_not_in_the_index(dynamodb, table, key):
    put(dynamodb, table, pk=key, sk="a", g=key)
    # "all" needs r too.
    assert entries(dynamodb, table, "all", "g", key) == []
    assert len(entries(dynamodb, table, "keys", "g", key)) == 1
    assert entries(dynamodb, table, "local", "pk", key) == []


def test_an_index_follows_every_kind_of_write(dynamodb, table, key):
    def ranks():
        return names_in(entries(dynamodb, table, "all", "g", key), "r")

    put(dynamodb, table, pk=key, sk="a", g=key, r=1)
    assert ranks() == ["1"]
    put(dynamodb, table, pk=key, sk="a", g=key, r=5)
    assert ranks() == ["5"]
    dynamodb.update_item(
        TableName=table, Key=item(pk=key, sk="a"), UpdateExpression="SET r = r - :v",
        ExpressionAttributeValues={":v": n(2)},
    )
    assert ranks() == ["3"]
    dynamodb.update_item(TableName=table, Key=item(pk=key, sk="a"), UpdateExpression="REMOVE r")
    assert ranks() == []
    dynamodb.batch_write_item(RequestItems={table: [
        {"PutRequest": {"Item": item(pk=key, sk="a", g=key, r=7)}},
        {"PutRequest": {"Item": item(pk=key, sk="b", g=key, r=6)}},
    ]})
    assert ranks() == ["6", "7"]
    dynamodb.transact_write_items(TransactItems=[
        {"Delete": {"TableName": table, "Key": item(pk=key, sk="a")}},
        {"Update": {"TableName": table, "Key": item(pk=key, sk="b"), "UpdateExpression": "SET r = :v",
                    "ExpressionAttributeValues": {":v": n(9)}}},
    ])
    assert ranks() == ["9"]
    dynamodb.delete_item(TableName=table, Key=item(pk=key, sk="b"))
    assert ranks() == []
    assert entries(dynamodb, table, "keys", "g", key) == []


def test_equal_index_keys_page_without_loss(dynamodb, table, key):
    expected = sorted(f"{number:02}" for number in range(20))
    for text in expected:
        put(dynamodb, table, pk=key, sk=text, g=key, r=1)
    first = query(dynamodb, table, "all", "g", key, Limit=3)
    assert first["LastEvaluatedKey"].keys() == {"pk", "sk", "g", "r"}
    for limit in (1, 3, 20):
        for forward in (True, False):
            items = all_items(
                dynamodb.query, TableName=table, IndexName="all", KeyConditionExpression="g = :v",
                ExpressionAttributeValues={":v": s(key)}, Limit=limit, ScanIndexForward=forward,
            )
            assert sorted(names_in(items, "sk")) == expected


def test_index_order(dynamodb, table, key):
    for number in (30, -4, 100, 2):
        put(dynamodb, table, pk=key, sk=str(number), g=key, r=number, l=-number)
    assert names_in(entries(dynamodb, table, "all", "g", key), "r") == ["-4", "2", "30", "100"]
    assert names_in(entries(dynamodb, table, "local", "pk", key), "l") == ["-100", "-30", "-2", "4"]
    page = dynamodb.query(
        TableName=table, IndexName="local", KeyConditionExpression="pk = :pk AND l BETWEEN :lo AND :hi",
        ExpressionAttributeValues={":pk": s(key), ":lo": n(-30), ":hi": n(-2)}, ConsistentRead=True,
    )
    assert names_in(page["Items"], "l") == ["-30", "-2"]


def test_a_local_index_fetches_what_it_does_not_project(dynamodb, table, key):
    put(dynamodb, table, pk=key, sk="a", l=1, more="m")
    page = query(dynamodb, table, "local", "pk", key, ProjectionExpression="more, l")
    assert page["Items"] == [item(more="m", l=1)]
    page = query(dynamodb, table, "local", "pk", key, Select="ALL_ATTRIBUTES")
    assert page["Items"] == [item(pk=key, sk="a", l=1, more="m")]


def test_a_global_index_does_not(dynamodb, table):
    message = P + "Global secondary index keys does not project [more]"
    with invalid(message):
        query(dynamodb, table, "keys", "g", "x", ProjectionExpression="more")
    message = (
        P + "Select type ALL_ATTRIBUTES is not supported for global secondary index keys "
        "because its projection type is not ALL"
    )
    with invalid(message):
        query(dynamodb, table, "keys", "g", "x", Select="ALL_ATTRIBUTES")


@pytest.mark.parametrize("operation", ["query", "scan"])
def test_global_indexes_are_not_read_consistently(dynamodb, table, operation):
    request = {"TableName": table, "IndexName": "keys", "ConsistentRead": True}
    if operation == "query":
        request |= {"KeyConditionExpression": "g = :v", "ExpressionAttributeValues": {":v": s("x")}}
    with invalid("Consistent reads are not supported on global secondary indexes"):
        getattr(dynamodb, operation)(**request)


def test_filters_on_an_index(dynamodb, table, key):
    put(dynamodb, table, pk=key, sk="a", g=key, r=1)
    put(dynamodb, table, pk=key, sk="b", g=key, r=2)
    # The table's keys may be filtered on an index with other keys, the index's own may not.
    page = dynamodb.query(
        TableName=table, IndexName="all", KeyConditionExpression="g = :v", FilterExpression="sk = :b",
        ExpressionAttributeValues={":v": s(key), ":b": s("b")},
    )
    assert names_in(page["Items"], "r") == ["2"]
    message = "Filter Expression can only contain non-primary key attributes: Primary key attribute: r"
    with invalid(message):
        dynamodb.query(
            TableName=table, IndexName="all", KeyConditionExpression="g = :v", FilterExpression="r = :r",
            ExpressionAttributeValues={":v": s(key), ":r": n(1)},
        )


def test_scanning_a_sparse_index(dynamodb):
    table = create_table(dynamodb, keys="pk:S", gsi=[("flagged", "flag:S", "KEYS_ONLY")])
    for number in range(30):
        put(dynamodb, table, pk=f"p{number}", **({"flag": "yes"} if number % 10 == 0 else {}))
    items = all_items(dynamodb.scan, TableName=table, IndexName="flagged", Limit=1)
    assert sorted(names_in(items, "pk")) == ["p0", "p10", "p20"]
    (described,) = dynamodb.describe_table(TableName=table)["Table"]["GlobalSecondaryIndexes"]
    assert described["ItemCount"] == 3


MISTYPED = P + "Type mismatch for Index Key r Expected: N Actual: S IndexName: all"


def test_wrongly_typed_index_keys_are_refused(dynamodb, table, key):
    with invalid(MISTYPED):
        put(dynamodb, table, pk=key, sk="a", g=key, r="1")
    assert get(dynamodb, table, pk=key, sk="a") is None
    with invalid(P + "Type mismatch for Index Key g Expected: S Actual: L IndexName: all"):
        put(dynamodb, table, pk=key, sk="a", g=["x"])
    put(dynamodb, table, pk=key, sk="a", g=key, r=1)
    with invalid(MISTYPED):
        dynamodb.update_item(
            TableName=table, Key=item(pk=key, sk="a"), UpdateExpression="SET r = :v",
            ExpressionAttributeValues={":v": s("1")},
        )
    assert names_in(entries(dynamodb, table, "all", "g", key), "r") == ["1"]


def test_empty_index_keys_are_refused(dynamodb, table, key):
    message = (
        "One or more parameter values are not valid. A value specified for a secondary index key is not supported. "
        "The AttributeValue for a key attribute cannot contain an empty string value. IndexName: all, IndexKey: g"
    )
    with invalid(message):
        put(dynamodb, table, pk=key, sk="a", g="")
    message = (
        "One or more parameter values are not valid. The update expression attempted to update a secondary index key "
        "to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty string value."
    )
    with invalid(message):
        dynamodb.update_item(
            TableName=table, Key=item(pk=key, sk="a"), UpdateExpression="SET g = :v",
            ExpressionAttributeValues={":v": s("")},
        )


def test_several_attributes_in_a_key(dynamodb):
    name = unique_name()
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "tenant", "AttributeType": "S"},
            {"AttributeName": "area", "AttributeType": "S"},
            {"AttributeName": "severity", "AttributeType": "N"},
            {"AttributeName": "seen", "AttributeType": "S"},
        ],
        GlobalSecondaryIndexes=[{
            "IndexName": "multi",
            "KeySchema": [
                {"AttributeName": "tenant", "KeyType": "HASH"},
                {"AttributeName": "area", "KeyType": "HASH"},
                {"AttributeName": "severity", "KeyType": "RANGE"},
                {"AttributeName": "seen", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }],
    )
    for number in range(12):
        put(dynamodb, name, pk=f"p{number:02}", tenant="t", area="a" if number < 9 else "b",
            severity=number % 3, seen=f"2026-01-{number + 1:02}")
    put(dynamodb, name, pk="sparse", tenant="t", area="a", severity=1)
    page = dynamodb.query(
        TableName=name, IndexName="multi",
        KeyConditionExpression="tenant = :t AND area = :a AND severity = :s AND seen > :d",
        ExpressionAttributeValues={":t": s("t"), ":a": s("a"), ":s": n(1), ":d": s("2026-01-02")},
    )
    assert names_in(page["Items"], "pk") == ["p04", "p07"]
