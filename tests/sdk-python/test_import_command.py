"""`zenobe import`: exports, files and models, on the client's side."""

import base64
import decimal
import gzip
import hashlib
import json
import os
import pathlib
import sqlite3
import subprocess

import pytest

import support
from bucket_server import open_store
from server import binary

LINE = '{"Item":{"pk":{"S":"%s"},"name":{"S":"%s"},"n":{"N":"%d"}}}'


@pytest.fixture
def run(endpoint, tmp_path):
    def run(*arguments, status=0):
        environment = {**os.environ, "ZENOBE_ENDPOINT": endpoint, "ZENOBE_ANONYMISE_KEY": "key"}
        command = [binary(), "import", *map(str, arguments)]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def items(client, table):
    return sorted(client.scan(TableName=table)["Items"], key=lambda item: item["pk"]["S"])


def md5(data):
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def export(folder, lines, shared=False, **summary):
    """An export as AWS lays it out. Incremental ones share a folder for their data."""
    root = folder / "AWSDynamoDB" / "01693685827463-2d8752fd"
    root.mkdir(parents=True)
    data_folder = root.parent / "data" if shared else root / "data"
    data_folder.mkdir()
    data = gzip.compress("\n".join(lines).encode())
    (data_folder / "abc.json.gz").write_bytes(data)
    key = "prefix/AWSDynamoDB/01693685827463-2d8752fd/data/abc.json.gz"
    files = json.dumps({"itemCount": len(lines), "md5Checksum": md5(data), "etag": "x-1", "dataFileS3Key": key})
    summary = json.dumps({"outputFormat": "DYNAMODB_JSON", "manifestFilesS3Key": "x", **summary})
    for name, text in [("manifest-files", files), ("manifest-summary", summary)]:
        (root / f"{name}.json").write_text(text)
        (root / f"{name}.md5").write_text(md5(text.encode()))
    (root / "_started").touch()
    return root


def test_exports_of_both_kinds(run, dynamodb, tmp_path):
    table = support.unique_name("exported")
    root = export(tmp_path / "full", [LINE % (f"k{n:03}", "x", n) for n in range(450)])
    assert "450 items imported, 0 records rejected" in run(root, "--table", table, "--keys", "pk:S")
    assert len(items(dynamodb, table)) == 450
    change = '{"Metadata":{"WriteTimestampMicros":{"N":"1"}},"Keys":{"pk":{"S":"%s"}},"OldImage":{"pk":{"S":"%s"}}%s}'
    new = ',"NewImage":{"pk":{"S":"k001"},"name":{"S":"changed"}}'
    lines = [change % ("k000", "k000", ""), change % ("k001", "k001", new)]
    root = export(tmp_path / "changes", lines, shared=True, exportType="INCREMENTAL_EXPORT")
    assert "1 items imported, 1 deleted" in run(root, "--table", table)
    found = items(dynamodb, table)
    assert len(found) == 449
    assert found[0] == {"pk": {"S": "k001"}, "name": {"S": "changed"}}
    assert not list(tmp_path.glob("*.state"))


@pytest.mark.parametrize("damaged", ["data/abc.json.gz", "manifest-files.json", "manifest-summary.json"])
def test_damaged_exports_are_refused_before_anything_is_written(run, dynamodb, tmp_path, damaged):
    table = support.create_table(dynamodb, keys="pk:S")
    root = export(tmp_path / "export", [LINE % ("a", "x", 1)])
    path = root / damaged
    path.write_bytes(path.read_bytes() + b" ")
    run(root, "--table", table, status=1)
    assert items(dynamodb, table) == []


def test_files_go_by_their_names(run, dynamodb, tmp_path):
    table = support.unique_name("files")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"pk":"a","deep":{"list":[1,true,null]},"big":123456789012345678901234567890.5}\n')
    (folder / "b.csv").write_text("pk,x\nb,1\n")
    (folder / "c.tsv.gz").write_bytes(gzip.compress(b"pk\tx\nc\t2\n"))
    (folder / "d.ion").write_text('$ion_1_0 {Item:{pk:"d",s:$dynamodb_NS::[1.,2d1]}}')
    run(folder, "--table", table, "--keys", "pk:S")
    found = items(dynamodb, table)
    assert found[0]["deep"] == {"M": {"list": {"L": [{"N": "1"}, {"BOOL": True}, {"NULL": True}]}}}
    assert found[0]["big"] == {"N": "123456789012345678901234567890.5"}
    assert found[1:3] == [{"pk": {"S": "b"}, "x": {"S": "1"}}, {"pk": {"S": "c"}, "x": {"S": "2"}}]
    assert sorted(found[3]["s"]["NS"]) == ["1", "20"]


def test_rejected_records_are_listed_and_a_dry_run_writes_nothing(run, dynamodb, tmp_path):
    table = support.create_table(dynamodb, keys="pk:S,n:N")
    file = tmp_path / "items.json"
    bad = ['{"Item":{"pk":{"S":"b"}}}', '{"Item":{"pk":{"S":""},"n":{"N":"1"}}}', "not json", LINE % ("z", "x", 9)]
    file.write_text("\n".join([LINE % ("a", "x", 1), *bad]))
    dry = run(file, "--table", table, "--dry-run", status=1)
    assert "items would be imported" in dry
    assert items(dynamodb, table) == []
    report = tmp_path / "report.json"
    printed = run(file, "--table", table, "--report", report, status=1)
    assert "items.json, record 2: the key n is missing" in printed
    written = json.loads(report.read_text())
    assert (written["imported"], written["rejected"]) == (1, 3)
    assert sorted(entry["record"] for entry in written["rejections"]) == [2, 3, 4]
    assert [item["pk"]["S"] for item in items(dynamodb, table)] == ["a"]


def test_an_import_killed_within_a_file_continues_with_its_report(run, dynamodb, endpoint, tmp_path):
    table = support.create_table(dynamodb, keys="pk:S")
    file = tmp_path / "items.json"
    lines = [LINE % (f"k{n:05}", "x", n) for n in range(40_000)]
    lines[1] = '{"Item":{"n":{"N":"1"}}}'
    file.write_text("\n".join(lines))
    state = tmp_path / f"zenobe-import-{table}.state"
    environment = {**os.environ, "ZENOBE_ENDPOINT": endpoint, "ZENOBE_ANONYMISE_KEY": "key"}
    command = [binary(), "import", file, "--table", table, "--quiet", "--anonymise", "name=hash"]
    process = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        support.wait_until(state.exists, "some records are written")
    finally:
        process.kill()
        process.wait()
    before = state.read_text()
    assert 0 < json.loads(before)["current"]["records"] < 40_000
    # What another command would skip, nobody has written.
    rules = ["--anonymise", "name=hash"]
    other = [(file, "--table", table), (file, "--table", table, *rules, "--format", "ion"),
             (file, "--table", table, *rules, "--anonymise-key", "other")]
    for arguments in other:
        assert "is the state of an interrupted import with" in run(*arguments, status=1)
    modified = file.stat().st_mtime_ns
    os.utime(file, ns=(modified, modified + 1_000_000_000))
    assert "has changed since it was imported, whole or in part" in run(file, "--table", table, *rules, status=1)
    os.utime(file, ns=(modified, modified))
    # A table of another account, or one that was deleted and created again, has the same name and another id.
    table_id = dynamodb.describe_table(TableName=table)["Table"]["TableId"]
    assert table_id in before
    state.write_text(before.replace(table_id, "another"))
    assert "is the state of an interrupted import with another table" in run(file, "--table", table, *rules, status=1)
    state.write_text(before)
    assert state.read_text() == before
    report = tmp_path / "report.json"
    printed = run(file, "--table", table, *rules, "--report", report, status=1)
    assert "39999 items imported, 1 records rejected" in printed
    assert "items.json, record 2: the key pk is missing" in printed
    written = json.loads(report.read_text())
    assert (written["imported"], written["rejected"], len(written["rejections"])) == (39_999, 1, 1)
    assert not state.exists()
    pages = dynamodb.get_paginator("scan").paginate(TableName=table, Select="COUNT")
    assert sum(page["Count"] for page in pages) == 39_999


def test_a_killed_import_continues(dynamodb, endpoint, tmp_path):
    table = support.unique_name("killed")
    store = open_store()
    for number in range(6):
        lines = [LINE % (f"{number}-{n:03}", "x", n) for n in range(50)]
        store.s3.put_object(Bucket="bucket", Key=f"{table}/{number}.json", Body="\n".join(lines))
    environment = {
        **os.environ, "ZENOBE_ENDPOINT": endpoint, "ZENOBE_S3_ENDPOINT": store.endpoint,
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1",
    }
    command = [binary(), "import", f"s3://bucket/{table}", "--table", table, "--keys", "pk:S"]
    state = tmp_path / f"zenobe-import-{table}.state"
    store.proxy.hold_after(3)
    process = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        support.wait_until(store.proxy.holds, "a part is held")
        done = json.loads(state.read_text())["done"]
        assert 0 < len(done) < 6
        found = items(dynamodb, table)
        assert len(found) == 50 * len(done)
        # What the first run has written is not written again.
        dynamodb.put_item(TableName=table, Item={**found[0], "name": {"S": "changed"}})
    finally:
        process.kill()
        process.communicate()
    store.proxy.release()
    again = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    store.close()
    assert again.returncode == 0, again.stdout + again.stderr
    assert "300 items imported" in again.stdout + again.stderr
    found = items(dynamodb, table)
    assert [item["pk"]["S"] for item in found] == [f"{number}-{n:03}" for number in range(6) for n in range(50)]
    assert found[0]["name"] == {"S": "changed"}
    assert not state.exists()


def test_values_are_replaced_on_the_way(run, dynamodb, tmp_path):
    table = support.unique_name("anonymous")
    file = tmp_path / "people.csv"
    file.write_text("pk,email,card\nada,ada@corp.example,4111111111111234\nbob,bob@corp.example,55\n")
    rules = ["--anonymise", "email=fake:email", "--anonymise", "card=mask:4", "--anonymise", "pk=hash"]
    run(file, "--table", table, "--keys", "pk:S", *rules)
    found = items(dynamodb, table)
    assert len(found) == 2
    for item in found:
        assert item["email"]["S"].endswith("@example.com") and "corp" not in item["email"]["S"]
        assert len(item["pk"]["S"]) == 32
    assert sorted(item["card"]["S"] for item in found) == ["**", "************1234"]
    refused = run(file, "--table", table, "--anonymise", "email=nonsense", status=1)
    assert "is not a rule" in refused


def test_models_of_nosql_workbench_bring_their_tables(run, dynamodb, tmp_path):
    table = support.unique_name("Employee")
    key = {"PartitionKey": {"AttributeName": "pk", "AttributeType": "S"}}
    index = {"PartitionKey": {"AttributeName": "name", "AttributeType": "S"}, "SortKey": key["PartitionKey"]}
    model = {"ModelName": "m", "DataModel": [{
        "TableName": table, "KeyAttributes": key, "NonKeyAttributes": [],
        "TableData": [{"pk": {"S": "johns"}, "name": {"S": "John"}, "skills": {"SS": ["a"]}}],
        "GlobalSecondaryIndexes": [
            {"IndexName": "by-name", "KeyAttributes": index, "Projection": {"ProjectionType": "KEYS_ONLY"}},
        ],
        "BillingMode": "PROVISIONED",
        "ProvisionedCapacitySettings": {"ProvisionedThroughput": {"ReadCapacityUnits": 7, "WriteCapacityUnits": 3}},
    }]}
    (tmp_path / "model.json").write_text(json.dumps(model))
    run(tmp_path / "model.json")
    assert items(dynamodb, table) == model["DataModel"][0]["TableData"]
    described = dynamodb.describe_table(TableName=table)["Table"]
    assert described["GlobalSecondaryIndexes"][0]["IndexName"] == "by-name"
    for of in (described, described["GlobalSecondaryIndexes"][0]):
        assert of["ProvisionedThroughput"]["ReadCapacityUnits"] == 7
        assert of["ProvisionedThroughput"]["WriteCapacityUnits"] == 3


def test_what_cannot_be_read_says_why(run, dynamodb, tmp_path):
    table = support.create_table(dynamodb, keys="pk:S")
    database = tmp_path / "shared-local-instance.db"
    database.write_bytes(b"SQLite format 3\0" + bytes(100))
    assert "the size of pages is not a power of two" in run(database, "--table", table, status=1)
    assert "there is nothing at" in run(tmp_path / "absent", "--table", table, status=1)
    (tmp_path / "x.json").write_text('{"Item":{"pk":{"S":"a"}}}')
    missing = run(tmp_path / "x.json", "--table", "there-is-none", status=1)
    assert "the table there-is-none does not exist; --keys pk:S" in missing


@pytest.fixture
def local_database(tmp_path):
    """A file that DynamoDB Local made, and what it answered about it (tests/dynamodb-local)."""
    folder = pathlib.Path(__file__).resolve().parents[1] / "dynamodb-local"
    path = tmp_path / "shared-local-instance.db"
    path.write_bytes(gzip.decompress((folder / "database.db.gz").read_bytes()))
    return path, json.loads((folder / "database.json").read_text())


def encoded(value):
    """Bytes as base64, sets in order and numbers by their value."""
    if isinstance(value, dict):
        if set(value) == {"N"}:
            return {"N": str(decimal.Decimal(value["N"]).normalize())}
        inner = {name: encoded(part) for name, part in value.items()}
        return {name: sorted(part) if name in ("SS", "NS", "BS") else part for name, part in inner.items()}
    if isinstance(value, list):
        return [encoded(part) for part in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def canonical(items):
    return sorted(json.dumps(encoded(item), sort_keys=True) for item in items)


def described(table):
    """What describes a table, without the order of lists and what changes with time."""
    def schema(of):
        return [(key["AttributeName"], key["KeyType"]) for key in of["KeySchema"]]

    def units(of):
        throughput = of.get("ProvisionedThroughput", {})
        return throughput.get("ReadCapacityUnits", 0), throughput.get("WriteCapacityUnits", 0)

    indexes = {
        (kind, index["IndexName"]): (schema(index), index["Projection"], units(index))
        for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes") for index in table.get(kind, [])
    }
    types = {attribute["AttributeName"]: attribute["AttributeType"] for attribute in table["AttributeDefinitions"]}
    mode = table.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    return schema(table), types, indexes, mode, units(table), table.get("StreamSpecification")


def test_databases_of_dynamodb_local(run, dynamodb, local_database):
    path, tables = local_database
    assert "62 items would be imported, 0 records rejected" in run(path, "--dry-run")
    assert "62 items imported, 0 records rejected" in run(path)
    for name, expected in tables.items():
        assert described(dynamodb.describe_table(TableName=name)["Table"]) == described(expected["Table"])
        assert canonical(dynamodb.scan(TableName=name)["Items"]) == canonical(expected["Items"])
        time_to_live = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        assert time_to_live == expected["TimeToLive"]
    found = dynamodb.query(
        TableName="Orders", IndexName="by-status", KeyConditionExpression="#s = :s",
        ExpressionAttributeNames={"#s": "status"}, ExpressionAttributeValues={":s": {"S": "open"}},
    )
    assert found["Count"] == 1
    # Once more, into tables that exist.
    assert "61 items imported" in run(path, "--table", "many.rows-2")
    assert not list(path.parent.glob("*.state"))
    for name in tables:
        dynamodb.delete_table(TableName=name)


def test_databases_that_cannot_be_imported(run, local_database, tmp_path):
    path, _ = local_database
    assert "it has no table Missing, but Orders, many.rows-2, empty" in run(path, "--table", "Missing", status=1)
    journal = path.with_name(path.name + "-journal")
    journal.write_bytes(b"x")
    assert "start and stop DynamoDB Local once" in run(path, status=1)
    journal.unlink()
    folder = tmp_path / "folder"
    folder.mkdir()
    path.rename(folder / path.name)
    assert "give the path of the file itself" in run(folder, "--table", "t", "--keys", "pk:S", status=1)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    assert "not made by DynamoDB Local" in run(other, status=1)
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes((folder / path.name).read_bytes()[:5000])
    assert "the end of the file is missing" in run(damaged, status=1)
