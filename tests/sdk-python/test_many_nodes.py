"""Two servers on one PostgreSQL: what one writes, the other reads, and neither loses the other's updates."""

import concurrent.futures
import os
import socket

import pytest

import support
from postgres import OnStore, Postgres


@pytest.fixture(scope="module")
def store():
    """The URL of a PostgreSQL that ends with this fixture."""
    support.skip_if_aimed_elsewhere()
    server = Postgres()
    yield server.url
    server.stop()


@pytest.fixture(scope="module")
def nodes(store):
    servers = [OnStore(store), OnStore(store)]
    yield [support.client(server.endpoint) for server in servers]
    for server in servers:
        assert server.process.poll() is None, "the server died:\n" + "".join(server.output)
        assert server.stop() == 0


@pytest.fixture(scope="module")
def table(nodes):
    return support.create_table(nodes[0], keys="pk:S")


def key(name):
    return {"pk": {"S": name}}


def test_what_one_server_writes_the_other_reads(nodes, table):
    one, other = nodes
    for round in range(20):
        writer, reader = (one, other) if round % 2 else (other, one)
        writer.put_item(TableName=table, Item={**key("a"), "n": {"N": str(round)}})
        found = reader.get_item(TableName=table, Key=key("a"), ConsistentRead=True)["Item"]
        assert found["n"] == {"N": str(round)}
        page = reader.query(
            TableName=table, KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": "a"}}, ConsistentRead=True,
        )
        assert page["Items"] == [found]
    one.delete_item(TableName=table, Key=key("a"))
    assert "Item" not in other.get_item(TableName=table, Key=key("a"), ConsistentRead=True)


def test_counters_lose_nothing(nodes, table):
    def count(worker):
        for _ in range(25):
            nodes[worker % 2].update_item(
                TableName=table, Key=key("counter"), UpdateExpression="ADD n :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
            )

    with concurrent.futures.ThreadPoolExecutor(6) as workers:
        list(workers.map(count, range(6)))
    for node in nodes:
        found = node.get_item(TableName=table, Key=key("counter"), ConsistentRead=True)["Item"]
        assert found["n"] == {"N": "150"}


def test_conditions_hold_across_servers(nodes, table):
    def create(worker):
        node = nodes[worker % 2]
        try:
            node.put_item(
                TableName=table, Item={**key("once"), "by": {"N": str(worker)}},
                ConditionExpression="attribute_not_exists(pk)",
            )
        except node.exceptions.ConditionalCheckFailedException:
            return 0
        return 1

    with concurrent.futures.ThreadPoolExecutor(8) as workers:
        assert sum(workers.map(create, range(8))) == 1


def test_transactions_do_not_see_each_others_absence(nodes, table):
    """Each of two wants the other's item absent; one of them is cancelled."""

    def claim(worker, round):
        node = nodes[worker]
        mine, theirs = f"{round}/{worker}", f"{round}/{1 - worker}"
        try:
            node.transact_write_items(TransactItems=[
                {"Put": {"TableName": table, "Item": key(mine)}},
                {"ConditionCheck": {
                    "TableName": table, "Key": key(theirs), "ConditionExpression": "attribute_not_exists(pk)",
                }},
            ])
        except node.exceptions.TransactionCanceledException:
            return 0
        return 1

    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        for round in range(20):
            assert sum(workers.map(claim, range(2), [round] * 2)) == 1


def test_a_password_is_not_printed():
    support.skip_if_aimed_elsewhere()
    with pytest.raises(RuntimeError) as failure:
        OnStore("postgres://zenobe:secret@127.0.0.1:1/zenobe")
    assert "cannot open the store" in str(failure.value)
    assert "secret" not in str(failure.value)


def test_a_postgresql_for_tests_leaves_nothing_behind():
    support.skip_if_aimed_elsewhere()
    server = Postgres()
    assert server.execute("SELECT 1") == "1"
    server.script.terminate()
    assert server.script.wait(30) == 143
    assert not os.path.exists(server.directory) and not os.path.exists(server.directory + ".log")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))
