"""A server beside an object store with one bucket, for tests of exports and imports. They import these fixtures by name."""

import pytest

import support
from object_store import ObjectStore
from server import Server


def open_store():
    support.skip_if_aimed_elsewhere()
    store = ObjectStore()
    store.s3.create_bucket(Bucket="bucket")
    return store


def access(endpoint, directory):
    """The arguments that tell a server where its object store is. The directory is for the file with its access key."""
    key = directory / "s3-key"
    key.write_text("test:test\n")
    key.chmod(0o600)
    return ["--s3-endpoint", endpoint, "--s3-credentials", str(key)]


def start(store, data, *more):
    return Server(data, arguments=[*access(store.endpoint, data.parent), *more])


@pytest.fixture(scope="module")
def store():
    store = open_store()
    yield store
    store.close()


@pytest.fixture(scope="module")
def server(store, tmp_path_factory):
    server = start(store, tmp_path_factory.mktemp("bucket_server") / "data")
    yield server
    assert server.process.poll() is None, "the server died:\n" + "".join(server.output)
    server.kill()


@pytest.fixture(scope="module")
def client(server):
    return support.client(server.endpoint)
