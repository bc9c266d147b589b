"""Two nodes on one PostgreSQL and one object store: what a killed node leaves unfinished, the other one finishes."""

import contextlib
import json
import os

import pytest

import support
import test_bulk_puts as bulk_puts
import test_exports as exports
import test_imports as imports
from bucket_server import access, store  # noqa: F401 (a fixture)
from object_store import Proxy
from postgres import OnStore, Postgres
from test_imports import TO_WIRE, canonical, dynamodb_json, items, scan


@pytest.fixture(scope="module")
def postgres():
    support.skip_if_aimed_elsewhere()
    postgres = Postgres()
    yield postgres
    postgres.stop()


class Node:
    """A server with a way to the object store that nobody else takes, so that a test sees which node works."""

    def __init__(self, url, store, directory):
        self.proxy = Proxy(store.moto.get_host_and_port())
        self.server = OnStore(url, ["--lease-seconds", "2", *access(self.proxy.endpoint, directory)])
        self.client = support.client(self.server.endpoint)

    def objects(self, method):
        """The keys of the objects that it has asked for by this method."""
        return {path.removeprefix("/bucket/") for used, path in self.proxy.asked if used == method}

    def close(self):
        self.server.kill()
        self.proxy.close()


@pytest.fixture
def nodes(postgres, store, tmp_path):
    url = postgres.new_database()
    with contextlib.ExitStack() as stack:
        nodes = []
        for _ in range(2):
            nodes.append(Node(url, store, tmp_path))
            stack.callback(nodes[-1].close)
        yield nodes


def hold_after(nodes, count):
    for node in nodes:
        node.proxy.hold_after(count)


def kill_the_one_at_work(nodes):
    """Kills the node whose request is held. Returns it, and the one that is left."""
    support.wait_until(lambda: any(node.proxy.holds() for node in nodes), "a request is held")
    killed, left = sorted(nodes, key=lambda node: not node.proxy.holds())
    assert not left.proxy.asked, "one node works"
    killed.server.kill()
    for node in nodes:
        node.proxy.release()
    return killed, left


def assert_read_from(node, names, start):
    """The node has read these objects from the one at `start` on. It may have begun with the one before, to see that it ends."""
    read = node.objects("GET")
    assert set(names[start:]) <= read and not read & set(names[:start - 1]), read


def test_an_export_goes_on_at_another_node(store, nodes):
    client = nodes[0].client
    # Two data files, because noise does not compress.
    wire = [{"pk": {"S": "k"}, "sk": {"N": str(n)}, "b": {"B": os.urandom(390_000)}} for n in range(56)]
    table = exports.filled(client, wire)
    # The marker of the start and the first data file are stored, and the second one is not.
    hold_after(nodes, 2)
    description = exports.begin(client, table, S3Prefix=table)
    killed, left = kill_the_one_at_work(nodes)
    # It is no part of the export, which shows the table as it was.
    left.client.put_item(TableName=table, Item={"pk": {"S": "k"}, "sk": {"N": "0"}})
    done = exports.wait(left.client, description)
    summary, text = exports.exported(store, done)
    assert summary["itemCount"] == 56
    assert canonical(json.loads(line)["Item"] for line in text.splitlines()) == canonical(exports.as_json(wire))
    data = {key for key in exports.keys(store, table) if "/data/" in key}
    first = {key for key in killed.objects("PUT") if key in data}
    again = {key for key in left.objects("PUT") if key in data}
    # The first file is not written again. The second one is, under the same key.
    assert (len(data), len(first), len(again)) == (2, 2, 1)


def test_an_import_goes_on_at_another_node(store, nodes):
    expected = items(1200)
    prefix = support.unique_name("parts") + "/"
    names = [f"{prefix}{number:02}" for number in range(12)]
    for number, name in enumerate(names):
        store.s3.put_object(Bucket="bucket", Key=name, Body=dynamodb_json(expected[number * 100:number * 100 + 100]))
    hold_after(nodes, 5)
    description = imports.begin(nodes[0].client, prefix)
    table = description["TableArn"].split("/")[-1]
    # The other node knows how far it is.
    running = imports.wait(nodes[1].client, description, lambda it: it.get("ImportedItemCount") == 500)
    assert running["ImportStatus"] == "IN_PROGRESS"
    _, left = kill_the_one_at_work(nodes)
    done = imports.wait(left.client, running)
    assert (done["ImportStatus"], done["ImportedItemCount"], done["ErrorCount"]) == ("COMPLETED", 1200, 0), done
    assert canonical(scan(left.client, table)) == canonical(TO_WIRE(item)["M"] for item in expected)
    assert_read_from(left, names, 5)


def test_a_bulk_put_goes_on_at_another_node(store, nodes):
    client = nodes[0].client
    expected = [TO_WIRE(item)["M"] for item in items(40)]
    prefix = support.unique_name("parts") + "/"
    names = [f"{prefix}{number}" for number in range(8)]
    for number, name in enumerate(names):
        bulk_puts.put(store, name, dynamodb_json(items(40)[number * 5:number * 5 + 5]))
    table = support.create_table(client, keys="pk:S,sk:N")
    hold_after(nodes, 3)
    started = bulk_puts.begin(client, table, prefix)
    support.wait_until(
        lambda: bulk_puts.describe(nodes[1].client, started)["ProcessedItemCount"] == 15, "three parts are put"
    )
    _, left = kill_the_one_at_work(nodes)
    # What a client writes over an item stays, because no item is put a second time.
    expected[0] = {"pk": expected[0]["pk"], "sk": expected[0]["sk"], "by": {"S": "a client"}}
    left.client.put_item(TableName=table, Item=expected[0])
    done = bulk_puts.wait(left.client, started)
    counts = (done["BulkOperationStatus"], done["ProcessedItemCount"], done["FailedItemCount"])
    assert counts == ("COMPLETED", 40, 0), done
    assert canonical(scan(left.client, table)) == canonical(expected)
    assert_read_from(left, names, 3)
    manifest, lines = bulk_puts.report(store, done)
    assert (manifest["processedItemCount"], lines) == (40, {"error": [], "condition-check-failure": []})
