"""The life of a table: creation, description, listing, deletion."""

import datetime
import re
import uuid

import pytest

import support
from support import create_table, definition, invalid, item, missing_resource, put, refused, unique_name

PROVISIONED = {"ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 7}}


def describe(dynamodb, name):
    return dynamodb.describe_table(TableName=name)["Table"]


def test_create_answers_creating_and_the_waiter_sees_active(dynamodb):
    parameters = definition(keys="pk:S,sk:N")
    created = dynamodb.create_table(**parameters)["TableDescription"]
    assert created["TableStatus"] == "CREATING"
    support.wait_until_active(dynamodb, parameters["TableName"])
    assert describe(dynamodb, parameters["TableName"])["TableStatus"] == "ACTIVE"


def test_description_of_an_on_demand_table(dynamodb):
    name = unique_name()
    before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=2)
    create_table(dynamodb, name=name, keys="zz:S,aa:N")
    table = describe(dynamodb, name)
    created = table.pop("CreationDateTime")
    assert before <= created <= datetime.datetime.now(datetime.timezone.utc)
    assert uuid.UUID(table.pop("TableId")).version == 4
    assert re.fullmatch(rf"arn:aws:dynamodb:us-east-1:\d{{12}}:table/{name}", table.pop("TableArn"))
    assert table.pop("BillingModeSummary")["BillingMode"] == "PAY_PER_REQUEST"
    assert table == {
        "TableName": name,
        "TableStatus": "ACTIVE",
        # Definitions are sorted by name, the key schema is not.
        "AttributeDefinitions": [
            {"AttributeName": "aa", "AttributeType": "N"},
            {"AttributeName": "zz", "AttributeType": "S"},
        ],
        "KeySchema": [
            {"AttributeName": "zz", "KeyType": "HASH"},
            {"AttributeName": "aa", "KeyType": "RANGE"},
        ],
        "ProvisionedThroughput": {
            "NumberOfDecreasesToday": 0,
            "ReadCapacityUnits": 0,
            "WriteCapacityUnits": 0,
        },
        "WarmThroughput": {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 4000, "Status": "ACTIVE"},
        "ItemCount": 0,
        "TableSizeBytes": 0,
        "DeletionProtectionEnabled": False,
    }


def test_description_of_a_provisioned_table(dynamodb):
    name = create_table(dynamodb, **PROVISIONED)
    table = describe(dynamodb, name)
    assert "BillingModeSummary" not in table
    assert table["ProvisionedThroughput"] == {
        "NumberOfDecreasesToday": 0,
        "ReadCapacityUnits": 5,
        "WriteCapacityUnits": 7,
    }
    assert table["WarmThroughput"] == {
        "ReadUnitsPerSecond": 5,
        "WriteUnitsPerSecond": 7,
        "Status": "ACTIVE",
    }


def test_description_of_indexes(dynamodb):
    name = create_table(
        dynamodb,
        keys="pk:S,sk:S",
        gsi=[("second", "g:S,h:N", ["zeta", "alpha"]), ("first", "h:N", "KEYS_ONLY")],
        lsi=[("local", "pk:S,l:B", "ALL")],
    )
    table = describe(dynamodb, name)
    second, first = table["GlobalSecondaryIndexes"]
    assert second == {
        "IndexName": "second",
        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}, {"AttributeName": "h", "KeyType": "RANGE"}],
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["alpha", "zeta"]},
        "IndexStatus": "ACTIVE",
        "IndexArn": table["TableArn"] + "/index/second",
        "IndexSizeBytes": 0,
        "ItemCount": 0,
        "ProvisionedThroughput": {
            "NumberOfDecreasesToday": 0,
            "ReadCapacityUnits": 0,
            "WriteCapacityUnits": 0,
        },
        "WarmThroughput": {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 4000, "Status": "ACTIVE"},
    }
    assert first["IndexName"] == "first"
    assert first["Projection"] == {"ProjectionType": "KEYS_ONLY"}
    assert table["LocalSecondaryIndexes"] == [
        {
            "IndexName": "local",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "l", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
            "IndexArn": table["TableArn"] + "/index/local",
            "IndexSizeBytes": 0,
            "ItemCount": 0,
        }
    ]


def test_created_indexes_are_creating_without_backfilling(dynamodb):
    parameters = definition(gsi=[("idx", "g:S")])
    created = dynamodb.create_table(**parameters)["TableDescription"]
    (index,) = created["GlobalSecondaryIndexes"]
    assert index["IndexStatus"] == "CREATING"
    assert "Backfilling" not in index


def test_counts_and_sizes_follow_the_items(dynamodb):
    name = create_table(dynamodb, keys="pk:S", gsi=[("idx", "g:S", "KEYS_ONLY")])
    put(dynamodb, name, pk="a", g="x", filler="12345")  # 2 + 1, 1 + 1, 6 + 5 bytes
    put(dynamodb, name, pk="b", filler="12345")
    table = describe(dynamodb, name)
    assert (table["ItemCount"], table["TableSizeBytes"]) == (2, 16 + 14)
    (index,) = table["GlobalSecondaryIndexes"]
    assert (index["ItemCount"], index["IndexSizeBytes"]) == (1, 5)
    dynamodb.delete_item(TableName=name, Key=item(pk="a"))
    table = describe(dynamodb, name)
    assert (table["ItemCount"], table["TableSizeBytes"]) == (1, 14)
    assert table["GlobalSecondaryIndexes"][0]["ItemCount"] == 0


def test_list_tables_pages_in_byte_order(memory_server):
    dynamodb = support.client(memory_server.endpoint)
    for name in ["beta", "Alpha", "_under", "alpha", "0zero"]:
        dynamodb.create_table(**definition(name=name))
    expected = ["0zero", "Alpha", "_under", "alpha", "beta"]
    assert dynamodb.list_tables()["TableNames"] == expected
    first = dynamodb.list_tables(Limit=2)
    assert first["TableNames"] == expected[:2]
    assert first["LastEvaluatedTableName"] == "Alpha"
    rest = dynamodb.list_tables(ExclusiveStartTableName="Alpha")
    assert rest["TableNames"] == expected[2:]
    assert "LastEvaluatedTableName" not in rest
    # The start need not exist.
    assert dynamodb.list_tables(ExclusiveStartTableName="alpha0")["TableNames"] == ["beta"]
    pages = dynamodb.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": 2})
    assert [page["TableNames"] for page in pages] == [expected[:2], expected[2:4], expected[4:]]


def test_a_page_has_a_hundred_tables(memory_server):
    dynamodb = support.client(memory_server.endpoint)
    names = [f"table{number:03}" for number in range(101)]
    for name in names:
        dynamodb.create_table(**definition(name=name))
    page = dynamodb.list_tables()
    assert (page["TableNames"], page["LastEvaluatedTableName"]) == (names[:100], names[99])
    assert dynamodb.list_tables(ExclusiveStartTableName=names[99])["TableNames"] == names[100:]


def test_regions_do_not_see_each_other(scoped_server):
    name = create_table(support.client(scoped_server.endpoint))
    elsewhere = support.client(scoped_server.endpoint, region="eu-central-1")
    assert elsewhere.list_tables()["TableNames"] == []
    with missing_resource(f"Requested resource not found: Table: {name} not found"):
        elsewhere.describe_table(TableName=name)


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (0, "Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1"),
        (101, "Value '101' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100"),
    ],
)
def test_list_tables_limit(dynamodb, limit, message):
    with invalid("1 validation error detected: " + message):
        dynamodb.list_tables(Limit=limit)


def test_delete_answers_deleting_without_the_schema(dynamodb):
    name = create_table(dynamodb, keys="pk:S", gsi=[("idx", "g:S")])
    deleted = dynamodb.delete_table(TableName=name)["TableDescription"]
    assert (deleted["TableName"], deleted["TableStatus"]) == (name, "DELETING")
    assert not {"KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes"} & deleted.keys()
    dynamodb.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    with missing_resource(f"Requested resource not found: Table: {name} not found"):
        dynamodb.describe_table(TableName=name)
    with missing_resource():
        dynamodb.get_item(TableName=name, Key=item(pk="a"))


def test_a_recreated_table_is_new_and_empty(dynamodb):
    name = create_table(dynamodb)
    put(dynamodb, name, pk="a")
    first = describe(dynamodb, name)["TableId"]
    dynamodb.delete_table(TableName=name)
    dynamodb.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    create_table(dynamodb, name=name)
    table = describe(dynamodb, name)
    assert table["TableId"] != first
    assert table["ItemCount"] == 0
    assert dynamodb.scan(TableName=name)["Items"] == []


def test_deletion_protection(dynamodb):
    name = create_table(dynamodb, DeletionProtectionEnabled=True)
    assert describe(dynamodb, name)["DeletionProtectionEnabled"] is True
    message = (
        "Resource cannot be deleted as it is currently protected against deletion. "
        "Disable deletion protection first."
    )
    with invalid(message):
        dynamodb.delete_table(TableName=name)
    dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
    dynamodb.delete_table(TableName=name)


def test_create_an_existing_table(dynamodb):
    name = create_table(dynamodb)
    with refused("ResourceInUseException", f"Table already exists: {name}"):
        dynamodb.create_table(**definition(name=name))


@pytest.mark.parametrize("operation", ["describe_table", "delete_table"])
def test_a_missing_table(dynamodb, operation):
    with missing_resource("Requested resource not found: Table: missing not found"):
        getattr(dynamodb, operation)(TableName="missing")


def test_endpoints_and_limits(dynamodb):
    (address,) = dynamodb.describe_endpoints()["Endpoints"]
    assert address["CachePeriodInMinutes"] == 1440
    limits = support.without_metadata(dynamodb.describe_limits())
    assert limits == {
        "AccountMaxReadCapacityUnits": 80000,
        "AccountMaxWriteCapacityUnits": 80000,
        "TableMaxReadCapacityUnits": 40000,
        "TableMaxWriteCapacityUnits": 40000,
    }
