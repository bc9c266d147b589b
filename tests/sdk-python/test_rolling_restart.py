"""Servers that are restarted one after the other behind a load balancer: no client gets an error."""

import threading

import pytest

import support
from balancer import Balancer
from postgres import OnStore, Postgres

# Several checks of the balancer.
DRAIN = ["--drain-seconds", "5"]


@pytest.fixture
def store():
    support.skip_if_aimed_elsewhere()
    server = Postgres()
    yield server
    server.stop()


def port_of(server):
    return int(server.endpoint.rpartition(":")[2])


def test_no_client_gets_an_error(store):
    servers = [OnStore(store.url, DRAIN) for _ in range(2)]
    ports = [port_of(server) for server in servers]
    balancer = Balancer(ports)
    support.wait_until(lambda: len(balancer.ready) == 2, "both are ready")
    client = support.client(balancer.endpoint)
    table = support.create_table(client)
    counts, problems, stopping = [0] * 4, [], threading.Event()

    def work(number):
        while not stopping.is_set():
            try:
                client.update_item(
                    TableName=table, Key=support.item(pk=str(number)), UpdateExpression="ADD n :one",
                    ExpressionAttributeValues={":one": support.n(1)},
                )
                counts[number] += 1
            except Exception as error:
                problems.append(error)
                return

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for server, port in zip(servers, ports):
        before = balancer.served[port]
        support.wait_until(lambda: balancer.served[port] > before or problems, "it serves")
        assert server.stop() == 0
        server.arguments = ["--store", store.url, "--port", str(port), *DRAIN]
        server.start()
        support.wait_until(lambda: port in balancer.ready, "it is ready again")
        before = balancer.served[port]
        support.wait_until(lambda: balancer.served[port] > before + 20 or problems, "it serves again")
    stopping.set()
    for worker in workers:
        worker.join()
    assert problems == []
    for number, count in enumerate(counts):
        assert support.get(client, table, pk=str(number))["n"] == support.n(count)
    balancer.close()
    for server in servers:
        assert server.stop() == 0


def test_a_server_that_drains_says_so_and_still_answers(store):
    server = OnStore(store.url, ["--drain-seconds", "60"])
    client = support.client(server.endpoint)
    table = support.create_table(client)
    server.process.terminate()
    support.wait_until(lambda: server.health()[0] == 503, "it says that it stops")
    assert server.health() == (503, {"ready": False, "draining": True})
    assert server.health("live")[0] == 200
    answer = client.put_item(TableName=table, Item=support.item(pk="a"))
    assert answer["ResponseMetadata"]["HTTPHeaders"]["connection"] == "close"
    # A second signal ends it at once.
    server.process.terminate()
    assert server.process.wait(30) == 143
