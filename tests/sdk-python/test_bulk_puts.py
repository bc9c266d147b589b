"""StartBulkPutItems and its companions, from a real S3-compatible server."""

import json
import time

import amazon.ion.simpleion as ion
import pytest
from botocore.exceptions import ClientError

import support
from bucket_server import client, open_store, server, start, store  # noqa: F401 (fixtures)
from server import Server
from support import refused
from test_imports import COMPRESSIONS, TO_WIRE, canonical, dynamodb_json, ion_file, items, scan

MISSING = "arn:aws:dynamodb:us-east-1:000000000000:table/abc/bulk-operation/01-ab"
BUSY = "Attempt to change a resource which is still in use: Table: {} is being used."


def request(table, prefix, format="DYNAMODB_JSON", compression="NONE", types=("ERROR", "CONDITION_CHECK_FAILURE"), **more):
    return {
        "TableName": table,
        "InputS3Configuration": {
            "S3Bucket": "bucket", "S3KeyPrefix": prefix, "InputFormat": format, "InputCompressionType": compression,
        },
        "OutputS3Configuration": {"S3Bucket": "bucket", "S3KeyPrefix": "reports", "OutputType": list(types)},
        **more,
    }


def begin(client, *arguments, **more):
    return client.start_bulk_put_items(**request(*arguments, **more))["BulkOperationDescription"]


def describe(client, description):
    described = client.describe_bulk_operation(BulkOperationArn=description["BulkOperationArn"])
    return described["BulkOperationDescription"]


def wait(client, description):
    deadline = time.monotonic() + 120
    while description["BulkOperationStatus"] in ("IN_PROGRESS", "CANCELLING"):
        assert time.monotonic() < deadline, description
        time.sleep(0.05)
        description = describe(client, description)
    return description


def run(client, *arguments, **more):
    return wait(client, begin(client, *arguments, **more))


def put(store, key, body):
    store.s3.put_object(Bucket="bucket", Key=key, Body=body)


def report(store, description):
    """The manifest, and the lines of each kind of report."""
    folder = f"reports/AWSDynamoDB/bulk-operation/{description['BulkOperationArn'].rsplit('/')[-1]}/"
    found = store.s3.list_objects_v2(Bucket="bucket", Prefix=folder).get("Contents", [])
    texts = {it["Key"].removeprefix(folder): store.s3.get_object(Bucket="bucket", Key=it["Key"])["Body"].read() for it in found}
    manifest = json.loads(texts.pop("manifest.json"))
    lines = {"error": [], "condition-check-failure": []}
    for name in sorted(texts):
        lines[name.split("/")[0]] += [json.loads(line) for line in texts[name].splitlines()]
    return manifest, lines


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("format,write", [
    ("DYNAMODB_JSON", dynamodb_json), ("ION", ion_file(False)), ("ION", ion_file(True)),
], ids=["json", "ion-text", "ion-binary"])
def test_items_of_all_types_replace_those_that_are_there(store, client, format, write, compression):
    expected = items()
    prefix = support.unique_name("types") + "/"
    sizes = []
    for number, part in enumerate((expected[:9], expected[9:])):
        body = COMPRESSIONS[compression](write(part))
        sizes.append(len(body))
        put(store, f"{prefix}{number}", body)
    table = support.create_table(client, keys="pk:S,sk:N")
    before = TO_WIRE(expected[0])["M"]
    client.put_item(TableName=table, Item={"pk": before["pk"], "sk": before["sk"], "old": {"S": "x"}})
    kept = {"pk": {"S": "kept"}, "sk": {"N": "1"}}
    client.put_item(TableName=table, Item=kept)
    started = begin(client, table, prefix, format, compression)
    assert (started["BulkOperationStatus"], started["PerformanceTier"]) == ("IN_PROGRESS", "STANDARD")
    assert started["TableDetails"] == [{"TableName": table, "TableId": client.describe_table(TableName=table)["Table"]["TableId"]}]
    done = wait(client, started)
    assert done["BulkOperationStatus"] == "COMPLETED", done
    assert (done["ProcessedItemCount"], done["FailedItemCount"]) == (20, 0)
    assert done["TotalInputBytes"] == sum(sizes)
    assert done["EndTime"] >= done["StartTime"]
    assert canonical(scan(client, table)) == canonical([*(TO_WIRE(item)["M"] for item in expected), kept])
    manifest, lines = report(store, done)
    assert (manifest["processedItemCount"], lines) == (20, {"error": [], "condition-check-failure": []})
    listed = client.list_bulk_operations()["BulkOperationsSummaryList"][0]
    assert (listed["BulkOperationArn"], listed["BulkOperationStatus"]) == (done["BulkOperationArn"], "COMPLETED")


NEW = {"ConditionExpression": "attribute_not_exists(pk)"}
LINES = [
    {**NEW, "Item": {"pk": "new", "v": 1}},
    {**NEW, "Item": {"pk": "old", "v": 1}},
    {
        "Item": {"pk": "guarded", "v": 2}, "ConditionExpression": "#v = :v",
        "ExpressionAttributeNames": {"#v": "v"}, "ExpressionAttributeValues": {":v": 1},
    },
    {"Item": {"pk": "plain", "v": 1}},
    # The second one sees what the first one has put.
    {**NEW, "Item": {"pk": "twice", "v": 1}},
    {**NEW, "Item": {"pk": "twice", "v": 2}},
    {"Item": {"pk": "x"}, "Condition": "attribute_not_exists(pk)"},
    {"Item": {"pk": "x"}, "ConditionExpression": "nonsense"},
    {"Item": {"pk": "x"}, "ExpressionAttributeNames": {"#v": "v"}},
]


def encoded(lines, format):
    if format == "ION":
        return ion.dumps(lines, binary=False, sequence_as_stream=True).encode()

    def wire(name, member):
        return TO_WIRE(member)["M"] if name in ("Item", "ExpressionAttributeValues") else member

    return "\n".join(json.dumps({name: wire(name, member) for name, member in line.items()}) for line in lines).encode()


@pytest.mark.parametrize("format", ["DYNAMODB_JSON", "ION"])
def test_conditions(store, client, format):
    prefix = support.unique_name("conditions") + "/"
    put(store, prefix + "x", encoded(LINES, format))
    table = support.create_table(client, keys="pk:S")
    for key in ("old", "guarded"):
        support.put(client, table, pk=key, v=1 if key == "guarded" else 0)
    done = run(client, table, prefix, format)
    assert done["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS", done
    assert (done["ProcessedItemCount"], done["FailedItemCount"]) == (9, 3)
    found = {item["pk"]["S"]: item["v"]["N"] for item in client.scan(TableName=table)["Items"]}
    assert found == {"new": "1", "old": "0", "guarded": "2", "plain": "1", "twice": "1"}
    manifest, lines = report(store, done)
    assert (manifest["failedItemCount"], manifest["conditionCheckFailureCount"]) == (3, 2)
    failures = [
        (line["itemS3Pointer"]["itemIndex"], line["Item"]["v"]["N"], line["ExistingItem"]["v"]["N"])
        for line in lines["condition-check-failure"]
    ]
    assert failures == [(1, "1", "0"), (5, "2", "1")]
    errors = {line["itemS3Pointer"]["itemIndex"]: line["errorMessages"][0] for line in lines["error"]}
    assert errors[6].startswith("Condition is unknown: besides Item, a line may have ConditionExpression")
    assert errors[7].startswith("Invalid ConditionExpression: Syntax error")
    assert errors[8] == "ExpressionAttributeNames can only be specified when using expressions"

    # A condition that fails is no error, and is reported only to those who ask.
    put(store, prefix + "x", encoded([{**NEW, "Item": {"pk": "new", "v": 3}}], format))
    again = run(client, table, prefix, format, types=["ERROR"])
    assert (again["BulkOperationStatus"], again["ProcessedItemCount"], again["FailedItemCount"]) == ("COMPLETED", 1, 0), again
    assert report(store, again)[1] == {"error": [], "condition-check-failure": []}
    assert support.get(client, table, pk="new")["v"] == {"N": "1"}


def test_reports_are_encrypted_as_the_request_says(store, client):
    prefix = support.unique_name("kms") + "/"
    put(store, prefix + "x", encoded([{"Item": {"v": 1}}], "DYNAMODB_JSON"))
    parameters = request(support.create_table(client, keys="pk:S"), prefix)
    parameters["OutputS3Configuration"] |= {"S3SseAlgorithm": "KMS", "S3SseKmsKeyId": "alias/reports"}
    done = wait(client, client.start_bulk_put_items(**parameters)["BulkOperationDescription"])
    assert done["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS", done
    folder = f"reports/AWSDynamoDB/bulk-operation/{done['BulkOperationArn'].rsplit('/')[-1]}/"
    written = [it["Key"] for it in store.s3.list_objects_v2(Bucket="bucket", Prefix=folder)["Contents"]]
    assert len(written) == 2
    for name in written:
        head = store.s3.head_object(Bucket="bucket", Key=name)
        assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", "alias/reports"), name


def test_usage_of_indexes_and_the_stream(store, client):
    prefix = support.unique_name("usage") + "/"
    lines = [{"Item": support.item(pk=str(n), sk=n, **({"v": "a"} if n < 3 else {}))} for n in range(5)]
    put(store, prefix + "x", "\n".join(map(json.dumps, lines)))
    table = support.create_table(
        client, keys="pk:S,sk:N", gsi=[("by-v", "v:S", "KEYS_ONLY")], lsi=[("by-lv", "pk:S,v:S")],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
    )
    done = run(client, table, prefix)
    assert done["BulkOperationStatus"] == "COMPLETED", done
    # Sizes by DynamoDB's measure: names and values.
    item = len("pk") + 1 + len("sk") + 2
    of_table, of_entries = 5 * item + 3 * 2 - 1, 3 * (item + 2) - 1
    usage = {
        "TableName": table, "BulkPutBytes": of_table + 2 * of_entries, "Table": {"BulkPutBytes": of_table},
        "GlobalSecondaryIndexes": {"by-v": {"BulkPutBytes": of_entries}},
        "LocalSecondaryIndexes": {"by-lv": {"BulkPutBytes": of_entries}},
    }
    assert done["BulkOperationUsage"] == [usage]
    assert client.scan(TableName=table, IndexName="by-v", Select="COUNT")["Count"] == 3


def test_errors_of_the_requests(client):
    table = support.create_table(client, keys="pk:S")
    with refused("ResourceNotFoundException", "Requested resource not found: Table: there-is-none not found"):
        begin(client, "there-is-none", "x/")
    for call in (client.describe_bulk_operation, client.cancel_bulk_operation):
        with refused("ResourceNotFoundException", f"Requested resource not found: Bulk operation: {MISSING} not found"):
            call(BulkOperationArn=MISSING)
    missing = begin(client, table, "x/")
    token = {"ClientToken": missing["ClientToken"]}
    again = begin(client, table, "x/", **token)
    assert again["BulkOperationArn"] == missing["BulkOperationArn"]
    with pytest.raises(client.exceptions.IdempotentParameterMismatchException):
        begin(client, table, "y/", **token)
    parameters = request(table, "x/")
    parameters["InputS3Configuration"]["S3Bucket"] = "there-is-none"
    wait(client, missing)
    failed = wait(client, client.start_bulk_put_items(**parameters)["BulkOperationDescription"])
    assert (failed["BulkOperationStatus"], failed["FailureCode"]) == ("FAILED", "S3NoSuchBucket"), failed


@pytest.fixture
def held(tmp_path):
    """A server whose object store answers three requests for objects, and then holds the others until it is released."""
    store = open_store()
    server = start(store, tmp_path / "data")
    parts = items(40)
    for number in range(8):
        put(store, f"held/{number}", dynamodb_json(parts[number * 5:number * 5 + 5]))
    store.proxy.hold_after(3)
    yield store, server, parts
    server.kill()
    store.close()


def start_and_wait_for_three_parts(server):
    client = support.client(server.endpoint)
    table = support.create_table(client, keys="pk:S,sk:N")
    started = begin(client, table, "held/")
    support.wait_until(lambda: describe(client, started)["ProcessedItemCount"] == 15, "three parts are put")
    return client, table, started


def test_cancelling_leaves_what_is_put(held):
    store, server, _ = held
    client, table, started = start_and_wait_for_three_parts(server)
    with refused("ResourceInUseException", BUSY.format(table)):
        begin(client, table, "held/")
    cancelled = client.cancel_bulk_operation(BulkOperationArn=started["BulkOperationArn"])
    assert (cancelled["BulkOperationArn"], cancelled["BulkOperationStatus"]) == (started["BulkOperationArn"], "CANCELLING")
    assert describe(client, started)["BulkOperationStatus"] == "CANCELLING"
    store.proxy.release()
    done = wait(client, started)
    assert done["BulkOperationStatus"] == "CANCELLED" and done["FailureCode"], done
    assert 15 <= done["ProcessedItemCount"] == len(scan(client, table)) < 40
    # Another one may run now.
    assert run(client, table, "held/")["BulkOperationStatus"] == "COMPLETED"
    assert len(scan(client, table)) == 40


def test_a_killed_server_goes_on(held, tmp_path):
    store, server, parts = held
    client, table, started = start_and_wait_for_three_parts(server)
    server.kill()
    store.proxy.release()
    server.start()
    client = support.client(server.endpoint)
    done = wait(client, started)
    assert (done["BulkOperationStatus"], done["ProcessedItemCount"], done["FailedItemCount"]) == ("COMPLETED", 40, 0), done
    assert canonical(scan(client, table)) == canonical(TO_WIRE(item)["M"] for item in parts)


def test_what_a_client_writes_after_a_put_stays_across_a_kill(tmp_path):
    store = open_store()
    lines = [json.dumps({"Item": support.item(pk=f"{n}", v=0, pad="x" * 380_000)}) for n in range(9)]
    put(store, "kept/x", "\n".join(lines))
    server = start(store, tmp_path / "data")
    try:
        client = support.client(server.endpoint)
        table = support.create_table(client, keys="pk:S")
        # So few units that the job rests after each of its steps, which are smaller than the object.
        started = begin(client, table, "kept/", MaxWriteRequestUnits=1024)
        support.wait_until(lambda: support.get(client, table, pk="0"), "the first item is put")
        support.put(client, table, pk="0", v=1)
        server.kill()
        server.start()
        client = support.client(server.endpoint)
        done = wait(client, started)
        assert (done["BulkOperationStatus"], done["ProcessedItemCount"]) == ("COMPLETED", 9), done
        assert support.get(client, table, pk="0")["v"] == {"N": "1"}
        assert client.scan(TableName=table, Select="COUNT", ConsistentRead=True)["Count"] > 0
    finally:
        server.kill()
        store.close()


def test_an_unreachable_store_is_waited_for(store, client):
    prefix = support.unique_name("away") + "/"
    put(store, prefix + "x", dynamodb_json(items()))
    table = support.create_table(client, keys="pk:S,sk:N")
    refusals = store.proxy.refused
    store.proxy.away = True
    started = begin(client, table, prefix)
    support.wait_until(lambda: store.proxy.refused > refusals, "the store is asked")
    assert describe(client, started)["BulkOperationStatus"] == "IN_PROGRESS"
    store.proxy.away = False
    assert wait(client, started)["BulkOperationStatus"] == "COMPLETED"
    assert len(scan(client, table)) == 20


def test_without_an_object_store_the_reason_is_told(memory_server):
    client = support.client(memory_server.endpoint)
    table = support.create_table(client, keys="pk:S")
    with pytest.raises(ClientError, match="StartBulkPutItems needs an object store; start the server with --s3-endpoint"):
        begin(client, table, "x/")


def test_an_object_beyond_the_limit_ends_the_operation_before_it_begins(tmp_path):
    folder = tmp_path / "buckets" / "bucket" / "large"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text('{"Item":{"pk":{"S":"a"}}}')
    # It has no content on disk.
    with open(folder / "b.json", "wb") as file:
        file.truncate((5 << 30) + 1)
    server = Server(arguments=["--s3-endpoint", f"file://{tmp_path / 'buckets'}"])
    try:
        client = support.client(server.endpoint)
        table = support.create_table(client, keys="pk:S")
        description = run(client, table, "large/")
        assert (description["BulkOperationStatus"], description["FailureCode"]) == ("FAILED", "S3LimitExceeded")
        assert description["FailureMessage"] == "the object large/b.json has more than 5368709120 bytes"
        assert client.scan(TableName=table)["Count"] == 0
        (folder / "b.json").unlink()
        description = run(client, table, "large/")
        assert description["BulkOperationStatus"] == "COMPLETED", description
        assert client.scan(TableName=table)["Count"] == 1
    finally:
        server.kill()
