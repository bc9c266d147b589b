"""Two servers on one PostgreSQL, with the caches for eventually consistent reads."""

import urllib.request

import pytest

import support
from postgres import OnStore, Postgres

# Longer than the tests take. What happens when the time is over is tested in the engine, with a clock of its own.
CACHES = ["--item-cache-mb", "16", "--query-cache-mb", "16"]


@pytest.fixture(scope="module")
def servers():
    support.skip_if_aimed_elsewhere()
    postgres = Postgres()
    started = [OnStore(postgres.url, CACHES), OnStore(postgres.url)]
    yield started
    for server in started:
        assert server.stop() == 0
    postgres.stop()


@pytest.fixture(scope="module")
def nodes(servers):
    return [support.client(server.endpoint) for server in servers]


@pytest.fixture(scope="module")
def table(nodes):
    return support.create_table(nodes[0], keys="pk:S")


def put(node, table, name, value):
    node.put_item(TableName=table, Item={"pk": {"S": name}, "v": {"N": str(value)}})


def get(node, table, name, **parameters):
    """The value of an item, and what reading it consumed."""
    answer = node.get_item(
        TableName=table, Key={"pk": {"S": name}}, ReturnConsumedCapacity="TOTAL", **parameters
    )
    return answer.get("Item", {}).get("v", {}).get("N"), answer["ConsumedCapacity"]["CapacityUnits"]


def test_items(nodes, table):
    cached, other = nodes
    put(other, table, "a", 1)
    assert get(cached, table, "a") == ("1", 0.5)
    put(other, table, "a", 2)
    assert get(cached, table, "a") == ("1", 0.0)
    assert get(other, table, "a") == ("2", 0.5)
    assert get(cached, table, "a", ConsistentRead=True) == ("2", 1.0)
    assert get(cached, table, "a") == ("1", 0.0)
    put(cached, table, "a", 3)
    assert get(cached, table, "a") == ("3", 0.0)
    assert get(cached, table, "missing") == (None, 0.5)
    assert get(cached, table, "missing") == (None, 0.0)


def test_batches(nodes, table):
    cached, other = nodes
    put(cached, table, "in a batch", 1)
    put(other, table, "in a batch", 2)
    put(other, table, "also in a batch", 2)
    request = {table: {"Keys": [{"pk": {"S": name}} for name in ["in a batch", "also in a batch"]]}}
    for units in [0.5, 0.0]:
        answer = cached.batch_get_item(RequestItems=request, ReturnConsumedCapacity="TOTAL")
        values = {item["pk"]["S"]: item["v"]["N"] for item in answer["Responses"][table]}
        assert values == {"in a batch": "1", "also in a batch": "2"}
        assert answer["ConsumedCapacity"] == [{"TableName": table, "CapacityUnits": units}]


def test_pages(nodes, table):
    cached, _ = nodes
    put(cached, table, "in a page", 1)
    query = {
        "TableName": table, "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "in a page"}}, "ReturnConsumedCapacity": "TOTAL",
    }
    assert cached.query(**query)["ConsumedCapacity"]["CapacityUnits"] == 0.5
    put(cached, table, "in a page", 2)
    page = cached.query(**query)
    assert page["Items"][0]["v"] == {"N": "1"}
    assert page["ConsumedCapacity"]["CapacityUnits"] == 0.0
    assert cached.query(**query, ConsistentRead=True)["Items"][0]["v"] == {"N": "2"}


def test_transactions_show_at_once(nodes, table):
    cached, _ = nodes
    put(cached, table, "in a transaction", 1)
    update = {
        "TableName": table, "Key": {"pk": {"S": "in a transaction"}}, "UpdateExpression": "ADD v :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    cached.transact_write_items(TransactItems=[{"Update": update}])
    assert get(cached, table, "in a transaction") == ("2", 0.0)


def test_metrics(servers, nodes, table):
    def metrics(server):
        with urllib.request.urlopen(f"{server.endpoint}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}

    before = metrics(servers[0])
    get(nodes[0], table, "in the metrics")
    get(nodes[0], table, "in the metrics")
    after = metrics(servers[0])
    grown = {name: after[name] - before[name] for name in after if "_cache_" in name and "bytes" not in name}
    assert grown == {
        "zenobe_item_cache_hits_total": 1, "zenobe_item_cache_misses_total": 1,
        "zenobe_item_cache_evictions_total": 0, "zenobe_item_cache_entries": 1,
        "zenobe_query_cache_hits_total": 0, "zenobe_query_cache_misses_total": 0,
        "zenobe_query_cache_evictions_total": 0, "zenobe_query_cache_entries": 0,
    }
    assert after["zenobe_item_cache_bytes"] > before["zenobe_item_cache_bytes"]
    assert not any("_cache_" in name for name in metrics(servers[1]))
