"""On-demand backups through boto3."""

import datetime

import pytest

import support
from support import all_items, create_table, get, item, n, put, refused, unique_name


def back_up(dynamodb, table, name="nightly"):
    return dynamodb.create_backup(TableName=table, BackupName=name)["BackupDetails"]


def restore(dynamodb, arn, **overrides):
    target = unique_name("restored")
    dynamodb.restore_table_from_backup(TargetTableName=target, BackupArn=arn, **overrides)
    support.wait_until_active(dynamodb, target)
    return target


def test_a_backup_outlives_its_table(dynamodb):
    table = create_table(dynamodb, keys="pk:S", gsi=[("idx", "v:N")])
    for number in range(30):
        put(dynamodb, table, pk=str(number), v=number % 3)
    before = datetime.datetime.now(datetime.timezone.utc)
    made = back_up(dynamodb, table)
    assert (made["BackupStatus"], made["BackupType"], made["BackupName"]) == ("CREATING", "USER", "nightly")
    assert abs(made["BackupCreationDateTime"] - before) < datetime.timedelta(minutes=1)
    arn = made["BackupArn"]
    described = dynamodb.describe_backup(BackupArn=arn)["BackupDescription"]
    assert described["BackupDetails"]["BackupStatus"] == "AVAILABLE"
    assert described["SourceTableDetails"]["ItemCount"] == 30
    indexes = described["SourceTableFeatureDetails"]["GlobalSecondaryIndexes"]
    assert [index["IndexName"] for index in indexes] == ["idx"]
    for number in range(0, 30, 2):
        dynamodb.delete_item(TableName=table, Key=item(pk=str(number)))
    put(dynamodb, table, pk="later", v=9)
    dynamodb.delete_table(TableName=table)

    restored = restore(dynamodb, arn)
    assert sorted(int(found["pk"]["S"]) for found in all_items(dynamodb.scan, TableName=restored)) == list(range(30))
    query = {"KeyConditionExpression": "v = :v", "ExpressionAttributeValues": {":v": n(2)}}
    assert len(all_items(dynamodb.query, TableName=restored, IndexName="idx", **query)) == 10
    without = restore(dynamodb, arn, GlobalSecondaryIndexOverride=[])
    assert "GlobalSecondaryIndexes" not in dynamodb.describe_table(TableName=without)["Table"]

    deleted = dynamodb.delete_backup(BackupArn=arn)["BackupDescription"]
    assert deleted["BackupDetails"]["BackupStatus"] == "DELETED"
    for call in (dynamodb.describe_backup, dynamodb.delete_backup):
        with refused("BackupNotFoundException", f"Backup not found: {arn}"):
            call(BackupArn=arn)


def test_the_paginator(dynamodb):
    table = create_table(dynamodb)
    arns = [back_up(dynamodb, table, f"backup-{number}")["BackupArn"] for number in range(5)]
    pages = dynamodb.get_paginator("list_backups").paginate(TableName=table, PaginationConfig={"PageSize": 2})
    pages = [[summary["BackupArn"] for summary in page["BackupSummaries"]] for page in pages]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert sorted(arn for page in pages for arn in page) == sorted(arns)
    assert dynamodb.list_backups(TableName=unique_name("never"))["BackupSummaries"] == []


def test_a_missing_table(dynamodb):
    with refused("TableNotFoundException", "Table not found: there-is-none"):
        back_up(dynamodb, "there-is-none")


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_backups_and_restores_survive_a_restart(own_server, ending):
    dynamodb = support.client(own_server.endpoint)
    table = create_table(dynamodb)
    for start in range(0, 1_000, 25):
        requests = [
            {"PutRequest": {"Item": item(pk=str(number), v=1, pad="x" * 5_000)}}
            for number in range(start, start + 25)
        ]
        dynamodb.batch_write_item(RequestItems={table: requests})
    arn = back_up(dynamodb, table)["BackupArn"]
    for number in range(0, 1_000, 50):
        put(dynamodb, table, pk=str(number), v=2)
    dynamodb.restore_table_from_backup(TargetTableName="restored", BackupArn=arn)
    own_server.stop() if ending == "stop" else own_server.kill()
    own_server.start()
    dynamodb = support.client(own_server.endpoint)
    support.wait_until_active(dynamodb, "restored")
    found = all_items(dynamodb.scan, TableName="restored")
    assert len(found) == 1_000 and {found["v"]["N"] for found in found} == {"1"}
    assert get(dynamodb, table, pk="50")["v"] == n(2)
    again = restore(dynamodb, arn)
    assert len(all_items(dynamodb.scan, TableName=again)) == 1_000


def test_a_backup_can_be_restored_in_another_region(scoped_server):
    dynamodb = support.client(scoped_server.endpoint)
    table = create_table(dynamodb)
    put(dynamodb, table, pk="a", v=1)
    arn = back_up(dynamodb, table)["BackupArn"]
    elsewhere = support.client(scoped_server.endpoint, region="eu-north-1")
    target = unique_name("restored")
    missing = "Invalid Request: sseSpecificationOverride must be provided for cross-region restores"
    with refused("ValidationException", missing):
        elsewhere.restore_table_from_backup(TargetTableName=target, BackupArn=arn)
    elsewhere.restore_table_from_backup(
        TargetTableName=target, BackupArn=arn, SSESpecificationOverride={"Enabled": False}
    )
    support.wait_until_active(elsewhere, target)
    assert get(elsewhere, target, pk="a")["v"] == n(1)
