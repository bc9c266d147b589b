"""Tags and time-to-live settings."""

import pytest

from support import P, create_table, invalid, missing_resource


def tags_of(dynamodb, arn):
    page = dynamodb.list_tags_of_resource(ResourceArn=arn)
    assert "NextToken" not in page
    return {tag["Key"]: tag["Value"] for tag in page["Tags"]}


def tag_list(tags):
    return [{"Key": key, "Value": value} for key, value in tags.items()]


@pytest.fixture
def arn(dynamodb):
    name = create_table(dynamodb, Tags=tag_list({"team": "blue"}))
    return dynamodb.describe_table(TableName=name)["Table"]["TableArn"]


def test_tags_are_added_replaced_and_removed(dynamodb, arn):
    assert tags_of(dynamodb, arn) == {"team": "blue"}
    dynamodb.tag_resource(ResourceArn=arn, Tags=tag_list({"team": "red", "stage": ""}))
    assert tags_of(dynamodb, arn) == {"team": "red", "stage": ""}
    dynamodb.untag_resource(ResourceArn=arn, TagKeys=["team", "never"])
    assert tags_of(dynamodb, arn) == {"stage": ""}


def test_many_tags_come_at_once(dynamodb, arn):
    tags = {f"key{number}": str(number) for number in range(49)}
    dynamodb.tag_resource(ResourceArn=arn, Tags=tag_list(tags))
    assert tags_of(dynamodb, arn) == tags | {"team": "blue"}
    with invalid("Number of Tags exceed the current limit for the provided ResourceArn"):
        dynamodb.tag_resource(ResourceArn=arn, Tags=tag_list({"one": "more"}))


TAG_ERRORS = {
    "none": ([], "Atleast one Tag needs to be provided as Input."),
    "reserved": ([{"Key": "AWS:x", "Value": "v"}], "Tag Key cannot be prefixed with aws:, Key: AWS:x"),
    "duplicate": (
        [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}],
        "Duplicate Tag Keys provided as input: Duplicate Tag Key found a",
    ),
    "key characters": ([{"Key": "a*b", "Value": "v"}], "The Tag Key provided is invalid, Key: a*b"),
    "value characters": ([{"Key": "a", "Value": "x*"}], "The Tag Value provided is invalid, Value: x*"),
}


@pytest.mark.parametrize("case", TAG_ERRORS)
def test_tag_errors_change_nothing(dynamodb, arn, case):
    tags, message = TAG_ERRORS[case]
    with invalid(message):
        dynamodb.tag_resource(ResourceArn=arn, Tags=tags)
    assert tags_of(dynamodb, arn) == {"team": "blue"}


def test_untag_needs_a_key(dynamodb, arn):
    with invalid("Atleast one Tag Key needs to be provided as Input."):
        dynamodb.untag_resource(ResourceArn=arn, TagKeys=[])


def test_resources_that_cannot_be_tagged(dynamodb, arn):
    with invalid(P + "ARNs must start with 'arn:': x"):
        dynamodb.list_tags_of_resource(ResourceArn="x")
    index = arn + "/index/idx"
    message = f"Invalid resource arn provided, only table or stream is accepted. Provided resource arn: {index}"
    with invalid(P + message):
        dynamodb.list_tags_of_resource(ResourceArn=index)
    short = arn.rsplit("/", 1)[0] + "/ab"
    with invalid(f"Invalid TableArn: Invalid ResourceArn provided as input {short}"):
        dynamodb.tag_resource(ResourceArn=short, Tags=[])
    missing = arn.rsplit("/", 1)[0] + "/missing"
    with missing_resource(f"Requested resource not found: ResourceArn: {missing} not found"):
        dynamodb.list_tags_of_resource(ResourceArn=missing)


def time_to_live(dynamodb, name):
    return dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]


def test_time_to_live_is_enabled(dynamodb):
    name = create_table(dynamodb)
    assert time_to_live(dynamodb, name) == {"TimeToLiveStatus": "DISABLED"}
    wanted = {"Enabled": True, "AttributeName": "expires"}
    answer = dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=wanted)
    assert answer["TimeToLiveSpecification"] == wanted
    assert time_to_live(dynamodb, name) == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
    with invalid("TimeToLive is already enabled"):
        dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=wanted)
    message = "TimeToLive is active on a different AttributeName: current AttributeName is expires"
    with invalid(message):
        other = {"Enabled": True, "AttributeName": "other"}
        dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=other)


def test_time_to_live_errors(dynamodb):
    name = create_table(dynamodb)
    with invalid("TimeToLive is already disabled"):
        off = {"Enabled": False, "AttributeName": "expires"}
        dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=off)
    with missing_resource("Requested resource not found: Table: missing not found"):
        dynamodb.describe_time_to_live(TableName="missing")
    with missing_resource("Requested resource not found: Table: missing not found"):
        on = {"Enabled": True, "AttributeName": "expires"}
        dynamodb.update_time_to_live(TableName="missing", TimeToLiveSpecification=on)
