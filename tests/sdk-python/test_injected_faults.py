"""The SDK's own retries, against a server that fails as a test tells it to."""

import json
import urllib.request

import boto3
import botocore.config
import botocore.exceptions
import pytest

import streams as streaming
import support
from server import Server


class Controlled:
    """A server under test control, with an SDK client that retries without waiting for long."""

    def __init__(self, server):
        self.endpoint = server.endpoint
        self.dynamodb = self.client(self.endpoint)

    @staticmethod
    def client(endpoint, attempts=8):
        retries = {"total_max_attempts": attempts, "mode": "standard"}
        config = botocore.config.Config(retries=retries)
        return boto3.client("dynamodb", config=config, **support.connection(endpoint, support.REGION))

    def control(self, method, path, **body):
        request = urllib.request.Request(
            f"{self.endpoint}/_zenobe/test/{path}", method=method, data=json.dumps(body).encode(),
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def fault(self, rule):
        return self.control("POST", "faults", rule=rule)["id"]

    def fired(self):
        return [fault["fired"] for fault in self.control("GET", "faults")["faults"]]


@pytest.fixture
def controlled(request, monkeypatch):
    support.skip_if_aimed_elsewhere()
    # Retries are under test, not the patience between them.
    monkeypatch.setattr("time.sleep", lambda _: None)
    mark = request.node.get_closest_marker("controlled_by")
    server = Server(arguments=["--test-control", *(mark.args if mark else ())])
    try:
        controlled = Controlled(server)
        controlled.dynamodb.create_table(**support.definition("items"))
        yield controlled
    finally:
        server.kill()


@pytest.mark.parametrize("rule", [
    "kind=throttle", "kind=error", "kind=unavailable", "kind=drop", "kind=drop when=after", "kind=error when=after",
])
def test_the_sdk_retries_until_a_fault_is_over(controlled, rule):
    controlled.fault(f"{rule} operation=PutItem times=3")
    controlled.dynamodb.put_item(TableName="items", Item={"pk": {"S": "a"}})
    assert controlled.fired() == [3]
    assert controlled.dynamodb.scan(TableName="items")["Count"] == 1


def test_a_retried_counter_counts_twice_if_only_its_answer_was_lost(controlled):
    """What a test wants to find out about code that is not idempotent."""
    controlled.fault("kind=drop operation=UpdateItem when=after times=1")
    controlled.dynamodb.update_item(
        TableName="items", Key={"pk": {"S": "a"}}, UpdateExpression="ADD n :one", ExpressionAttributeValues={":one": {"N": "1"}},
    )
    item = controlled.dynamodb.get_item(TableName="items", Key={"pk": {"S": "a"}}, ConsistentRead=True)["Item"]
    assert item["n"] == {"N": "2"}


def test_a_table_brings_its_rules_as_tags(controlled):
    tags = [{"Key": "zenobe:test:throttle", "Value": "operation=PutItem/UpdateItem times=2"}]
    controlled.dynamodb.create_table(**support.definition("tagged"), Tags=tags)
    for table in ("items", "tagged"):
        controlled.dynamodb.put_item(TableName=table, Item={"pk": {"S": "a"}})
    [fault] = controlled.control("GET", "faults")["faults"]
    assert (fault["tag"], fault["fired"], fault["matched"]) == ("zenobe:test:throttle", 2, 3)
    with pytest.raises(botocore.exceptions.ClientError, match="kind=latency needs a delay"):
        wrong = [{"Key": "zenobe:test:latency", "Value": ""}]
        controlled.dynamodb.create_table(**support.definition("wrong"), Tags=wrong)


def test_a_split_shard_is_read_before_its_children(controlled):
    """What a consumer does on AWS when a partition splits: parents first, then both children."""
    dynamodb, streams = controlled.dynamodb, streaming.client(controlled.endpoint)
    table, arn = streaming.create_table(dynamodb)
    names = [f"item {number}" for number in range(40)]

    def write(n):
        for name in names:
            dynamodb.put_item(TableName=table, Item={"pk": {"S": name}, "n": {"N": str(n)}})

    write(1)
    [first] = streaming.shards(streams, arn)
    at_end = streaming.iterator(streams, arn, first["ShardId"], "LATEST")
    for n in (2, 3):
        controlled.control("POST", "split", table=table)
        write(n)
    controlled.control("POST", "rollover", table=table)
    write(4)
    shards = streaming.shards(streams, arn)
    assert len(shards) == 1 + 2 + 4 + 4
    children = {}
    for shard in shards[1:]:
        children.setdefault(shard["ParentShardId"], []).append(shard["ShardId"])
    ids = [shard["ShardId"] for shard in shards]
    assert [len(children[shard]) for shard in ids[:7]] == [2, 2, 2, 1, 1, 1, 1]
    assert all("EndingSequenceNumber" in shard["SequenceNumberRange"] for shard in shards[:7])
    assert streaming.read(streams, at_end) == ([], None), "an iterator at the end learns that the shard is closed"
    filtered = streams.describe_stream(
        StreamArn=arn, ShardFilter={"Type": "CHILD_SHARDS", "ShardId": ids[0]}
    )["StreamDescription"]["Shards"]
    assert [shard["ShardId"] for shard in filtered] == children[ids[0]]

    # Every item's changes lie in one line of shards, in order, and all shards got some.
    seen, places = {}, {}
    for shard in ids:
        found = streaming.read_shard(streams, arn, shard)
        assert found, shard
        for record in found:
            name = record["dynamodb"]["Keys"]["pk"]["S"]
            seen.setdefault(name, []).append(int(record["dynamodb"]["NewImage"]["n"]["N"]))
            places.setdefault(name, []).append(shard)
    assert seen == {name: [1, 2, 3, 4] for name in names}
    for path in places.values():
        assert all(child in children[parent] for parent, child in zip(path, path[1:]))


def test_a_transaction_with_a_token_counts_once(controlled):
    controlled.fault("kind=drop operation=TransactWriteItems when=after times=1")
    update = {
        "TableName": "items", "Key": {"pk": {"S": "a"}}, "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    controlled.dynamodb.transact_write_items(TransactItems=[{"Update": update}])
    item = controlled.dynamodb.get_item(TableName="items", Key={"pk": {"S": "a"}}, ConsistentRead=True)["Item"]
    assert (item["n"], controlled.fired()) == ({"N": "1"}, [1])


def test_a_conflict_has_the_sdks_exception_with_its_reasons(controlled):
    controlled.fault("kind=conflict times=2")
    client = controlled.client(controlled.endpoint, attempts=1)
    puts = [{"Put": {"TableName": "items", "Item": {"pk": {"S": key}}}} for key in "ab"]
    with pytest.raises(client.exceptions.TransactionCanceledException) as cancelled:
        client.transact_write_items(TransactItems=puts)
    codes = [reason["Code"] for reason in cancelled.value.response["CancellationReasons"]]
    assert sorted(codes) == ["None", "TransactionConflict"]
    with pytest.raises(client.exceptions.TransactionConflictException):
        client.put_item(TableName="items", Item={"pk": {"S": "a"}})


def test_the_batch_writer_sends_what_was_left_unprocessed(controlled):
    controlled.fault("kind=unprocessed rate=0.4")
    table = boto3.resource("dynamodb", **support.connection(controlled.endpoint, support.REGION)).Table("items")
    with table.batch_writer() as batch:
        for number in range(60):
            batch.put_item(Item={"pk": str(number)})
    controlled.control("DELETE", "faults")
    assert table.scan()["Count"] == 60


@pytest.mark.controlled_by("--driven-clock")
def test_waiters_wait_for_statuses(controlled, monkeypatch):
    # While the waiters sleep, time passes for the server, and at no other time.
    clock, slept = streaming.Clock(controlled.endpoint), []
    monkeypatch.setattr("time.sleep", lambda _: slept.append(clock.advance(seconds=1)))
    controlled.fault("kind=status delay=3s")
    dynamodb = controlled.dynamodb
    created = dynamodb.create_table(**support.definition("slow"))["TableDescription"]
    assert created["TableStatus"] == "CREATING"
    assert dynamodb.describe_table(TableName="slow")["Table"]["TableStatus"] == "CREATING"
    with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
        dynamodb.put_item(TableName="slow", Item={"pk": {"S": "a"}})
    dynamodb.get_waiter("table_exists").wait(TableName="slow")
    assert len(slept) == 3
    dynamodb.put_item(TableName="slow", Item={"pk": {"S": "a"}})
    dynamodb.delete_table(TableName="slow")
    dynamodb.get_waiter("table_not_exists").wait(TableName="slow")
    assert len(slept) == 6


def test_each_fork_has_an_endpoint_for_the_sdk(controlled):
    fork = controlled.control("POST", "forks")
    forked = controlled.client(fork["endpoint"])
    forked.put_item(TableName="items", Item={"pk": {"S": "a"}})
    assert forked.scan(TableName="items")["Count"] == 1
    assert controlled.dynamodb.scan(TableName="items")["Count"] == 0
    controlled.control("DELETE", f"forks/{fork['id']}")
