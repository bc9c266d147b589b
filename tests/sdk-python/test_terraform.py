"""The operations that Terraform's provider (hashicorp/aws 5.100.0) makes for the table with orders in examples/terraform/main.tf, in its
order: apply, a plan that must find no differences, a change, destroy. The bodies are written from the configuration, not captured.
The calls for the scaling of the other table are in test_auto_scaling.py."""

import pytest

from support import unique_name, wait_for_indexes, wait_until_active


def definition(table):
    return {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "state")],
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "GlobalSecondaryIndexes": [index("ALL")],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        "SSESpecification": {"Enabled": False},
        "Tags": [{"Key": "Team", "Value": "shop"}],
        "DeletionProtectionEnabled": False,
    }


def index(projection):
    return {
        "IndexName": "by-state",
        "KeySchema": [
            {"AttributeName": "state", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": projection},
    }


def refresh(dynamodb, table):
    """What the provider reads to compare the table with its configuration."""
    described = dynamodb.describe_table(TableName=table)["Table"]
    backups = dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    recovery = backups["PointInTimeRecoveryDescription"]
    ttl = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    tags = dynamodb.list_tags_of_resource(ResourceArn=described["TableArn"])["Tags"]
    return described, recovery, ttl, tags


def switch_recovery(dynamodb, table, is_enabled):
    """The provider then waits until the description shows it."""
    dynamodb.update_continuous_backups(
        TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": is_enabled}
    )
    status = refresh(dynamodb, table)[1]["PointInTimeRecoveryStatus"]
    assert status == ("ENABLED" if is_enabled else "DISABLED")


def test_the_life_of_a_table(dynamodb):
    table = unique_name("terraform")
    wanted = definition(table)
    arn = dynamodb.create_table(**wanted)["TableDescription"]["TableArn"]
    for _ in range(2):
        assert dynamodb.describe_table(TableName=table)["Table"]["TableStatus"] == "ACTIVE"
    ttl = {"AttributeName": "expires", "Enabled": True}
    dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=ttl)
    switch_recovery(dynamodb, table, True)
    item = {"pk": {"S": "CUSTOMER#1"}, "sk": {"S": "ORDER#1"}, "state": {"S": "new"}}
    key = {name: item[name] for name in ("pk", "sk")}
    dynamodb.put_item(
        TableName=table, Item=item, ConditionExpression="attribute_not_exists(#hk)", ExpressionAttributeNames={"#hk": "pk"}
    )

    described, recovery, ttl, tags = refresh(dynamodb, table)
    assert (recovery["PointInTimeRecoveryStatus"], recovery["RecoveryPeriodInDays"]) == ("ENABLED", 35)
    assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    by_name = lambda attribute: attribute["AttributeName"]
    assert sorted(described["AttributeDefinitions"], key=by_name) == wanted["AttributeDefinitions"]
    assert described["KeySchema"] == wanted["KeySchema"]
    assert described["StreamSpecification"] == wanted["StreamSpecification"]
    assert described["LatestStreamArn"].startswith(f"{arn}/stream/")
    assert described["DeletionProtectionEnabled"] is False
    assert "SSEDescription" not in described
    assert [described["GlobalSecondaryIndexes"][0][name] for name in ("IndexName", "Projection")] == [
        "by-state", {"ProjectionType": "ALL"},
    ]
    assert (ttl, tags) == ({"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}, wanted["Tags"])
    assert dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"] == item

    dynamodb.update_table(
        TableName=table,
        AttributeDefinitions=wanted["AttributeDefinitions"],
        GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-state"}}],
    )
    wait_for_indexes(dynamodb, table, {})
    wait_until_active(dynamodb, table)
    assert "GlobalSecondaryIndexes" not in refresh(dynamodb, table)[0]
    dynamodb.update_table(
        TableName=table,
        AttributeDefinitions=wanted["AttributeDefinitions"],
        GlobalSecondaryIndexUpdates=[{"Create": index("KEYS_ONLY")}],
    )
    wait_for_indexes(dynamodb, table, {"by-state": "ACTIVE"})
    wait_until_active(dynamodb, table)
    dynamodb.tag_resource(ResourceArn=arn, Tags=[{"Key": "Team", "Value": "store"}])
    described, _, _, tags = refresh(dynamodb, table)
    assert described["GlobalSecondaryIndexes"][0]["Projection"] == {"ProjectionType": "KEYS_ONLY"}
    assert tags == [{"Key": "Team", "Value": "store"}]

    switch_recovery(dynamodb, table, False)

    dynamodb.delete_item(TableName=table, Key=key)
    dynamodb.delete_table(TableName=table)
    with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
        dynamodb.describe_table(TableName=table)
