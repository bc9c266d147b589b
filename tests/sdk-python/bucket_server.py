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


def start(store, data, *more):
    credentials = data.parent / "s3-key"
    credentials.write_text("test:test\n")
    credentials.chmod(0o600)
    return Server(data, arguments=["--s3-endpoint", store.endpoint, "--s3-credentials", str(credentials), *more])


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
