"""Stores that fail while servers write: a primary that is killed, and connections that are lost at COMMIT. What was acknowledged is
there, what was refused is not, and every change is in the stream once."""

import collections
import threading
import time

import botocore.exceptions
import pytest

import streams as streaming
import support
from faults import Proxy
from postgres import OnStore, Postgres, Replicated

COUNTERS = ["c0", "c1", "c2"]


def increment(node, table, counter):
    """The counter's new value."""
    changed = node.update_item(
        TableName=table, Key=support.item(pk=counter), UpdateExpression="ADD n :one",
        ExpressionAttributeValues={":one": support.n(1)}, ReturnValues="UPDATED_NEW",
    )
    return int(changed["Attributes"]["n"]["N"])


class Writer(threading.Thread):
    """Counts counters up and puts items of its own, until it is told to stop. Remembers what was answered."""

    def __init__(self, number, node, table):
        super().__init__(daemon=True)
        self.number, self.node, self.table = number, node, table
        self.is_stopping = False
        self.counted = collections.defaultdict(list)
        self.put, self.refused = [], []
        self.answered_at = []
        self.problem = None

    def run(self):
        step = 0
        while not self.is_stopping and self.problem is None:
            step += 1
            name = f"{self.number}/{step}"
            try:
                if step % 2:
                    counter = COUNTERS[(step // 2 + self.number) % len(COUNTERS)]
                    self.counted[counter].append(increment(self.node, self.table, counter))
                else:
                    support.put(self.node, self.table, pk=name)
                    self.put.append(name)
                self.answered_at.append(time.monotonic())
            except botocore.exceptions.ClientError as error:
                # Both say that nothing was written.
                if error.response["Error"]["Code"] not in ["ServiceUnavailable", "TransactionConflictException"]:
                    self.problem = error
                self.refused.append(name)
            except Exception as error:
                self.problem = error

    @property
    def answers(self):
        return len(self.answered_at)


def written_since(writers, before, count):
    """Waits until each writer has had this many more answers than before."""
    def is_so():
        problems = [writer.problem for writer in writers if writer.problem]
        assert not problems, problems
        return all(writer.answers >= start + count for writer, start in zip(writers, before))

    support.wait_until(is_so, "every writer gets answers", seconds=120)


def check(nodes, table, streams, arn, writers):
    """What the writers were told against what is there, through every node."""
    counted = {name: sorted(n for writer in writers for n in writer.counted[name]) for name in COUNTERS}
    put = {name for writer in writers for name in writer.put}
    for node in nodes:
        found = {entry["pk"]["S"]: entry for entry in support.all_items(node.scan, TableName=table, ConsistentRead=True)}
        for name in COUNTERS:
            total = int(found[name]["n"]["N"])
            assert counted[name] == list(range(1, total + 1)), "each count was acknowledged to one writer"
        assert found.keys() - set(COUNTERS) == put, "what was acknowledged is there, and nothing that was refused"
    records = streaming.records(streams, arn)
    numbers = [streaming.sequence_number(record) for record in records]
    assert numbers == sorted(set(numbers))
    seen = collections.defaultdict(list)
    for record in records:
        image = record["dynamodb"]["NewImage"]
        seen[image["pk"]["S"]].append(int(image.get("n", {"N": "0"})["N"]))
    for name in COUNTERS:
        assert seen.pop(name) == counted[name], "every change is in the stream, once and in order"
    assert seen == {name: [0] for name in put}


@pytest.fixture
def replicated():
    support.skip_if_aimed_elsewhere()
    servers = Replicated()
    yield servers
    servers.stop()


def test_nothing_is_lost_when_the_primary_is_killed(replicated, capsys):
    servers = [OnStore(replicated.url, ["--log", "warn"]) for _ in range(2)]
    nodes = [support.client(server.endpoint) for server in servers]
    streams = streaming.client(servers[0].endpoint)
    table, arn = streaming.create_table(nodes[0], "NEW_IMAGE")
    writers = [Writer(number, nodes[number % 2], table) for number in range(6)]
    for writer in writers:
        writer.start()
    written_since(writers, [0] * len(writers), 20)
    replicated.fail_over()
    # A standby must follow the new primary before anything is acknowledged.
    replicated.wait_for_standbys(1)
    written_since(writers, [writer.answers for writer in writers], 20)
    for writer in writers:
        writer.is_stopping = True
    for writer in writers:
        writer.join()
    assert not [writer.problem for writer in writers if writer.problem]
    check(nodes, table, streams, arn, writers)
    gaps = [b - a for w in writers for a, b in zip(w.answered_at, w.answered_at[1:])]
    with capsys.disabled():
        acknowledged, refused = sum(w.answers for w in writers), sum(len(w.refused) for w in writers)
        print(f"\nfailover: {acknowledged} acknowledged, {refused} refused, longest wait {max(gaps):.1f} s")
    for server in servers:
        assert server.process.poll() is None, "the server died:\n" + "".join(server.output)
        assert server.stop() == 0


@pytest.fixture
def proxied():
    """A PostgreSQL, a proxy in front of it, and two servers: one through the proxy, one beside it."""
    support.skip_if_aimed_elsewhere()
    store = Postgres()
    proxy = Proxy(store.port)
    through = store.url.replace(f":{store.port}/", f":{proxy.port}/")
    servers = [OnStore(through, ["--log", "error"]), OnStore(store.url)]
    yield proxy, servers
    proxy.set(None)
    for server in servers:
        server.kill()
    proxy.close()
    store.stop()


def test_a_commit_whose_answer_is_lost_is_answered_truly(proxied):
    proxy, servers = proxied
    broken, direct = [support.client(server.endpoint) for server in servers]
    table, arn = streaming.create_table(direct, "NEW_IMAGE")
    for round in range(1, 21):
        proxy.set("before" if round % 2 else "after")
        # Background work commits, too, and may meet the fault instead: then this round is an ordinary one.
        assert increment(broken, table, "c") == round
        found = support.get(direct, table, pk="c")
        assert found["n"] == support.n(round)
    proxy.set(None)
    assert proxy.struck >= 10
    images = [new["n"]["N"] for _, _, new, _ in streaming.changes(streaming.client(servers[1].endpoint), arn)]
    assert images == [str(n) for n in range(1, 21)]


def test_a_store_that_is_away_is_said_to_be_and_nothing_is_written(proxied):
    proxy, servers = proxied
    broken, direct = [support.client(server.endpoint) for server in servers]
    table = support.create_table(direct)
    support.put(broken, table, pk="before")
    proxy.set("down")
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        support.put(broken, table, pk="meanwhile")
    answer = refused.value.response
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 503
    assert answer["Error"]["Code"] == "ServiceUnavailable"
    assert answer["ResponseMetadata"]["HTTPHeaders"]["retry-after"] == "1"
    proxy.set(None)
    support.put(broken, table, pk="after")
    assert support.get(direct, table, pk="meanwhile") is None
    assert support.get(direct, table, pk="after") is not None


def test_readiness_and_the_status_tell_that_the_store_is_away(proxied):
    proxy, (server, _) = proxied
    assert server.health() == (200, {"ready": True, "reads": "ok", "writes": "ok", "store": "open"})
    proxy.set("down")
    away = {"ready": False, "reads": "failing", "writes": "failing", "store": "unavailable"}
    support.wait_until(lambda: server.health() == (503, away), "it is not ready")
    assert server.health("live")[0] == 200
    assert server.status().startswith("The store is unreachable: ")
    proxy.set(None)
    support.wait_until(lambda: server.health()[0] == 200, "it is ready again")
    assert server.status().startswith("The store is open, ")
