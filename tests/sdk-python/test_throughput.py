"""Throttling as the SDK meets it: with its own retries, and without them."""

import boto3
import botocore.config
import pytest

import support
from server import Server
from support import create_table, item

ENFORCED = [{"Key": "zenobe:throughput", "Value": "enforce"}]
# What a table of one unit per second needs minutes for.
LARGE = "x" * 390_000
TEXT = (
    "The level of configured provisioned throughput for the table was exceeded. Consider increasing your "
    "provisioning level with the UpdateTable API."
)


def units(read, write):
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


@pytest.fixture(scope="module")
def enforcing():
    support.skip_if_aimed_elsewhere()
    server = Server(arguments=["--throughput", "enforce"])
    yield server
    server.kill()


def test_without_retries_the_exception_names_its_reason(enforcing):
    dynamodb = support.client(enforcing.endpoint)
    table = create_table(dynamodb, keys="pk:S", ProvisionedThroughput=units(1, 1))
    arn = dynamodb.describe_table(TableName=table)["Table"]["TableArn"]
    # More than a second's capacity at once; the next request finds nothing left.
    dynamodb.put_item(TableName=table, Item=item(pk="a", data=LARGE))
    with pytest.raises(dynamodb.exceptions.ProvisionedThroughputExceededException) as raised:
        dynamodb.put_item(TableName=table, Item=item(pk="a"))
    answer = raised.value.response
    assert answer["Error"]["Message"] == TEXT
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 400
    reasons = [{"reason": "TableWriteProvisionedThroughputExceeded", "resource": arn}]
    assert answer["ThrottlingReasons"] == reasons


def test_an_on_demand_maximum_is_a_throttling_exception(enforcing):
    dynamodb = support.client(enforcing.endpoint)
    table = create_table(
        dynamodb, keys="pk:S", OnDemandThroughput={"MaxReadRequestUnits": 1, "MaxWriteRequestUnits": 1},
    )
    arn = dynamodb.describe_table(TableName=table)["Table"]["TableArn"]
    dynamodb.put_item(TableName=table, Item=item(pk="a", data=LARGE))
    with pytest.raises(dynamodb.exceptions.ThrottlingException) as raised:
        dynamodb.put_item(TableName=table, Item=item(pk="a"))
    reasons = [{"reason": "TableWriteMaxOnDemandThroughputExceeded", "resource": arn}]
    assert raised.value.response["throttlingReasons"] == reasons


def test_the_sdk_retries_until_it_succeeds(enforcing):
    config = botocore.config.Config(retries={"total_max_attempts": 10, "mode": "standard"})
    dynamodb = boto3.client("dynamodb", config=config, **support.connection(enforcing.endpoint, support.REGION))
    table = create_table(dynamodb, keys="pk:S", ProvisionedThroughput=units(5, 5))
    # Each takes the capacity of two seconds, so one that follows sooner is retried.
    for count in range(1, 100):
        answer = dynamodb.put_item(TableName=table, Item=item(pk=str(count), data="x" * 10_000))
        if answer["ResponseMetadata"]["RetryAttempts"]:
            break
    else:
        pytest.fail("nothing was throttled")
    assert dynamodb.describe_table(TableName=table)["Table"]["ItemCount"] == count


def test_a_batch_writer_sends_again_what_was_not_processed(enforcing):
    config = botocore.config.Config(retries={"total_max_attempts": 10, "mode": "standard"})
    resource = boto3.resource("dynamodb", config=config, **support.connection(enforcing.endpoint, support.REGION))
    dynamodb = resource.meta.client
    table = create_table(dynamodb, keys="pk:S", ProvisionedThroughput=units(10, 20))
    with resource.Table(table).batch_writer() as batch:
        for number in range(50):
            batch.put_item(Item={"pk": str(number)})
    assert dynamodb.describe_table(TableName=table)["Table"]["ItemCount"] == 50


def test_a_tag_enforces_on_one_table(dynamodb):
    table = create_table(dynamodb, keys="pk:S", ProvisionedThroughput=units(1, 1), Tags=ENFORCED)
    dynamodb.put_item(TableName=table, Item=item(pk="a", data=LARGE))
    with pytest.raises(dynamodb.exceptions.ProvisionedThroughputExceededException):
        dynamodb.put_item(TableName=table, Item=item(pk="a"))
    # Others are only observed.
    free = create_table(dynamodb, keys="pk:S", ProvisionedThroughput=units(1, 1))
    for _ in range(5):
        dynamodb.put_item(TableName=free, Item=item(pk="a", data="x" * 10_000))
