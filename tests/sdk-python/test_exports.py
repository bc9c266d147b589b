"""ExportTableToPointInTime to a real S3-compatible server, read back by AWS's libraries, by ImportTable and by `zenobe import`."""

import base64
import gzip
import hashlib
import json
import os
import re
import subprocess
import time

import amazon.ion.simpleion as ion
import pytest
from botocore.exceptions import ClientError

import support
from bucket_server import access, client, open_store, server, start, store  # noqa: F401 (fixtures)
from server import Server, binary
from streams import Clock
from test_bulk_puts import begin as begin_bulk_put, wait as wait_for_bulk_put
from test_export_command import assert_kept_by_csv
from test_imports import TO_WIRE, canonical, items, run as run_import, scan, wait as wait_for_import


@pytest.fixture(scope="module")
def table(client):
    return filled(client, [TO_WIRE(item)["M"] for item in items(500)])


def filled(client, wire_items):
    table = support.create_table(client, keys="pk:S,sk:N")
    recovery = {"PointInTimeRecoveryEnabled": True}
    client.update_continuous_backups(TableName=table, PointInTimeRecoverySpecification=recovery)
    for item in wire_items:
        client.put_item(TableName=table, Item=item)
    return table


def begin(client, table, **more):
    arn = client.describe_table(TableName=table)["Table"]["TableArn"]
    return client.export_table_to_point_in_time(**{"TableArn": arn, "S3Bucket": "bucket", **more})["ExportDescription"]


def wait(client, description):
    deadline = time.monotonic() + 120
    while description["ExportStatus"] == "IN_PROGRESS":
        assert time.monotonic() < deadline, description
        time.sleep(0.05)
        description = client.describe_export(ExportArn=description["ExportArn"])["ExportDescription"]
    return description


def run(client, table, **more):
    return wait(client, begin(client, table, **more))


def md5(data):
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def get(store, key):
    return store.s3.get_object(Bucket="bucket", Key=key)["Body"].read()


def keys(store, prefix):
    return {it["Key"] for it in store.s3.list_objects_v2(Bucket="bucket", Prefix=prefix).get("Contents", [])}


def exported(store, description):
    """The summary and the text of all data files, once everything has been compared with its checksum."""
    assert description["ExportStatus"] == "COMPLETED", description
    summary = get(store, description["ExportManifest"])
    assert get(store, description["ExportManifest"].replace(".json", ".md5")).decode() == md5(summary)
    summary = json.loads(summary)
    files = get(store, summary["manifestFilesS3Key"])
    assert get(store, summary["manifestFilesS3Key"].replace(".json", ".md5")).decode() == md5(files)
    text = b""
    for line in files.splitlines():
        file = json.loads(line)
        data = get(store, file["dataFileS3Key"])
        head = store.s3.head_object(Bucket="bucket", Key=file["dataFileS3Key"])
        assert file["md5Checksum"] == md5(data)
        assert file["etag"] == head["ETag"].strip('"')
        part = gzip.decompress(data)
        assert file["itemCount"] == part.count(b"\n")
        text += part
    assert summary["itemCount"] == description["ItemCount"] == text.count(b"\n")
    return summary, text


@pytest.mark.parametrize("format", ["DYNAMODB_JSON", "ION"])
def test_a_round_trip_keeps_every_type(store, server, client, table, format, tmp_path):
    prefix = support.unique_name("round-trip")
    started = begin(client, table, S3Prefix=prefix, ExportFormat=format)
    assert started["ExportStatus"] == "IN_PROGRESS"
    assert started["ExportTime"] == started["StartTime"]
    assert started["S3SseAlgorithm"] == "AES256"
    assert started["ClientToken"]
    assert "ExportType" not in started
    description = wait(client, started)
    summary, text = exported(store, description)
    folder = description["ExportManifest"].rsplit("/", 1)[0]
    assert re.fullmatch(prefix + r"/AWSDynamoDB/\d{14}-[0-9a-f]{8}", folder)
    names = {key.removeprefix(folder + "/") for key in keys(store, prefix)}
    data = {name for name in names if name.startswith("data/")}
    assert all(re.fullmatch(r"data/[a-z2-7]{26}\.(json|ion)\.gz", name) for name in data)
    manifests = {f"manifest-{kind}.{end}" for kind in ("summary", "files") for end in ("json", "md5")}
    assert names - data == {"_started", *manifests}
    assert summary["s3Prefix"] == prefix and summary["outputFormat"] == format
    assert description["BilledSizeBytes"] == summary["billedSizeBytes"] > 0
    expected = canonical(scan(client, table))
    if format == "ION":
        records = ion.loads(text.decode(), single_value=False)
        assert len(records) == 500 and set(records[0]) == {"Item"}
    else:
        assert canonical(json.loads(line)["Item"] for line in text.splitlines()) == canonical(as_json(scan(client, table)))
    imported, copy = run_import(client, f"{folder}/data/", format, "GZIP")
    assert imported["ImportStatus"] == "COMPLETED", imported
    assert canonical(scan(client, copy)) == expected

    again = support.unique_name("command")
    import_by_command(store, server, folder, again, tmp_path)
    assert canonical(scan(client, again)) == expected


def import_by_command(store, server, folder, table, tmp_path):
    run_command(store, server, tmp_path, "import", f"s3://bucket/{folder}", "--table", table, "--keys", "pk:S,sk:N")


def run_command(store, server, tmp_path, *arguments):
    environment = {
        **os.environ, "ZENOBE_ENDPOINT": server.endpoint, "ZENOBE_S3_ENDPOINT": store.endpoint,
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
    }
    done = subprocess.run([binary(), *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("format", ["dynamodb-json", "ion", "csv"])
def test_files_of_the_command_are_read_by_import_table(store, server, client, table, format, tmp_path):
    prefix = support.unique_name("command")
    run_command(store, server, tmp_path, "export", table, "--to", f"s3://bucket/{prefix}", "--format", format)
    kind = format.upper().replace("-", "_")
    imported, copy = run_import(client, f"{prefix}/table={table}/part-", kind, "GZIP")
    assert (imported["ImportStatus"], imported["ErrorCount"]) == ("COMPLETED", 0), imported
    if format == "csv":
        assert_kept_by_csv(scan(client, copy), scan(client, table), ["pk", "sk"])
    else:
        assert canonical(scan(client, copy)) == canonical(scan(client, table))


def as_json(found):
    """Items of boto3 as JSON has them: bytes in base64."""
    def plain(value):
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        if isinstance(value, dict):
            return {name: plain(member) for name, member in value.items()}
        if isinstance(value, list):
            return [plain(member) for member in value]
        return value

    return [plain(item) for item in found]


def test_a_time_in_the_past_and_a_filter(store, client):
    table = filled(client, [{"pk": {"S": "a"}, "sk": {"N": str(n)}, "n": {"N": str(n)}} for n in range(10)])
    at = time.time()
    # The export shows the whole millisecond. It begins like the time that the SDK sends, which has microseconds.
    while int(time.time() * 1000) <= int(at * 1000 + 0.0005):
        pass
    client.delete_item(TableName=table, Key={"pk": {"S": "a"}, "sk": {"N": "7"}})
    client.put_item(TableName=table, Item={"pk": {"S": "b"}, "sk": {"N": "1"}})
    description = run(
        client, table, S3Prefix=table, ExportTime=at,
        FilterSpecification={
            "KeyConditionExpression": "pk = :a AND sk > :six", "FilterExpression": "n < :nine", "ProjectionExpression": "n",
            "ExpressionAttributeValues": {":a": {"S": "a"}, ":six": {"N": "6"}, ":nine": {"N": "9"}},
        },
    )
    _, text = exported(store, description)
    assert sorted(text.splitlines()) == [b'{"Item":{"n":{"N":"7"}}}', b'{"Item":{"n":{"N":"8"}}}']
    assert description["FilterSpecification"]["FilterExpression"] == "n < :nine"


@pytest.fixture(scope="module")
def driven(store, tmp_path_factory):
    """A server whose clock the tests move: AWS exports the changes of 15 minutes or more."""
    server = Server(arguments=["--driven-clock", *access(store.endpoint, tmp_path_factory.mktemp("driven"))])
    yield server
    assert server.process.poll() is None, "the server died:\n" + "".join(server.output)
    server.kill()


@pytest.mark.parametrize("view", ["NEW_IMAGE", "NEW_AND_OLD_IMAGES"])
@pytest.mark.parametrize("format", ["DYNAMODB_JSON", "ION"])
def test_changes_between_two_times(store, driven, format, view, tmp_path):
    client, clock = support.client(driven.endpoint), Clock(driven.endpoint)
    wire = [TO_WIRE(item)["M"] for item in items(6)]
    key = [{name: item[name] for name in ("pk", "sk")} for item in wire]
    table = filled(client, wire[:4])
    clock.advance(minutes=20)
    since = clock.now_s()
    clock.advance(seconds=1)
    client.update_item(
        TableName=table, Key=key[0], UpdateExpression="SET l[0] = :v", ExpressionAttributeValues={":v": {"S": "changed"}}
    )
    client.delete_item(TableName=table, Key=key[1])
    client.put_item(TableName=table, Item=wire[4])
    # Neither what was there only in between, nor what ended as it began, is a change.
    client.put_item(TableName=table, Item=wire[5])
    client.delete_item(TableName=table, Key=key[5])
    client.delete_item(TableName=table, Key=key[2])
    client.put_item(TableName=table, Item=wire[2])
    clock.advance(minutes=20)
    until = clock.now_s()
    expected = canonical(scan(client, table))
    clock.advance(minutes=1)
    client.delete_item(TableName=table, Key=key[3])

    prefix = support.unique_name("changes")
    changes = run(
        client, table, S3Prefix=prefix, ExportFormat=format, ExportType="INCREMENTAL_EXPORT",
        IncrementalExportSpecification={"ExportFromTime": since, "ExportToTime": until, "ExportViewType": view},
    )
    summary, text = exported(store, changes)
    assert (summary["exportType"], summary["outputView"]) == ("INCREMENTAL_EXPORT", view)
    assert changes["IncrementalExportSpecification"]["ExportViewType"] == view
    if format == "ION":
        records = [record["Record"] if "Record" in record else record for record in ion.loads(text.decode(), single_value=False)]
    else:
        records = [json.loads(line) for line in text.splitlines()]
        for record in records:
            assert since * 10**6 < int(record["Metadata"]["WriteTimestampMicros"]["N"]) < until * 10**6
        by_key = {record["Keys"]["pk"]["S"]: record for record in records}
        images = {name: ("OldImage" in record, "NewImage" in record) for name, record in by_key.items()}
        has_old = view == "NEW_AND_OLD_IMAGES"
        names = [each["pk"]["S"] for each in key]
        assert images == {names[0]: (has_old, True), names[1]: (has_old, False), names[4]: (False, True)}
        assert canonical([by_key[names[4]]["NewImage"]]) == canonical(as_json([wire[4]]))
    assert len(records) == 3

    # The state before and the changes are the state after.
    before = run(client, table, S3Prefix=prefix, ExportFormat=format, ExportTime=since)
    copy = support.unique_name("copy")
    for export in (before, changes):
        import_by_command(store, driven, export["ExportManifest"].rsplit("/", 1)[0], copy, tmp_path)
    assert canonical(scan(client, copy)) == expected


def test_tokens_and_lists(store, client, table):
    prefix = support.unique_name("token")
    first = run(client, table, S3Prefix=prefix, ClientToken=prefix)
    assert run(client, table, S3Prefix=prefix, ClientToken=prefix) == first
    with pytest.raises(client.exceptions.ExportConflictException, match="Duplicate request detected with conflicting parameters"):
        begin(client, table, S3Prefix=prefix + "x", ClientToken=prefix)
    second = run(client, table, S3Prefix=prefix, ExportType="FULL_EXPORT")
    assert second["ExportType"] == "FULL_EXPORT"
    page = client.list_exports(TableArn=first["TableArn"], MaxResults=1)
    assert [it["ExportArn"] for it in page["ExportSummaries"]] == [second["ExportArn"]]
    page = client.list_exports(TableArn=first["TableArn"], MaxResults=1, NextToken=page["NextToken"])
    summary = {"ExportArn": first["ExportArn"], "ExportStatus": "COMPLETED", "ExportType": "FULL_EXPORT"}
    assert page["ExportSummaries"] == [summary]


def test_errors_of_the_requests(client, table):
    with pytest.raises(client.exceptions.ExportNotFoundException, match="Export not found: Export not found: arn:aws"):
        client.describe_export(ExportArn="arn:aws:dynamodb:us-east-1:000000000000:table/abc/export/01693685827463-2d8752fd")
    with pytest.raises(ClientError, match="Invalid Export ARN"):
        client.describe_export(ExportArn="arn:aws:dynamodb:us-east-1:000000000000:table/abc")
    with pytest.raises(client.exceptions.InvalidExportTimeException, match="Export Time is invalid"):
        begin(client, table, ExportTime=time.time() + 3600)
    with pytest.raises(client.exceptions.InvalidExportTimeException, match="less than the table creation time"):
        incremental = {"ExportFromTime": 1, "ExportToTime": 2}
        begin(client, table, ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=incremental)
    plain = support.create_table(client)
    with pytest.raises(client.exceptions.PointInTimeRecoveryUnavailableException):
        begin(client, plain)
    with pytest.raises(client.exceptions.TableNotFoundException, match="Table not found: arn:aws"):
        begin(client, plain, TableArn="arn:aws:dynamodb:us-east-1:000000000000:table/there-is-none")


def test_bad_days_of_the_store_are_survived(store, client, table):
    prefix = support.unique_name("bad-days")
    store.proxy.throttled, store.proxy.corrupted = 2, 3
    description = run(client, table, S3Prefix=prefix)
    assert (store.proxy.throttled, store.proxy.corrupted) == (0, 0)
    exported(store, description)
    missing = run(client, table, S3Bucket="there-is-none")
    assert (missing["ExportStatus"], missing["FailureCode"]) == ("FAILED", "S3NoSuchBucket"), missing


def test_a_store_that_denies_access_ends_exports_and_imports_at_once(store, client, table):
    store.proxy.closed = True
    try:
        target = support.definition(support.unique_name("import"), "pk:S,sk:N")
        started = client.import_table(
            S3BucketSource={"S3Bucket": "bucket"}, InputFormat="DYNAMODB_JSON", TableCreationParameters=target,
        )
        ended = [
            run(client, table), wait_for_import(client, started["ImportTableDescription"]),
            wait_for_bulk_put(client, begin_bulk_put(client, table, "x/")),
        ]
    finally:
        store.proxy.closed = False
    states = [next(value for name, value in each.items() if name.endswith("Status")) for each in ended]
    assert states == ["FAILED"] * 3
    assert [each["FailureCode"] for each in ended] == ["S3AccessDenied"] * 3
    assert all(each["FailureMessage"].startswith("Access Denied: ") for each in ended), ended
    assert "ExportManifest" not in ended[0]
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.describe_table(TableName=target["TableName"])


@pytest.mark.parametrize("key", ["alias/exports", None])
def test_the_store_is_told_to_encrypt_by_kms(store, client, table, key):
    prefix = support.unique_name("kms")
    encryption = {"S3SseAlgorithm": "KMS", **({"S3SseKmsKeyId": key} if key else {})}
    description = run(client, table, S3Prefix=prefix, **encryption)
    summary, _ = exported(store, description)
    assert (summary["s3SseAlgorithm"], summary["s3SseKmsKeyId"]) == ("KMS", key)
    written = keys(store, prefix)
    assert len(written) == 6
    for name in written:
        head = store.s3.head_object(Bucket="bucket", Key=name)
        assert (head["ServerSideEncryption"], head.get("SSEKMSKeyId")) == ("aws:kms", key), name


@pytest.mark.parametrize("requests", [1, 2, 4], ids=["first-file", "second-file", "manifests"])
def test_a_killed_server_goes_on_with_its_export(tmp_path, requests):
    store = open_store()
    server = start(store, tmp_path / "data")
    try:
        client = support.client(server.endpoint)
        # Two data files, because noise does not compress.
        wire = [{"pk": {"S": "k"}, "sk": {"N": str(n)}, "b": {"B": os.urandom(390_000)}} for n in range(56)]
        table = filled(client, wire)
        expected = canonical(scan(client, table))
        store.proxy.hold_after(requests)
        description = begin(client, table)
        folder = f"AWSDynamoDB/{description['ExportArn'].rsplit('/')[-1]}"
        support.wait_until(store.proxy.holds, "a request is held")
        assert client.describe_export(ExportArn=description["ExportArn"])["ExportDescription"]["ExportStatus"] == "IN_PROGRESS"
        assert f"{folder}/manifest-summary.json" not in keys(store, folder)
        server.kill()
        store.proxy.release()
        server = start(store, tmp_path / "data")
        client = support.client(server.endpoint)
        done = wait(client, description)
        summary, text = exported(store, done)
        assert summary["itemCount"] == 56
        data = keys(store, f"{folder}/data/")
        assert len(data) == 2, "an attempt that is repeated writes the same files"
        imported, copy = run_import(client, f"{folder}/data/", compression="GZIP")
        assert imported["ImportStatus"] == "COMPLETED", imported
        assert canonical(scan(client, copy)) == expected
    finally:
        server.kill()
        store.close()


@pytest.mark.parametrize("requests", [0, 1, 2], ids=["started", "data", "manifests"])
def test_a_killed_server_goes_on_with_an_incremental_export(tmp_path, requests):
    store, prefix = open_store(), support.unique_name("changes")
    server = start(store, tmp_path / "data", "--driven-clock")
    try:
        client, clock = support.client(server.endpoint), Clock(server.endpoint)
        wire = [TO_WIRE(item)["M"] for item in items(40)]
        table = filled(client, wire[:10])
        since = clock.now_s() + 1
        clock.advance(minutes=1)
        for item in wire[10:]:
            client.put_item(TableName=table, Item=item)
        clock.advance(minutes=20)
        until = clock.now_s()
        store.proxy.hold_after(requests)
        description = begin(
            client, table, ExportType="INCREMENTAL_EXPORT", S3Prefix=prefix,
            IncrementalExportSpecification={"ExportFromTime": since, "ExportToTime": until},
        )
        support.wait_until(store.proxy.holds, "a request is held")
        folder = f"{prefix}/AWSDynamoDB/{description['ExportArn'].rsplit('/')[-1]}"
        assert f"{folder}/manifest-summary.json" not in keys(store, folder)
        server.kill()
        store.proxy.release()
        server = start(store, tmp_path / "data", "--driven-clock")
        client = support.client(server.endpoint)
        summary, text = exported(store, wait(client, description))
        assert summary["itemCount"] == 30
        images = [json.loads(line)["NewImage"] for line in text.splitlines()]
        assert canonical(images) == canonical(as_json(wire[10:]))
        files = get(store, summary["manifestFilesS3Key"]).splitlines()
        assert keys(store, f"{prefix}/AWSDynamoDB/data/") == {json.loads(line)["dataFileS3Key"] for line in files}
    finally:
        server.kill()
        store.close()


def test_an_unreachable_store_is_waited_for(store, client, table):
    refusals = store.proxy.refused
    store.proxy.away = True
    started = begin(client, table, S3Prefix=support.unique_name("away"))
    support.wait_until(lambda: store.proxy.refused > refusals, "the store is asked")
    described = client.describe_export(ExportArn=started["ExportArn"])["ExportDescription"]
    assert described["ExportStatus"] == "IN_PROGRESS"
    store.proxy.away = False
    exported(store, wait(client, started))


def test_a_store_that_stays_away_ends_exports_and_imports(tmp_path):
    store = open_store()
    server = start(store, tmp_path / "data")
    try:
        client = support.client(server.endpoint)
        table = filled(client, [TO_WIRE(item)["M"] for item in items(3)])
        store.proxy.away = True
        export, target = begin(client, table), support.definition(keys="pk:S,sk:N")
        started = client.import_table(
            S3BucketSource={"S3Bucket": "bucket"}, InputFormat="DYNAMODB_JSON", TableCreationParameters=target,
        )
        put = begin_bulk_put(client, table, "x/")
        ended = [
            wait(client, export), wait_for_import(client, started["ImportTableDescription"]), wait_for_bulk_put(client, put),
        ]
        states = [next(value for name, value in each.items() if name.endswith("Status")) for each in ended]
        assert states == ["FAILED"] * 3
        assert [each["FailureCode"] for each in ended] == ["S3Unavailable"] * 3
        assert client.list_tables()["TableNames"] == [table]
        # What has failed stands in the way of nothing.
        store.proxy.away = False
        exported(store, run(client, table))
    finally:
        server.kill()
        store.close()


def test_without_an_object_store_the_reason_is_told(memory_server):
    client = support.client(memory_server.endpoint)
    table = filled(client, [])
    with pytest.raises(ClientError, match="ExportTableToPointInTime needs an object store; start the server with --s3-endpoint"):
        begin(client, table)
