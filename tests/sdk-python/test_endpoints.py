"""How clients find the server: the environment, and endpoint discovery, which must not lead them to AWS."""

import boto3
import pytest
from botocore.config import Config


@pytest.fixture
def environment(endpoint, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
    monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", raising=False)
    return monkeypatch


def test_the_variable_of_dynamodb_leaves_out_streams(environment, endpoint):
    session = boto3.Session()
    assert session.client("dynamodb").meta.endpoint_url == endpoint
    assert session.client("dynamodbstreams").meta.endpoint_url == "https://streams.dynamodb.us-east-1.amazonaws.com"
    environment.setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", endpoint)
    streams = boto3.Session().client("dynamodbstreams")
    assert streams.meta.endpoint_url == endpoint
    streams.list_streams()


def test_discovery_leads_back_to_the_server(environment, endpoint):
    client = boto3.Session().client("dynamodb", config=Config(endpoint_discovery_enabled=True))
    # Discovery asks first, and sends this to where it was told.
    client.list_tables()
    assert client.describe_endpoints()["Endpoints"] == [{"Address": endpoint, "CachePeriodInMinutes": 1440}]


def test_behind_tls_the_endpoint_has_no_scheme(dynamodb, endpoint):
    def forwarded(request, **_):
        request.headers["X-Forwarded-Proto"] = "https"

    dynamodb.meta.events.register("before-sign.dynamodb.DescribeEndpoints", forwarded, unique_id="forwarded")
    try:
        answer = dynamodb.describe_endpoints()
    finally:
        dynamodb.meta.events.unregister("before-sign.dynamodb.DescribeEndpoints", unique_id="forwarded")
    assert answer["Endpoints"][0]["Address"] == endpoint.removeprefix("http://")
