"""The fixtures as a project's own tests use them."""

import boto3
import pytest
from botocore.exceptions import ClientError

from zenobe_testing import ControlError


def handler():
    """Code under test that knows nothing of the server and makes its own client."""
    return boto3.resource("dynamodb").Table("test-table").get_item(Key={"pk": "1"}).get("Item")


@pytest.mark.parametrize("repetition", [1, 2, 3])
def test_a_table_is_empty_for_every_test(zenobe_table, repetition):
    assert zenobe_table.scan()["Items"] == []
    zenobe_table.put_item(Item={"pk": "1", "repetition": repetition})
    assert handler() == {"pk": "1", "repetition": repetition}


@pytest.mark.zenobe_table("Orders", "customer:S", "number:N", StreamSpecification={
    "StreamEnabled": True, "StreamViewType": "NEW_IMAGE",
})
@pytest.mark.parametrize("repetition", [1, 2])
def test_a_marker_says_how_the_table_is_made(zenobe_table, zenobe_streams, repetition):
    assert zenobe_table.name == "Orders"
    assert [key["AttributeName"] for key in zenobe_table.key_schema] == ["customer", "number"]
    # Not even the streams of earlier tests are left.
    assert len(zenobe_streams.list_streams(TableName="Orders")["Streams"]) == 1


def test_code_under_test_finds_streams_too(zenobe):
    assert boto3.client("dynamodbstreams").list_streams()["Streams"] == []


def test_tables_are_made_as_needed(zenobe_create_table, zenobe_client):
    zenobe_create_table("Apples")
    zenobe_create_table(
        "Pears", "pk:S", "sk:B",
        AttributeDefinitions=[{"AttributeName": "city", "AttributeType": "S"}],
        GlobalSecondaryIndexes=[{
            "IndexName": "by-city",
            "KeySchema": [{"AttributeName": "city", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }],
    )
    assert zenobe_client.list_tables()["TableNames"] == ["Apples", "Pears"]
    with pytest.raises(ValueError, match="name:S"):
        zenobe_create_table("Plums", "pk")


def test_a_reset_leaves_nothing_and_clients_go_on_working(zenobe, zenobe_client, zenobe_create_table):
    zenobe_create_table("Apples")
    endpoint = zenobe.endpoint
    for _ in range(10):
        zenobe.reset()
        assert zenobe_client.list_tables()["TableNames"] == []
    assert zenobe.endpoint == endpoint


def test_a_killed_server_is_replaced(zenobe, zenobe_client, zenobe_create_table):
    zenobe_create_table("Apples")
    zenobe._process.kill()
    zenobe._process.wait()
    zenobe.reset()
    assert zenobe_client.list_tables()["TableNames"] == []


def test_snapshots_and_forks_are_copies(zenobe, zenobe_table):
    zenobe_table.put_item(Item={"pk": "1"})
    zenobe.snapshot("seeded")
    with zenobe.fork() as fork:
        forked = boto3.resource("dynamodb", **fork.client_settings).Table(zenobe_table.name)
        forked.put_item(Item={"pk": "2"})
        assert (forked.scan()["Count"], zenobe_table.scan()["Count"]) == (2, 1)
        fork.reset()
        assert list(boto3.resource("dynamodb", **fork.client_settings).tables.all()) == []
    zenobe_table.delete_item(Key={"pk": "1"})
    zenobe.restore("seeded")
    assert zenobe_table.scan()["Items"] == [{"pk": "1"}]
    with pytest.raises(ControlError, match="there is no snapshot `other`"):
        zenobe.restore("other")


@pytest.mark.parametrize("repetition", [1, 2])
def test_faults_are_met_and_gone_with_the_test(zenobe, zenobe_table, repetition):
    zenobe_table.put_item(Item={"pk": "1"})
    zenobe.fault("kind=conflict operation=PutItem")
    with pytest.raises(ClientError) as refused:
        zenobe_table.put_item(Item={"pk": "1"})
    assert refused.value.response["Error"]["Code"] == "TransactionConflictException"


def test_errors_are_dynamodbs_own(zenobe_table):
    zenobe_table.put_item(Item={"pk": "1"})
    with pytest.raises(ClientError) as refused:
        zenobe_table.put_item(Item={"pk": "1"}, ConditionExpression="attribute_not_exists(pk)")
    assert refused.value.response["Error"]["Code"] == "ConditionalCheckFailedException"
