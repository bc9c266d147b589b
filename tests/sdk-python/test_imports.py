"""ImportTable from a real S3-compatible server, of files that the formats' own libraries have written."""

import base64
import csv
import decimal
import gzip
import hashlib
import io
import json
import time

import amazon.ion.simpleion as ion
import boto3.dynamodb.types
import pytest
import zstandard
from amazon.ion.core import IonType
from amazon.ion.simple_types import IonPyList
from botocore.exceptions import ClientError

import support
from bucket_server import client, open_store, server, start, store  # noqa: F401 (fixtures)

COMPRESSIONS = {
    "NONE": lambda data: data,
    "GZIP": gzip.compress,
    "ZSTD": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}
TO_WIRE = boto3.dynamodb.types.TypeSerializer().serialize


def items(count=20):
    def item(number):
        return {
            "pk": f"key {number} é",
            "sk": decimal.Decimal(number) / 8,
            "b": bytes([0, number % 256]),
            "bool": number % 2 == 0,
            "null": None,
            "ss": {"a", f"b{number}"},
            "ns": {decimal.Decimal("1.5"), decimal.Decimal(number + 2)},
            "bs": {b"", bytes([number % 256, 1])},
            "l": ["", [], {"deep": [decimal.Decimal("-1e-100"), decimal.Decimal("9.99e120")]}],
            "m": {"a b": "quotes \" ' \\ and\nlines", "null": "a keyword"},
            "big": decimal.Decimal("12345678901234567890123456789012345678"),
        }

    return [item(number) for number in range(count)]


def to_ion(value):
    if isinstance(value, set):
        kind = {str: "SS", bytes: "BS"}.get(type(next(iter(value))), "NS")
        return IonPyList.from_value(IonType.LIST, sorted(value), annotations=(f"$dynamodb_{kind}",))
    if isinstance(value, dict):
        return {name: to_ion(member) for name, member in value.items()}
    if isinstance(value, list):
        return [to_ion(member) for member in value]
    return value


def dynamodb_json(items):
    def encode(value):
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        raise TypeError(value)

    lines = [json.dumps({"Item": TO_WIRE(item)["M"]}, default=encode) for item in items]
    return "\n".join(lines).encode()


def ion_file(binary):
    def write(items):
        records = [{"Item": to_ion(item)} for item in items]
        written = ion.dumps(records, binary=binary, sequence_as_stream=True)
        return written if binary else written.encode()

    return write


def begin(client, prefix, format="DYNAMODB_JSON", compression="NONE", keys="pk:S,sk:N", bucket="bucket", **more):
    started = client.import_table(
        S3BucketSource={"S3Bucket": bucket, "S3KeyPrefix": prefix}, InputFormat=format,
        InputCompressionType=compression, TableCreationParameters=support.definition(support.unique_name("import"), keys), **more,
    )
    return started["ImportTableDescription"]


def wait(client, description, until=lambda it: it["ImportStatus"] != "IN_PROGRESS"):
    deadline = time.monotonic() + 120
    while not until(description):
        assert time.monotonic() < deadline, description
        time.sleep(0.05)
        description = client.describe_import(ImportArn=description["ImportArn"])["ImportTableDescription"]
    return description


def run(client, *arguments, **more):
    description = wait(client, begin(client, *arguments, **more))
    return description, description["TableArn"].split("/")[-1]


def scan(client, table):
    found, start = [], {}
    while True:
        page = client.scan(TableName=table, ConsistentRead=True, **start)
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return found
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def canonical(items):
    def sort(value):
        [(kind, value)] = value.items()
        if kind in ("SS", "BS"):
            return {kind: sorted(value)}
        if kind == "NS":
            return {kind: sorted(decimal.Decimal(it) for it in value)}
        if kind == "N":
            return {kind: decimal.Decimal(value)}
        if kind == "L":
            return {kind: [sort(it) for it in value]}
        if kind == "M":
            return {kind: {name: sort(it) for name, it in value.items()}}
        return {kind: value}

    sorted_items = ({name: sort(it) for name, it in item.items()} for item in items)
    return sorted(sorted_items, key=lambda item: (item["pk"]["S"], item["sk"]["N"]))


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("format,write", [
    ("DYNAMODB_JSON", dynamodb_json), ("ION", ion_file(False)), ("ION", ion_file(True)),
], ids=["json", "ion-text", "ion-binary"])
def test_all_types_arrive_as_their_libraries_wrote_them(store, client, format, write, compression):
    expected = items()
    prefix = support.unique_name("types") + "/"
    half = len(expected) // 2
    for number, part in enumerate((expected[:half], expected[half:])):
        store.s3.put_object(Bucket="bucket", Key=f"{prefix}{number}", Body=COMPRESSIONS[compression](write(part)))
    description, table = run(client, prefix, format, compression)
    assert description["ImportStatus"] == "COMPLETED", description
    assert description["ImportedItemCount"] == description["ProcessedItemCount"] == len(expected)
    assert description["ErrorCount"] == 0
    assert canonical(scan(client, table)) == canonical(TO_WIRE(item)["M"] for item in expected)


def test_csv_files_of_the_standard_library(store, client):
    prefix = support.unique_name("csv") + "/"
    rows = [["a", "1.5", 'quoted "x", and\nmore', ""], ["b", "-2", "", "é"], ["a", "3", "plain", "y"]]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=";")
    writer.writerow(["pk", "sk", "x", "y z"])
    writer.writerows(rows)
    store.s3.put_object(Bucket="bucket", Key=prefix + "a.csv", Body=text.getvalue().encode())
    description, table = run(
        client, prefix, "CSV", InputFormatOptions={"Csv": {"Delimiter": ";"}},
    )
    assert description["ImportStatus"] == "COMPLETED", description
    assert description["InputFormatOptions"] == {"Csv": {"Delimiter": ";"}}
    names = ["pk", "sk", "x", "y z"]
    expected = [
        {name: ({"N": field} if name == "sk" else {"S": field}) for name, field in zip(names, row) if field}
        for row in rows
    ]
    assert canonical(scan(client, table)) == canonical(expected)


def test_throttling_and_broken_bodies_are_survived(store, client):
    prefix = support.unique_name("faulty") + "/"
    body = dynamodb_json(items(2000))
    store.s3.put_object(Bucket="bucket", Key=prefix + "x", Body=body)
    store.proxy.throttled, store.proxy.cut = 3, 2
    description, table = run(client, prefix)
    assert (store.proxy.throttled, store.proxy.cut) == (0, 0)
    assert description["ImportStatus"] == "COMPLETED", description
    assert description["ImportedItemCount"] == len(scan(client, table)) == 2000
    assert description["ProcessedSizeBytes"] == len(body)


def test_a_lying_store_is_found_out(store, client):
    export = f"AWSDynamoDB/{support.unique_name('export')}"
    body = gzip.compress(dynamodb_json(items()))
    key = f"{export}/data/x.json.gz"
    digest = base64.b64encode(hashlib.md5(body + b"!").digest()).decode()
    manifest = {"itemCount": 20, "md5Checksum": digest, "etag": "x-1", "dataFileS3Key": key}
    store.s3.put_object(Bucket="bucket", Key=key, Body=body)
    store.s3.put_object(Bucket="bucket", Key=f"{export}/manifest-files.json", Body=json.dumps(manifest))
    description, table = run(client, f"{export}/data/", compression="GZIP")
    assert description["FailureCode"] == "S3ChecksumMismatch", description
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.describe_table(TableName=table)


def test_a_missing_bucket_makes_no_table(client):
    description, table = run(client, "x/", bucket="there-is-none")
    assert (description["ImportStatus"], description["FailureCode"]) == ("FAILED", "S3NoSuchBucket"), description
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.describe_table(TableName=table)


def test_bad_items_fail_the_import_and_good_ones_stay(store, server, client):
    prefix = support.unique_name("bad") + "/"
    lines = dynamodb_json(items(3)) + b'\n{"Item":{"pk":{"S":"no sort key"}}}\n'
    store.s3.put_object(Bucket="bucket", Key=prefix + "x", Body=lines)
    description, table = run(client, prefix)
    assert description["FailureCode"] == "ItemValidationError", description
    assert (description["ErrorCount"], description["ImportedItemCount"]) == (1, 3)
    assert len(scan(client, table)) == 3
    events = [line for line in server.output if description["ImportArn"] in line]
    assert "One or more parameter values were invalid: Missing the key sk in the item" in events[-1]
    assert '"itemIndex":3' in events[-1]


def test_errors_of_the_requests(client):
    with pytest.raises(client.exceptions.ImportNotFoundException):
        client.describe_import(ImportArn="arn:aws:dynamodb:us-east-1:000000000000:table/abc/import/01-ab")
    with pytest.raises(ClientError, match="Invalid Import ARN"):
        client.describe_import(ImportArn="arn:aws:dynamodb:us-east-1:000000000000:table/abc")
    with pytest.raises(ClientError, match="Unsupported InputFormatOptions for the given input format: ION."):
        begin(client, "x", "ION", InputFormatOptions={"Csv": {}})
    with pytest.raises(ClientError, match="Number of attributes in KeySchema does not exactly match"):
        client.import_table(
            S3BucketSource={"S3Bucket": "bucket"}, InputFormat="CSV",
            TableCreationParameters={**support.definition("some-table", "pk:S,sk:N"), "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]},
        )
    table = support.create_table(client, keys="pk:S")
    with pytest.raises(client.exceptions.ResourceInUseException, match=f"Table already exists: {table}"):
        client.import_table(
            S3BucketSource={"S3Bucket": "bucket"}, InputFormat="CSV",
            TableCreationParameters=support.definition(table, "pk:S"),
        )


def test_a_killed_server_goes_on_with_its_import(tmp_path):
    store = open_store()
    expected = items(1200)
    for number in range(12):
        part = dynamodb_json(expected[number * 100:(number + 1) * 100])
        store.s3.put_object(Bucket="bucket", Key=f"parts/{number:02}", Body=part)
    store.proxy.hold_after(5)
    server = start(store, tmp_path / "data")
    try:
        client = support.client(server.endpoint)
        description = begin(client, "parts/", ClientToken="token")
        table = description["TableArn"].split("/")[-1]
        running = wait(client, description, lambda it: it.get("ImportedItemCount") == 500)
        assert running["ImportStatus"] == "IN_PROGRESS"
        assert client.describe_table(TableName=table)["Table"]["TableStatus"] == "CREATING"
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            client.scan(TableName=table)
        with pytest.raises(client.exceptions.ResourceInUseException):
            client.delete_table(TableName=table)
        again = client.import_table(
            ClientToken="token", S3BucketSource={"S3Bucket": "bucket", "S3KeyPrefix": "parts/"},
            InputFormat="DYNAMODB_JSON", TableCreationParameters=support.definition(table, "pk:S,sk:N"),
        )
        assert again["ImportTableDescription"]["ImportArn"] == description["ImportArn"]
        server.kill()
        store.proxy.release()
        server = start(store, tmp_path / "data")
        client = support.client(server.endpoint)
        done = wait(client, running)
        assert done["ImportStatus"] == "COMPLETED", done
        assert done["ImportedItemCount"] == done["ProcessedItemCount"] == 1200
        assert canonical(scan(client, table)) == canonical(TO_WIRE(item)["M"] for item in expected)
    finally:
        server.kill()
        store.close()


def test_an_unreachable_store_is_waited_for(store, client):
    prefix = support.unique_name("away") + "/"
    store.s3.put_object(Bucket="bucket", Key=prefix + "x", Body=dynamodb_json(items()))
    refusals = store.proxy.refused
    store.proxy.away = True
    started = begin(client, prefix)
    support.wait_until(lambda: store.proxy.refused > refusals, "the store is asked")
    assert wait(client, started, lambda it: True)["ImportStatus"] == "IN_PROGRESS"
    store.proxy.away = False
    description = wait(client, started)
    assert (description["ImportStatus"], description["ImportedItemCount"]) == ("COMPLETED", 20), description


def test_of_imports_into_one_table_the_first_one_wins(store, client):
    prefix = support.unique_name("race") + "/"
    store.s3.put_object(Bucket="bucket", Key=prefix + "x", Body=dynamodb_json(items()))
    table = support.definition(support.unique_name("import"), "pk:S,sk:N")
    source = {"S3Bucket": "bucket", "S3KeyPrefix": prefix}
    # None of them can create the table before all of them have been started.
    store.proxy.away = True
    started = [
        client.import_table(S3BucketSource=source, InputFormat="DYNAMODB_JSON", TableCreationParameters=table)
        for _ in range(3)
    ]
    store.proxy.away = False
    done = [wait(client, each["ImportTableDescription"]) for each in started]
    outcomes = sorted((each["ImportStatus"], each.get("FailureCode", ""), each.get("FailureMessage", "")) for each in done)
    lost = ("FAILED", "TableAlreadyExists", f"Table already exists: {table['TableName']}")
    assert outcomes == [("COMPLETED", "", ""), lost, lost]
    assert client.describe_table(TableName=table["TableName"])["Table"]["TableStatus"] == "ACTIVE"
    assert canonical(scan(client, table["TableName"])) == canonical(TO_WIRE(item)["M"] for item in items())


def test_without_an_object_store_the_reason_is_told(memory_server):
    client = support.client(memory_server.endpoint)
    with pytest.raises(ClientError, match="ImportTable needs an object store; start the server with --s3-endpoint"):
        begin(client, "x")
