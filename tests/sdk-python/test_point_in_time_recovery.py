"""Point-in-time recovery, restores, and reads as of a time, through boto3."""

import contextlib
import datetime
import json
import os
import subprocess
import time
import urllib.error
import urllib.request

import pytest

import server
import support
from server import Server
from streams import Clock
from support import all_items, create_table, get, item, n, put, refused, s, unique_name


def switch(dynamodb, table, enabled=True, **specification):
    specification = {"PointInTimeRecoveryEnabled": enabled, **specification}
    answer = dynamodb.update_continuous_backups(
        TableName=table, PointInTimeRecoverySpecification=specification
    )
    return answer["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]


@contextlib.contextmanager
def as_of(dynamodb, moment):
    """Every call in the block carries the header."""

    def add_header(request, **_):
        request.headers["x-zenobe-as-of"] = moment.isoformat()

    dynamodb.meta.events.register("before-sign.dynamodb", add_header)
    try:
        yield
    finally:
        dynamodb.meta.events.unregister("before-sign.dynamodb", add_header)


def now():
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)


def next_second():
    """Waits until the present second is over; returns it."""
    second = now()
    while now() == second:
        time.sleep(0.02)
    return second


def test_the_window(dynamodb):
    table = create_table(dynamodb)
    described = dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    assert described["ContinuousBackupsStatus"] == "ENABLED"
    assert described["PointInTimeRecoveryDescription"] == {"PointInTimeRecoveryStatus": "DISABLED"}
    window = switch(dynamodb, table, RecoveryPeriodInDays=3)
    assert (window["PointInTimeRecoveryStatus"], window["RecoveryPeriodInDays"]) == ("ENABLED", 3)
    assert window["EarliestRestorableDateTime"] <= window["LatestRestorableDateTime"] <= now() + datetime.timedelta(seconds=1)
    with refused("TableNotFoundException", "Table not found: there-is-none"):
        switch(dynamodb, "there-is-none")
    assert switch(dynamodb, table, enabled=False) == {"PointInTimeRecoveryStatus": "DISABLED"}


def test_reads_as_of_a_second(dynamodb):
    table = create_table(dynamodb, keys="pk:S,sk:N", gsi=[("idx", "v:N")])
    switch(dynamodb, table)
    for number in range(30):
        put(dynamodb, table, pk="p", sk=number, v=1)
    then = next_second()
    for number in range(0, 30, 2):
        dynamodb.delete_item(TableName=table, Key=item(pk="p", sk=number))
        put(dynamodb, table, pk="q", sk=number, v=2)
    put(dynamodb, table, pk="p", sk=1, v=3)
    with as_of(dynamodb, then):
        found = all_items(dynamodb.scan, TableName=table, Limit=7)
        assert sorted(int(found["sk"]["N"]) for found in found) == list(range(30))
        query = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": s("p")}}
        found = all_items(dynamodb.query, TableName=table, ScanIndexForward=False, Limit=4, **query)
        assert [int(found["sk"]["N"]) for found in found] == list(range(29, -1, -1))
        assert get(dynamodb, table, pk="p", sk=1)["v"] == n(1)
        assert get(dynamodb, table, pk="q", sk=0) is None
        keys = [item(pk="p", sk=0), item(pk="q", sk=0)]
        batch = dynamodb.batch_get_item(RequestItems={table: {"Keys": keys}})
        assert batch["Responses"][table] == [item(pk="p", sk=0, v=1)]
        selected = dynamodb.execute_statement(Statement=f'SELECT sk FROM "{table}" WHERE pk = \'p\'')
        assert len(selected["Items"]) == 30
        with pytest.raises(dynamodb.exceptions.ClientError, match="only tables have a history"):
            dynamodb.scan(TableName=table, IndexName="idx")
        with pytest.raises(dynamodb.exceptions.ClientError, match="cannot be called as of a time"):
            put(dynamodb, table, pk="p", sk=0)
    assert len(all_items(dynamodb.scan, TableName=table)) == 30


def test_restores(dynamodb):
    table = create_table(dynamodb, keys="pk:S", gsi=[("idx", "v:N")])
    unavailable = f"Point in time recovery is not enabled for table '{table}'"
    target = unique_name("restored")
    restore = {"SourceTableName": table, "TargetTableName": target}
    with refused("PointInTimeRecoveryUnavailableException", unavailable):
        dynamodb.restore_table_to_point_in_time(UseLatestRestorableTime=True, **restore)
    switch(dynamodb, table)
    for number in range(20):
        put(dynamodb, table, pk=str(number), v=number % 3)
    then = next_second()
    for number in range(20):
        put(dynamodb, table, pk=str(number), v=7)
    begun = dynamodb.restore_table_to_point_in_time(RestoreDateTime=then, **restore)["TableDescription"]
    assert begun["TableStatus"] == "CREATING"
    assert begun["RestoreSummary"]["RestoreDateTime"] == then
    assert begun["RestoreSummary"]["RestoreInProgress"] is True
    support.wait_until_active(dynamodb, target)
    assert len(all_items(dynamodb.scan, TableName=target)) == 20
    query = {"KeyConditionExpression": "v = :v", "ExpressionAttributeValues": {":v": n(2)}}
    assert len(all_items(dynamodb.query, TableName=target, IndexName="idx", **query)) == 6
    assert "RestoreSummary" not in dynamodb.describe_table(TableName=target)["Table"]
    latest = unique_name("latest")
    dynamodb.restore_table_to_point_in_time(
        SourceTableName=table, TargetTableName=latest, UseLatestRestorableTime=True,
        BillingModeOverride="PAY_PER_REQUEST", GlobalSecondaryIndexOverride=[],
    )
    support.wait_until_active(dynamodb, latest)
    assert {found["v"]["N"] for found in all_items(dynamodb.scan, TableName=latest)} == {"7"}
    assert "GlobalSecondaryIndexes" not in dynamodb.describe_table(TableName=latest)["Table"]


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_restore_survives_a_restart(own_server, ending):
    dynamodb = support.client(own_server.endpoint)
    table = create_table(dynamodb, gsi=[("idx", "v:N")])
    switch(dynamodb, table)
    for start in range(0, 1_000, 25):
        requests = [
            {"PutRequest": {"Item": item(pk=str(number), v=number % 7, pad="x" * 500)}}
            for number in range(start, start + 25)
        ]
        dynamodb.batch_write_item(RequestItems={table: requests})
    dynamodb.restore_table_to_point_in_time(
        SourceTableName=table, TargetTableName="restored", UseLatestRestorableTime=True
    )
    dynamodb.put_item(TableName=table, Item=item(pk="later", v=1))
    own_server.stop() if ending == "stop" else own_server.kill()
    own_server.start()
    dynamodb = support.client(own_server.endpoint)
    support.wait_until_active(dynamodb, "restored")
    assert len(all_items(dynamodb.scan, TableName="restored")) == 1_000
    assert len(all_items(dynamodb.scan, TableName="restored", IndexName="idx")) == 1_000
    # The history is there as well.
    assert get(dynamodb, table, pk="later") is not None


def test_items_older_than_an_index_are_restored(dynamodb):
    table = create_table(dynamodb, keys="pk:S")
    put(dynamodb, table, pk="text", v="x")
    put(dynamodb, table, pk="number", v=1)
    schema = [{"AttributeName": "v", "KeyType": "HASH"}]
    index = {"IndexName": "idx", "KeySchema": schema, "Projection": {"ProjectionType": "ALL"}}
    dynamodb.update_table(
        TableName=table, AttributeDefinitions=[{"AttributeName": "v", "AttributeType": "N"}],
        GlobalSecondaryIndexUpdates=[{"Create": index}],
    )
    switch(dynamodb, table)
    target = unique_name("restored")
    dynamodb.restore_table_to_point_in_time(
        SourceTableName=table, TargetTableName=target, UseLatestRestorableTime=True,
    )
    support.wait_until_active(dynamodb, target)
    assert len(all_items(dynamodb.scan, TableName=target)) == 2
    assert [found["pk"]["S"] for found in all_items(dynamodb.scan, TableName=target, IndexName="idx")] == ["number"]


def test_a_deleted_table_comes_back(dynamodb):
    table = create_table(dynamodb)
    switch(dynamodb, table)
    put(dynamodb, table, pk="a", v=1)
    dynamodb.delete_table(TableName=table)
    backups = dynamodb.list_backups(TableName=table, BackupType="SYSTEM")["BackupSummaries"]
    assert [backup["BackupName"] for backup in backups] == [f"{table}$DeletedTableBackup"]
    arn = backups[0]["BackupArn"]
    described = dynamodb.describe_backup(BackupArn=arn)["BackupDescription"]
    assert described["SourceTableDetails"]["ItemCount"] == 1
    dynamodb.restore_table_from_backup(TargetTableName=table, BackupArn=arn)
    support.wait_until_active(dynamodb, table)
    assert get(dynamodb, table, pk="a")["v"] == n(1)


def test_commands(endpoint, dynamodb):
    """`zenobe history`, `zenobe status` and `zenobe sql --as-of`."""
    table = create_table(dynamodb)
    switch(dynamodb, table)
    put(dynamodb, table, pk="a", v=1)
    then = next_second()
    put(dynamodb, table, pk="a", v=2)
    dynamodb.delete_item(TableName=table, Key=item(pk="a"))

    def zenobe(*arguments):
        environment = os.environ | {"ZENOBE_ENDPOINT": endpoint}
        done = subprocess.run(
            [server.binary(), *arguments], env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    lines = zenobe("history", table, json.dumps(item(pk="a"))).splitlines()
    assert [line.split()[-1] for line in lines if line[0] != " "][:3] == ["deleted", "changed", "created"]
    assert '  - v: {"N":"1"}' in lines and '  + v: {"N":"2"}' in lines
    versions = json.loads(zenobe("history", table, json.dumps(item(pk="a")), "--json"))
    assert [version["Change"] for version in versions] == ["REMOVE", "MODIFY", "INSERT", "UNKNOWN"]
    selected = zenobe("sql", "--as-of", then.isoformat(), "--format", "json", "-c", f'SELECT * FROM "{table}"')
    assert json.loads(selected) == {"pk": "a", "v": 1}
    assert f"Table {table} can be restored within 35 days: 3 earlier versions" in zenobe("status")


def test_large_versions_come_in_pages(endpoint, dynamodb):
    table = create_table(dynamodb)
    switch(dynamodb, table)
    for number in range(12):
        put(dynamodb, table, pk="a", v=number, filling="x" * 300_000)

    def page(**more):
        body = json.dumps({"TableName": table, "Key": item(pk="a"), "Limit": 1000, **more})
        asked = urllib.request.Request(f"{endpoint}/_zenobe/history", data=body.encode(), method="POST")
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.loads(answer.read())

    seen, found = [], page()
    while True:
        assert len(found["Versions"]) < 12
        seen += found["Versions"]
        if "Before" not in found:
            break
        found = page(Before=found["Before"])
    values = [version["Item"]["v"]["N"] for version in seen if "Item" in version]
    assert values == [str(number) for number in reversed(range(12))]
    assert [version["Change"] for version in seen[:12]] == ["MODIFY"] * 11 + ["INSERT"]
    with pytest.raises(urllib.error.HTTPError, match="400"):
        page(Before="yesterday")


def test_the_five_minutes_of_aws(tmp_path):
    support.skip_if_aimed_elsewhere()
    (tmp_path / "bucket").mkdir()
    arguments = ["--driven-clock", "--restorable-lag-seconds", "300", "--s3-endpoint", f"file://{tmp_path}"]
    lagging = Server(arguments=arguments)
    try:
        check_the_five_minutes(support.client(lagging.endpoint), Clock(lagging.endpoint))
    finally:
        lagging.kill()


def check_the_five_minutes(dynamodb, clock):
    table = create_table(dynamodb)
    switch(dynamodb, table)
    begin = clock.now_s()
    put(dynamodb, table, pk="a", v=1)
    clock.advance(minutes=20)
    put(dynamodb, table, pk="a", v=2)
    now = clock.now_s()
    description = dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    window = description["PointInTimeRecoveryDescription"]
    assert window["EarliestRestorableDateTime"].timestamp() == begin
    assert window["LatestRestorableDateTime"].timestamp() == now - 300

    def restore(**when):
        target = unique_name("restored")
        dynamodb.restore_table_to_point_in_time(SourceTableName=table, TargetTableName=target, **when)
        support.wait_until_active(dynamodb, target)
        return get(dynamodb, target, pk="a")["v"]

    def text(second):
        return datetime.datetime.fromtimestamp(second, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    # Both mean the state of five minutes ago.
    assert restore(RestoreDateTime=now - 300) == n(1)
    assert restore(UseLatestRestorableTime=True) == n(1)
    for second in (now - 299, now, begin - 1):
        outside = (
            f"RestoreDateTime '{text(second)}' must be within EarliestRestorableDateTime '{text(begin)}'"
            f" and LatestRestorableDateTime '{text(now - 300)}'"
        )
        with refused("InvalidRestoreTimeException", outside):
            restore(RestoreDateTime=second)

    arn = dynamodb.describe_table(TableName=table)["Table"]["TableArn"]
    too_recent = "Point in Time Recovery is not available for specified export time"

    def export(**when):
        export = dynamodb.export_table_to_point_in_time(TableArn=arn, S3Bucket="bucket", **when)["ExportDescription"]

        def described():
            return dynamodb.describe_export(ExportArn=export["ExportArn"])["ExportDescription"]

        support.wait_until(lambda: described()["ExportStatus"] != "IN_PROGRESS", "the export has ended")
        return described()

    with refused("InvalidExportTimeException", too_recent):
        export(ExportTime=now - 299)
    changes = {"ExportFromTime": begin, "ExportToTime": now - 299}
    with refused("InvalidExportTimeException", too_recent):
        export(ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=changes)
    ended = export(ExportTime=now - 300)
    assert (ended["ExportStatus"], ended["ItemCount"]) == ("COMPLETED", 1)
    clock.advance(seconds=1)
    assert export(ExportTime=now - 299)["ExportStatus"] == "COMPLETED"
    # Reads as of a time don't wait.
    with as_of(dynamodb, datetime.datetime.fromtimestamp(now, datetime.timezone.utc)):
        assert get(dynamodb, table, pk="a")["v"] == n(2)
