"""One server for the whole run. `ZENOBE_ENDPOINT` aims the suite at a server that already runs; tests
that need to stop and start a server of their own are then skipped."""

import os

import pytest

import streams as streaming
import support
from server import Server


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory):
    named = os.environ.get("ZENOBE_ENDPOINT")
    if named:
        yield named
        return
    # Two shards: consumers have to follow both.
    server = Server(tmp_path_factory.mktemp("zenobe") / "data", arguments=["--stream-shards", "2"])
    yield server.endpoint
    assert server.process.poll() is None, "the server died:\n" + "".join(server.output)
    assert server.stop() == 0


@pytest.fixture(scope="session")
def dynamodb(endpoint):
    return support.client(endpoint)


@pytest.fixture(scope="session")
def streams(endpoint):
    return streaming.client(endpoint)


@pytest.fixture(scope="session")
def resource(endpoint):
    return support.resource(endpoint)


@pytest.fixture
def own_server(tmp_path):
    """A server that the test may stop, kill and start again."""
    support.skip_if_aimed_elsewhere()
    server = Server(tmp_path / "data")
    yield server
    server.kill()


@pytest.fixture
def scoped_server():
    """A server on which each access key and region has tables of its own."""
    support.skip_if_aimed_elsewhere()
    server = Server(arguments=["--namespaces-from-credentials"])
    yield server
    server.kill()


@pytest.fixture
def driven(request):
    """A server whose time stands still until the test moves it. Its streams have two shards, or as many as the
    test's mark `stream_shards` says."""
    support.skip_if_aimed_elsewhere()
    mark = request.node.get_closest_marker("stream_shards")
    shards = mark.args[0] if mark else 2
    server = Server(arguments=["--driven-clock", "--stream-shards", str(shards)])
    yield streaming.Driven(server)
    server.kill()


@pytest.fixture
def memory_server(tmp_path):
    """A server that keeps nothing, started in an empty directory."""
    support.skip_if_aimed_elsewhere()
    server = Server(directory=tmp_path)
    yield server
    server.kill()


@pytest.fixture(scope="module")
def hash_table(dynamodb):
    """A table with a string partition key. Its tests use partition keys of their own."""
    return support.create_table(dynamodb, keys="pk:S")


@pytest.fixture(scope="module")
def range_table(dynamodb):
    """A table with a string partition key and a numeric sort key."""
    return support.create_table(dynamodb, keys="pk:S,sk:N")


@pytest.fixture
def key():
    """A partition key that no other test uses."""
    return support.unique_name("key")
