"""Eventually consistent reads from standbys: never further behind than the option says, and nothing else is ever behind. And what
`zenobe status` says of it all."""

import contextlib

import pytest

import support
from postgres import OnStore, Replicated

OPTIONS = ["--eventual-reads-from-standbys", "--standby-max-lag-ms", "8000", "--node-name", "first"]


@pytest.fixture(scope="module")
def replicated():
    support.skip_if_aimed_elsewhere()
    servers = Replicated()
    yield servers
    servers.stop()


@pytest.fixture(scope="module")
def server(replicated):
    server = OnStore(replicated.url, OPTIONS)
    yield server
    assert server.process.poll() is None, "the server died:\n" + "".join(server.output)
    assert server.stop() == 0


def versions(client, table, **consistency):
    """What each kind of read shows."""
    key, found = support.item(pk="a"), {}
    found["get"] = client.get_item(TableName=table, Key=key, **consistency)["Item"]
    query = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": support.s("a")}}
    found["query"] = client.query(TableName=table, **query, **consistency)["Items"][0]
    filtered = {**query, "FilterExpression": "v > :z"}
    filtered["ExpressionAttributeValues"] = {":pk": support.s("a"), ":z": support.n(-1)}
    found["filter"] = client.query(TableName=table, **filtered, **consistency)["Items"][0]
    found["scan"] = client.scan(TableName=table, **consistency)["Items"][0]
    request = {table: {"Keys": [key], **consistency}}
    found["batch"] = client.batch_get_item(RequestItems=request)["Responses"][table][0]
    return {kind: entry["v"]["N"] for kind, entry in found.items()}


def each(version, kinds=("get", "query", "filter", "scan", "batch")):
    return {kind: version for kind in kinds}


def wait_until_replayed(replicated):
    position = replicated.primary.execute("SELECT pg_current_wal_flush_lsn()")
    for standby in replicated.standbys:
        query = f"SELECT pg_last_wal_replay_lsn() >= '{position}'"
        support.wait_until(lambda: standby.execute(query) == "t", "the standby follows")


def wait_until_both_are_read(server):
    support.wait_until(lambda: server.status().count("may read from") == 2, "both standbys are read")


def read_behind(replicated, server, table, version):
    """Writes a version that no standby replays, and returns what eventually consistent reads show right after it."""
    client = support.client(server.endpoint)
    wait_until_replayed(replicated)
    wait_until_both_are_read(server)
    # Reads with a filter take connections of their own, which count only once they are known.
    versions(client, table)
    wait_until_both_are_read(server)
    for standby in replicated.standbys:
        standby.execute("SELECT pg_wal_replay_pause()")
    for standby in replicated.standbys:
        paused = "SELECT pg_get_wal_replay_pause_state()"
        support.wait_until(lambda: standby.execute(paused) == "paused", "it stands still")
    support.put(client, table, pk="a", v=version)
    return versions(client, table)


def resume(replicated):
    for standby in replicated.standbys:
        standby.execute("SELECT pg_wal_replay_resume()")
    wait_until_replayed(replicated)


def test_only_eventually_consistent_reads_are_behind_and_not_for_long(replicated, server):
    client = support.client(server.endpoint)
    table = support.create_table(client)
    support.put(client, table, pk="a", v=0)
    for version in range(1, 11):
        eventual = read_behind(replicated, server, table, version)
        assert versions(client, table, ConsistentRead=True) == each(str(version))
        get = {"Get": {"TableName": table, "Key": support.item(pk="a")}}
        response = client.transact_get_items(TransactItems=[get])["Responses"][0]
        assert response["Item"]["v"] == support.n(version)
        before = str(version - 1)
        if eventual["get"] == before and eventual["batch"] == before and before in (eventual["query"], eventual["scan"]):
            break
        # On a busy machine all of this can take longer than a standby may be behind.
        resume(replicated)
    else:
        pytest.fail(f"no standby has answered: {eventual}")
    current = each(str(version))
    support.wait_until(lambda: versions(client, table) == current, "a standby that is too far behind is not asked")
    resume(replicated)
    wait_until_both_are_read(server)
    assert versions(client, table) == current


def test_a_standby_that_stands_still_costs_no_read(replicated, server):
    client = support.client(server.endpoint)
    table = support.create_table(client)
    support.put(client, table, pk="a", v=1)
    wait_until_replayed(replicated)
    wait_until_both_are_read(server)
    assert versions(client, table) == each("1")
    wait_until_both_are_read(server)
    with contextlib.ExitStack() as stack:
        for standby in replicated.standbys:
            stack.enter_context(standby.frozen())
        for _ in range(3):
            assert versions(client, table) == each("1")
    wait_until_both_are_read(server)


def test_the_status_shows_nodes_leases_lag_and_the_store(replicated, server):
    other = OnStore(replicated.url, ["--node-name", "second"])
    support.wait_until(lambda: "second: alive" in server.status(), "the other node is seen")
    shown = server.status()
    assert "The store is open, with " in shown
    assert "PostgreSQL " in shown and f" answers at 127.0.0.1:{replicated.primary.port}, in " in shown
    for standby in replicated.standbys:
        assert f"standby {standby.name}: streaming, commits wait for it, " in shown
    assert "2 nodes share it:" in shown and "first (this one): alive" in shown
    support.wait_until(lambda: "  expiry: first" in server.status(), "the first node does the background work")
    assert other.stop() == 0
    support.wait_until(lambda: "second" not in server.status(), "a node that stops leaves")
