"""What the tests share: clients, tables with names of their own, exact errors, whole-result reads."""

import contextlib
import itertools
import os
import time
import uuid

import boto3
import botocore.config
import botocore.exceptions
import pytest

REGION = "us-east-1"
P = "One or more parameter values were invalid: "

# Errors under test must arrive as the server sent them: nothing is retried, and malformed requests
# are not caught on the client's side.
CONFIG = botocore.config.Config(
    retries={"total_max_attempts": 1, "mode": "standard"},
    parameter_validation=False,
    max_pool_connections=50,
)


def client(endpoint, region=REGION):
    return boto3.client("dynamodb", config=CONFIG, **connection(endpoint, region))


def resource(endpoint):
    return boto3.resource("dynamodb", config=CONFIG, **connection(endpoint, REGION))


def connection(endpoint, region):
    return {
        "endpoint_url": endpoint,
        "region_name": region,
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
    }


def skip_if_aimed_elsewhere():
    """For fixtures that start servers: `ZENOBE_ENDPOINT` names one that this suite does not own."""
    if os.environ.get("ZENOBE_ENDPOINT"):
        pytest.skip("the suite is aimed at a server that it does not own")


_numbers = itertools.count()
_run = uuid.uuid4().hex[:8]


def unique_name(prefix="t"):
    """One server serves all tests, so every test makes tables of its own."""
    return f"{prefix}-{_run}-{next(_numbers):04}"


def definition(name=None, keys="pk:S", gsi=(), lsi=(), **settings):
    """CreateTable's parameters from a short form: keys are "name:type[,name:type]", an index is
    (name, keys) or (name, keys, projection) with projection ALL, KEYS_ONLY or a list of attributes."""
    types = dict(part.split(":") for part in keys.split(","))
    for index in [*gsi, *lsi]:
        types.update(part.split(":") for part in index[1].split(","))
    parameters = {
        "TableName": name or unique_name(),
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": t} for n, t in types.items()],
        "KeySchema": key_schema(keys),
    }
    if gsi:
        parameters["GlobalSecondaryIndexes"] = [index_definition(*index) for index in gsi]
    if lsi:
        parameters["LocalSecondaryIndexes"] = [index_definition(*index) for index in lsi]
    if "ProvisionedThroughput" not in settings:
        settings.setdefault("BillingMode", "PAY_PER_REQUEST")
    return parameters | settings


def key_schema(keys):
    names = [part.split(":")[0] for part in keys.split(",")]
    return [{"AttributeName": n, "KeyType": k} for n, k in zip(names, ["HASH", "RANGE"])]


def index_definition(name, keys, projection="ALL"):
    if isinstance(projection, str):
        described = {"ProjectionType": projection}
    else:
        described = {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(projection)}
    return {"IndexName": name, "KeySchema": key_schema(keys), "Projection": described}


def create_table(dynamodb, **short_form):
    parameters = definition(**short_form)
    dynamodb.create_table(**parameters)
    wait_until_active(dynamodb, parameters["TableName"])
    return parameters["TableName"]


def wait_until_active(dynamodb, name):
    dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})


def wait_until(is_so, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.05)


def wait_for_indexes(dynamodb, name, expected):
    """Waits until the global indexes have the expected states, such as {"idx": "ACTIVE"}."""
    deadline = time.monotonic() + 60
    while (states := index_states(dynamodb, name)) != expected:
        assert time.monotonic() < deadline, states
        time.sleep(0.05)
    wait_until_active(dynamodb, name)


def index_states(dynamodb, name):
    indexes = dynamodb.describe_table(TableName=name)["Table"].get("GlobalSecondaryIndexes", [])
    return {index["IndexName"]: index["IndexStatus"] for index in indexes}


@contextlib.contextmanager
def refused(code, message, status=400):
    """The block must fail with exactly this error; yields an object whose `value` is the exception."""
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        yield caught
    response = caught.value.response
    actual = (response["Error"]["Code"], response["Error"]["Message"])
    assert actual == (code, message)
    assert response["ResponseMetadata"]["HTTPStatusCode"] == status


def invalid(message):
    return refused("ValidationException", message)


def missing_resource(message="Requested resource not found"):
    return refused("ResourceNotFoundException", message)


def condition_failed():
    return refused("ConditionalCheckFailedException", "The conditional request failed")


def s(text):
    return {"S": text}


def n(number):
    return {"N": str(number)}


def b(data):
    return {"B": data}


def item(**attributes):
    """An item from Python values: str is S, int is N, bytes B, bool BOOL, None NULL, list L, dict M."""
    return {name: attribute(value) for name, value in attributes.items()}


def attribute(value):
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int():
            return {"N": str(value)}
        case bytes():
            return {"B": value}
        case None:
            return {"NULL": True}
        case list():
            return {"L": [attribute(element) for element in value]}
        case dict():
            return {"M": item(**value)}
    raise TypeError(value)


def put(dynamodb, table, **attributes):
    dynamodb.put_item(TableName=table, Item=item(**attributes))


def get(dynamodb, table, **key):
    return dynamodb.get_item(TableName=table, Key=item(**key), ConsistentRead=True).get("Item")


def all_items(operation, **parameters):
    """Every item of a Query or Scan, through all of its pages."""
    items = []
    while True:
        page = operation(**parameters)
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        parameters["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def names_in(items, name):
    """One attribute of each item, as text, in the items' order."""
    return [next(iter(entry[name].values())) for entry in items]


def without_metadata(response):
    return {name: value for name, value in response.items() if name != "ResponseMetadata"}
