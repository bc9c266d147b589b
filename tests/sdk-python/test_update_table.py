"""UpdateTable: one logical change per call, answered with the state before it."""

import pytest

from support import (
    P, all_items, create_table, index_definition, invalid, item, missing_resource, names_in, put, refused, unique_name,
    wait_for_indexes, wait_until_active,
)

UNITS = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
NOTHING = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, "
    "SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, "
    "DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required"
)


def describe(dynamodb, name):
    return dynamodb.describe_table(TableName=name)["Table"]


def create_index(name, keys, projection="ALL", **types):
    return {
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": t} for n, t in types.items()],
        "GlobalSecondaryIndexUpdates": [{"Create": index_definition(name, keys, projection)}],
    }


def test_throughput_change_shows_the_old_value_first(dynamodb):
    name = create_table(dynamodb, ProvisionedThroughput=UNITS)
    wanted = {"ReadCapacityUnits": 9, "WriteCapacityUnits": 3}
    answer = dynamodb.update_table(TableName=name, ProvisionedThroughput=wanted)["TableDescription"]
    assert answer["TableStatus"] == "UPDATING"
    assert answer["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
    wait_until_active(dynamodb, name)
    throughput = describe(dynamodb, name)["ProvisionedThroughput"]
    assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (9, 3)
    assert throughput["NumberOfDecreasesToday"] == 1
    assert "LastIncreaseDateTime" in throughput
    assert "LastDecreaseDateTime" in throughput


def test_billing_mode_there_and_back(dynamodb):
    name = create_table(dynamodb, ProvisionedThroughput=UNITS)
    dynamodb.update_table(TableName=name, BillingMode="PAY_PER_REQUEST")
    wait_until_active(dynamodb, name)
    table = describe(dynamodb, name)
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"]
    assert table["ProvisionedThroughput"]["ReadCapacityUnits"] == 0
    assert table["WarmThroughput"]["ReadUnitsPerSecond"] == 12000
    dynamodb.update_table(TableName=name, BillingMode="PAY_PER_REQUEST")
    with invalid(P + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED"):
        dynamodb.update_table(TableName=name, BillingMode="PROVISIONED")
    dynamodb.update_table(TableName=name, BillingMode="PROVISIONED", ProvisionedThroughput=UNITS)
    wait_until_active(dynamodb, name)
    table = describe(dynamodb, name)
    assert table["BillingModeSummary"]["BillingMode"] == "PROVISIONED"
    assert table["ProvisionedThroughput"]["ReadCapacityUnits"] == 5


def test_table_class(dynamodb):
    name = create_table(dynamodb)
    dynamodb.update_table(TableName=name, TableClass="STANDARD_INFREQUENT_ACCESS")
    wait_until_active(dynamodb, name)
    assert describe(dynamodb, name)["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"


def test_on_demand_maximum_merges_and_is_removed(dynamodb):
    name = create_table(dynamodb, OnDemandThroughput={"MaxReadRequestUnits": 10})
    assert describe(dynamodb, name)["OnDemandThroughput"] == {"MaxReadRequestUnits": 10}
    dynamodb.update_table(TableName=name, OnDemandThroughput={"MaxWriteRequestUnits": 20})
    expected = {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 20}
    assert describe(dynamodb, name)["OnDemandThroughput"] == expected
    dynamodb.update_table(TableName=name, OnDemandThroughput={"MaxReadRequestUnits": -1})
    assert describe(dynamodb, name)["OnDemandThroughput"] == {"MaxWriteRequestUnits": 20}


def test_warm_throughput_only_rises(dynamodb):
    name = create_table(dynamodb)
    dynamodb.update_table(TableName=name, WarmThroughput={"ReadUnitsPerSecond": 15000})
    assert describe(dynamodb, name)["WarmThroughput"]["ReadUnitsPerSecond"] == 15000
    message = (
        P + "Requested ReadUnitsPerSecond for WarmThroughput for table is lower than current WarmThroughput, "
        "decreasing WarmThroughput is not supported"
    )
    with invalid(message):
        dynamodb.update_table(TableName=name, WarmThroughput={"ReadUnitsPerSecond": 13000})


def test_adding_an_index_backfills_it(dynamodb):
    name = create_table(dynamodb, keys="pk:S")
    for number in range(60):
        put(dynamodb, name, pk=f"p{number:02}", kind="even" if number % 2 == 0 else "odd", rank=number)
    put(dynamodb, name, pk="sparse")
    # A value of another type than the index key is skipped by the backfill, not refused.
    put(dynamodb, name, pk="mistyped", kind=5, rank=1)
    answer = dynamodb.update_table(TableName=name, **create_index("by-kind", "kind:S,rank:N", kind="S", rank="N"))
    (index,) = answer["TableDescription"]["GlobalSecondaryIndexes"]
    assert answer["TableDescription"]["TableStatus"] == "UPDATING"
    assert (index["IndexStatus"], index["Backfilling"]) == ("CREATING", False)
    wait_for_indexes(dynamodb, name, {"by-kind": "ACTIVE"})
    items = all_items(
        dynamodb.query, TableName=name, IndexName="by-kind",
        KeyConditionExpression="kind = :kind", ExpressionAttributeValues={":kind": {"S": "odd"}},
    )
    assert names_in(items, "rank") == [str(number) for number in range(1, 60, 2)]
    assert len(all_items(dynamodb.scan, TableName=name, IndexName="by-kind")) == 60
    assert describe(dynamodb, name)["GlobalSecondaryIndexes"][0]["ItemCount"] == 60
    message = P + "Type mismatch for Index Key kind Expected: S Actual: N IndexName: by-kind"
    with invalid(message):
        put(dynamodb, name, pk="mistyped", kind=5, rank=1)


def test_deleting_an_index_prunes_its_definitions(dynamodb):
    name = create_table(dynamodb, keys="pk:S", gsi=[("idx", "g:S"), ("keep", "k:S")])
    dynamodb.update_table(TableName=name, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "idx"}}])
    wait_for_indexes(dynamodb, name, {"keep": "ACTIVE"})
    names = [definition["AttributeName"] for definition in describe(dynamodb, name)["AttributeDefinitions"]]
    assert names == ["k", "pk"]
    with invalid("The table does not have the specified index: idx"):
        dynamodb.scan(TableName=name, IndexName="idx")
    # The attribute is free again.
    put(dynamodb, name, pk="a", g=5)


def test_index_errors(dynamodb):
    name = create_table(dynamodb, keys="pk:S,sk:S", gsi=[("idx", "g:S")], lsi=[("local", "pk:S,l:S")])

    def update(**parameters):
        dynamodb.update_table(TableName=name, **parameters)

    with invalid("Attempting to create an index which already exists"):
        update(**create_index("idx", "g:S", g="S"))
    with invalid(P + "AttributeDefinitions is not specified for index: new"):
        update(GlobalSecondaryIndexUpdates=[{"Create": index_definition("new", "g:S")}])
    with missing_resource(f"Requested resource not found: Index none for table {name}"):
        update(GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "none"}}])
    with invalid("Cannot delete an index that is not a GlobalSecondaryIndex: local"):
        update(GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "local"}}])
    with invalid(P + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
                     "GlobalSecondaryIndexUpdate.Delete must not be null"):
        update(GlobalSecondaryIndexUpdates=[{}])
    two = create_index("one", "g:S", g="S")
    two["GlobalSecondaryIndexUpdates"].append({"Create": index_definition("two", "g:S")})
    message = "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
    with refused("LimitExceededException", message):
        update(**two)


def test_unchanged_throughput(dynamodb):
    name = create_table(dynamodb, ProvisionedThroughput=UNITS)
    message = (
        "The provisioned throughput for the table will not change. The requested value equals the current value. "
        "Current ReadCapacityUnits provisioned for the table: 5. Requested ReadCapacityUnits: 5. "
        "Current WriteCapacityUnits provisioned for the table: 5. Requested WriteCapacityUnits: 5. "
        "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
    )
    with invalid(message):
        dynamodb.update_table(TableName=name, ProvisionedThroughput=UNITS)


EXCLUSIVE = {
    "nothing": ({}, NOTHING),
    "definitions alone": ({"AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}]}, NOTHING),
    "class": (
        {"TableClass": "STANDARD", "DeletionProtectionEnabled": True},
        P + "TableClass modification must be the only operation in the request",
    ),
    "protection": (
        {"DeletionProtectionEnabled": True, "BillingMode": "PAY_PER_REQUEST"},
        P + "DeletionProtection modification must be the only operation in the request",
    ),
    "stream and throughput": (
        {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}, "ProvisionedThroughput": UNITS},
        P + "You cannot modify stream status while updating table IOPS",
    ),
    "index and throughput": (
        create_index("new", "g:S", g="S") | {"ProvisionedThroughput": UNITS},
        P + "You cannot create or delete index while updating table IOPS",
    ),
    "stream without view type": (
        {"StreamSpecification": {"StreamEnabled": True}},
        P + "If stream is being enabled then UpdateViewType is required",
    ),
}


@pytest.mark.parametrize("case", EXCLUSIVE)
def test_refused_combinations(dynamodb, case):
    parameters, message = EXCLUSIVE[case]
    name = create_table(dynamodb, ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1})
    with invalid(message):
        dynamodb.update_table(TableName=name, **parameters)


def test_a_missing_table(dynamodb):
    with missing_resource("Requested resource not found: Table: missing not found"):
        dynamodb.update_table(TableName="missing", BillingMode="PAY_PER_REQUEST")


def test_writes_go_on_while_an_index_is_added(dynamodb):
    name = create_table(dynamodb, keys="pk:S")
    for number in range(30):
        put(dynamodb, name, pk=f"before{number}", g="x")
    dynamodb.update_table(TableName=name, **create_index("idx", "g:S", "KEYS_ONLY", g="S"))
    for number in range(30):
        put(dynamodb, name, pk=f"during{number}", g="x")
    dynamodb.delete_item(TableName=name, Key=item(pk="before0"))
    wait_for_indexes(dynamodb, name, {"idx": "ACTIVE"})
    indexed = names_in(all_items(dynamodb.scan, TableName=name, IndexName="idx"), "pk")
    assert sorted(indexed) == sorted(names_in(all_items(dynamodb.scan, TableName=name), "pk"))
    assert len(indexed) == 59


def test_a_stream_is_switched_on_and_off(dynamodb):
    name = create_table(dynamodb)
    on = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    dynamodb.update_table(TableName=name, StreamSpecification=on)
    wait_until_active(dynamodb, name)
    table = describe(dynamodb, name)
    assert table["StreamSpecification"] == on
    assert table["LatestStreamArn"] == f"{table['TableArn']}/stream/{table['LatestStreamLabel']}"
    with invalid(f"Table already has an enabled stream: TableName: {name}"):
        dynamodb.update_table(TableName=name, StreamSpecification=on)
    dynamodb.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
    wait_until_active(dynamodb, name)
    off = describe(dynamodb, name)
    assert "StreamSpecification" not in off
    assert off["LatestStreamArn"] == table["LatestStreamArn"]
    with invalid(f"Table has no stream to disable: TableName: {name}"):
        dynamodb.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})


def test_throughput_of_an_index(dynamodb):
    name = unique_name()
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    dynamodb.create_table(
        TableName=name, ProvisionedThroughput=units, KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        GlobalSecondaryIndexes=[index_definition("idx", "pk:S") | {"ProvisionedThroughput": units}],
    )
    wait_until_active(dynamodb, name)

    def update(index, units, **more):
        change = {"Update": {"IndexName": index, "ProvisionedThroughput": units}}
        dynamodb.update_table(TableName=name, GlobalSecondaryIndexUpdates=[change], **more)

    update("idx", UNITS)
    wait_until_active(dynamodb, name)
    (index,) = describe(dynamodb, name)["GlobalSecondaryIndexes"]
    assert index["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
    with missing_resource(f"Requested resource not found: Index nope for table {name}"):
        update("nope", UNITS)
    dynamodb.update_table(TableName=name, BillingMode="PAY_PER_REQUEST")
    wait_until_active(dynamodb, name)
    (index,) = describe(dynamodb, name)["GlobalSecondaryIndexes"]
    assert index["ProvisionedThroughput"]["ReadCapacityUnits"] == 0
    message = (
        P + "The only Updates for index: idx when TableThroughputMode is PAY_PER_REQUEST can be to "
        "OnDemandThroughput, WarmThroughput"
    )
    with invalid(message):
        update("idx", UNITS)
    with invalid(P + "ProvisionedThroughput must be specified for index: idx"):
        dynamodb.update_table(TableName=name, BillingMode="PROVISIONED", ProvisionedThroughput=UNITS)
    update("idx", UNITS, BillingMode="PROVISIONED", ProvisionedThroughput=UNITS)
    wait_until_active(dynamodb, name)
    table = describe(dynamodb, name)
    assert table["ProvisionedThroughput"]["WriteCapacityUnits"] == 5
    assert table["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]["WriteCapacityUnits"] == 5


def test_encryption_settings(dynamodb):
    name = create_table(dynamodb)
    assert "SSEDescription" not in describe(dynamodb, name)
    with invalid(P + "Table is already encrypted by default"):
        dynamodb.update_table(TableName=name, SSESpecification={"Enabled": False})
    dynamodb.update_table(TableName=name, SSESpecification={"Enabled": True})
    described = describe(dynamodb, name)["SSEDescription"]
    assert described["SSEType"] == "KMS"
    with invalid(P + "Server-Side Encryption modification must be the only operation in the request"):
        dynamodb.update_table(TableName=name, SSESpecification={"Enabled": False}, TableClass="STANDARD")
