"""The SDK's own retries, against a server that fails as a test tells it to."""

import json
import urllib.request

import boto3
import botocore.config
import botocore.exceptions
import pytest

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
def controlled(monkeypatch):
    support.skip_if_aimed_elsewhere()
    # Retries are under test, not the patience between them.
    monkeypatch.setattr("time.sleep", lambda _: None)
    server = Server(arguments=["--test-control"])
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


def test_waiters_wait_for_statuses(controlled):
    controlled.fault("kind=status delay=300ms")
    dynamodb = controlled.dynamodb
    created = dynamodb.create_table(**support.definition("slow"))["TableDescription"]
    assert created["TableStatus"] == "CREATING"
    assert dynamodb.describe_table(TableName="slow")["Table"]["TableStatus"] == "CREATING"
    with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
        dynamodb.put_item(TableName="slow", Item={"pk": {"S": "a"}})
    config = {"Delay": 0, "MaxAttempts": 100_000}
    dynamodb.get_waiter("table_exists").wait(TableName="slow", WaiterConfig=config)
    dynamodb.put_item(TableName="slow", Item={"pk": {"S": "a"}})
    dynamodb.delete_table(TableName="slow")
    dynamodb.get_waiter("table_not_exists").wait(TableName="slow", WaiterConfig=config)


def test_each_fork_has_an_endpoint_for_the_sdk(controlled):
    fork = controlled.control("POST", "forks")
    forked = controlled.client(fork["endpoint"])
    forked.put_item(TableName="items", Item={"pk": {"S": "a"}})
    assert forked.scan(TableName="items")["Count"] == 1
    assert controlled.dynamodb.scan(TableName="items")["Count"] == 0
    controlled.control("DELETE", f"forks/{fork['id']}")
