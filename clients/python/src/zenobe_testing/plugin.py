"""The pytest plugin. One server runs per process (with pytest-xdist, per worker), and is empty for every test that uses it.

| fixture | gives |
|---|---|
| `zenobe` | the server, empty: `endpoint`, `client_settings`, `environment`, `reset()`, `snapshot()`, `restore()`, `fork()`, `fault()` |
| `zenobe_client` | a boto3 client for DynamoDB |
| `zenobe_resource` | a boto3 resource for DynamoDB |
| `zenobe_streams` | a boto3 client for DynamoDB Streams |
| `zenobe_table` | an empty table as a boto3 resource, made as `@pytest.mark.zenobe_table(...)` says |
| `zenobe_create_table` | a function that makes tables: `zenobe_create_table("Orders", "pk:S", "sk:N")` |

While a test runs, `AWS_ENDPOINT_URL_DYNAMODB` and its like point to the server, so that code under test which makes its own
clients finds it too.
"""

import boto3
import pytest

from .server import Server

MARKER = "zenobe_table(name, partition_key, sort_key=None, **settings): how the table of the fixture zenobe_table is made"


def pytest_configure(config):
    config.addinivalue_line("markers", MARKER)


def pytest_addoption(parser):
    group = parser.getgroup("zenobe")
    group.addoption(
        "--zenobe-option", action="append", default=[], metavar="OPTION", dest="zenobe_options",
        help="an option for `zenobe serve`, such as --zenobe-option=--driven-clock; may be repeated",
    )


@pytest.fixture(scope="session")
def _zenobe_server(request):
    with Server(arguments=request.config.getoption("zenobe_options")) as server:
        server.is_empty = True
        yield server


@pytest.fixture
def zenobe(_zenobe_server, monkeypatch):
    """An empty database."""
    if not _zenobe_server.is_empty:
        _zenobe_server.reset()
    _zenobe_server.is_empty = False
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in _zenobe_server.environment.items():
        monkeypatch.setenv(name, value)
    # The default session keeps the first credentials that it finds.
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    return _zenobe_server


# Making a client takes boto3 longer than a reset takes the server, and the endpoint stays, so tests share them.


@pytest.fixture(scope="session")
def _zenobe_shared_client(_zenobe_server):
    return boto3.client("dynamodb", **_zenobe_server.client_settings)


@pytest.fixture(scope="session")
def _zenobe_shared_resource(_zenobe_server):
    return boto3.resource("dynamodb", **_zenobe_server.client_settings)


@pytest.fixture(scope="session")
def _zenobe_shared_streams(_zenobe_server):
    return boto3.client("dynamodbstreams", **_zenobe_server.client_settings)


@pytest.fixture
def zenobe_client(zenobe, _zenobe_shared_client):
    return _zenobe_shared_client


@pytest.fixture
def zenobe_resource(zenobe, _zenobe_shared_resource):
    return _zenobe_shared_resource


@pytest.fixture
def zenobe_streams(zenobe, _zenobe_shared_streams):
    return _zenobe_shared_streams


@pytest.fixture
def zenobe_create_table(zenobe_resource):
    def create(name, partition_key="pk:S", sort_key=None, **settings):
        """Keys are `name:type` with one of DynamoDB's types S, N and B. Settings are those of CreateTable."""
        keys = [key.rsplit(":", 1) for key in (partition_key, sort_key) if key]
        if any(len(key) != 2 or key[1] not in ("S", "N", "B") for key in keys):
            raise ValueError(f"keys are written as name:S, name:N or name:B, not {partition_key!r}, {sort_key!r}")
        attributes = [{"AttributeName": name, "AttributeType": kind} for name, kind in keys]
        schema = [{"AttributeName": key[0], "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"))]
        attributes += settings.pop("AttributeDefinitions", [])
        if "ProvisionedThroughput" not in settings:
            settings.setdefault("BillingMode", "PAY_PER_REQUEST")
        return zenobe_resource.create_table(
            TableName=name, AttributeDefinitions=attributes, KeySchema=schema, **settings
        )

    return create


@pytest.fixture
def zenobe_table(request, zenobe_create_table):
    marker = request.node.get_closest_marker("zenobe_table")
    arguments, settings = (marker.args, marker.kwargs) if marker else ((), {})
    return zenobe_create_table(*(arguments or ("test-table",)), **settings)
