"""The fixtures as a project's own tests use them."""

import boto3
import pytest
from botocore.exceptions import ClientError


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


def test_errors_are_dynamodbs_own(zenobe_table):
    zenobe_table.put_item(Item={"pk": "1"})
    with pytest.raises(ClientError) as refused:
        zenobe_table.put_item(Item={"pk": "1"}, ConditionExpression="attribute_not_exists(pk)")
    assert refused.value.response["Error"]["Code"] == "ConditionalCheckFailedException"
