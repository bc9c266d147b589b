"""Backups of a whole server, and its shipped log, in a real S3-compatible server that has bad days."""

import json
import os
import signal
import subprocess
import time
import urllib.request

import pytest

import support
from bucket_server import access
from object_store import ObjectStore
from server import Server, binary

SECONDS_MAX = 90


@pytest.fixture(scope="module")
def store():
    support.skip_if_aimed_elsewhere()
    store = ObjectStore()
    store.s3.create_bucket(Bucket="bucket")
    yield store
    store.close()


@pytest.fixture
def serve(store, tmp_path):
    reach = access(store.endpoint, tmp_path)
    servers = []

    def start(data, *more):
        servers.append(Server(tmp_path / data, arguments=[*reach, *more]))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


@pytest.fixture
def environment(store):
    return {
        **os.environ, "ZENOBE_S3_ENDPOINT": store.endpoint, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }


@pytest.fixture
def begin(environment, tmp_path):
    """Starts a command that the test ends."""
    begun = []

    def begin(*arguments):
        command = [binary(), *map(str, arguments)]
        begun.append(subprocess.Popen(
            command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ))
        return begun[-1]

    yield begin
    for process in begun:
        process.kill()
        process.wait()


@pytest.fixture
def zenobe(environment, tmp_path):
    def run(*arguments, fails=False):
        command = [binary(), *map(str, arguments)]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS_MAX)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def put(client, table, numbers):
    for number in numbers:
        client.put_item(TableName=table, Item={"pk": {"S": f"item {number}"}, "n": {"N": str(number)}})


def count(client, table):
    return client.scan(TableName=table, Select="COUNT")["Count"]


def shipping(server):
    with urllib.request.urlopen(server.endpoint + "/_zenobe/status") as answer:
        return json.load(answer)["shipping"]


def wait_until(condition):
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def wait_until_shipped(server):
    at_ms = time.time() * 1000
    wait_until(lambda: (shipping(server)["restorable_until_ms"] or 0) > at_ms)


def keys(store, prefix):
    pages = store.s3.get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix=prefix)
    return [it["Key"] for page in pages for it in page.get("Contents", [])]


def test_the_shipped_log_survives_bad_days_and_the_machine(store, serve, zenobe, tmp_path):
    place = "s3://bucket/" + support.unique_name("shipped")
    store.proxy.throttled, store.proxy.corrupted, store.proxy.cut = 3, 2, 2
    server = serve("data", "--ship-to", place)
    client = support.client(server.endpoint)
    table = support.create_table(client)
    put(client, table, range(10))
    wait_until_shipped(server)
    assert (store.proxy.throttled, store.proxy.corrupted, store.proxy.cut) == (0, 0, 0)

    # Requests don't wait for a store that is unreachable, and the operator is told.
    store.proxy.away = True
    put(client, table, range(10, 20))
    wait_until(lambda: shipping(server)["problem"])
    assert "restorable until" in zenobe("status", "--endpoint", server.endpoint)
    assert "shipping fails, and is tried again" in zenobe("status", "--endpoint", server.endpoint)
    store.proxy.away = False
    wait_until_shipped(server)
    assert shipping(server)["problem"] is None
    server.kill()

    zenobe("restore", "--from", place, "--data", tmp_path / "restored")
    assert count(support.client(serve("restored").endpoint), table) == 20


def test_what_is_damaged_is_named(store, serve, zenobe, tmp_path):
    prefix = support.unique_name("damaged")
    place = f"s3://bucket/{prefix}"
    server = serve("data", "--ship-to", place)
    client = support.client(server.endpoint)
    table = support.create_table(client)
    for number in range(3):
        put(client, table, [number])
        wait_until_shipped(server)
    server.kill()
    segments = [key for key in keys(store, f"{prefix}/segments/") if not key.endswith("/head")]
    whole = [store.s3.get_object(Bucket="bucket", Key=key)["Body"].read() for key in segments]
    altered = whole[-1]
    altered = altered[:-40] + bytes([altered[-40] ^ 1]) + altered[-39:]
    store.s3.put_object(Bucket="bucket", Key=segments[-1], Body=altered)
    name = segments[-1].rsplit("/", 1)[1]
    for command in (["backup", "verify", "--from", place], ["restore", "--from", place, "--data", tmp_path / "restored"]):
        said = zenobe(*command, fails=True)
        assert "the backup is damaged" in said and name in said and "SHA-256" in said, said
    store.s3.put_object(Bucket="bucket", Key=segments[-1], Body=whole[-1])
    store.s3.delete_object(Bucket="bucket", Key=segments[-2])
    said = zenobe("backup", "verify", "--from", place, fails=True)
    assert "the backup is damaged" in said and name in said, said
    store.s3.put_object(Bucket="bucket", Key=segments[-2], Body=whole[-2])
    zenobe("restore", "--from", place, "--data", tmp_path / "restored")
    assert count(support.client(serve("restored").endpoint), table) == 3


@pytest.fixture
def held(store):
    """The object store, which releases at the end what it holds."""
    yield store
    store.proxy.release()


def test_a_server_killed_while_it_is_backed_up(held, serve, zenobe, begin, tmp_path):
    place = "s3://bucket/" + support.unique_name("killed-backup")
    server = serve("data")
    client = support.client(server.endpoint)
    table = support.create_table(client)
    put(client, table, range(20))
    zenobe("backup", "--to", place, "--endpoint", server.endpoint)
    put(client, table, range(20, 30))
    held.proxy.hold_after(3)
    backup = begin("backup", "--to", place, "--endpoint", server.endpoint)
    support.wait_until(held.proxy.holds, "a file is held")
    server.kill()
    said = backup.communicate(timeout=SECONDS_MAX)[0]
    assert backup.returncode != 0, said
    held.proxy.release()

    # Neither a half backup nor anything else is left of it.
    assert len(zenobe("backup", "list", "--from", place).splitlines()) == 1
    zenobe("backup", "verify", "--from", place)
    server = serve("data")
    assert count(support.client(server.endpoint), table) == 30
    zenobe("backup", "--to", place, "--endpoint", server.endpoint)
    copies = [path for path in (tmp_path / "data").rglob("CHECKPOINTS/*")]
    assert copies == []
    assert len(zenobe("backup", "list", "--from", place).splitlines()) == 2
    zenobe("backup", "verify", "--from", place)
    zenobe("restore", "--from", place, "--data", tmp_path / "restored")
    assert count(support.client(serve("restored").endpoint), table) == 30


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "terminate"])
@pytest.mark.parametrize("is_shipped", [False, True], ids=["backup", "shipped"])
def test_a_killed_restore_is_finished_by_the_same_command(held, serve, zenobe, begin, tmp_path, ending, is_shipped):
    place = "s3://bucket/" + support.unique_name("killed-restore")
    server = serve("data", *(["--ship-to", place] if is_shipped else []))
    client = support.client(server.endpoint)
    table = support.create_table(client)
    put(client, table, range(20))
    if is_shipped:
        wait_until_shipped(server)
    else:
        zenobe("backup", "--to", place, "--endpoint", server.endpoint)
    server.kill()

    command = ["restore", "--from", place, "--data", tmp_path / "restored"]
    held.proxy.hold_after(3)
    restore = begin(*command)
    support.wait_until(held.proxy.holds, "a file is held")
    restore.send_signal(ending)
    said = restore.communicate(timeout=SECONDS_MAX)[0]
    assert restore.returncode != 0, said
    held.proxy.release()
    with pytest.raises(RuntimeError, match="unfinished restore"):
        serve("restored")
    zenobe(*command)
    assert count(support.client(serve("restored").endpoint), table) == 20


def test_backups_are_made_verified_and_pruned(store, serve, zenobe, tmp_path):
    prefix = support.unique_name("backups")
    place = f"s3://bucket/{prefix}"
    server = serve("data")
    client = support.client(server.endpoint)
    table = support.create_table(client)
    put(client, table, range(30))
    store.proxy.throttled, store.proxy.corrupted = 2, 2
    zenobe("backup", "--to", place, "--endpoint", server.endpoint)
    assert (store.proxy.throttled, store.proxy.corrupted) == (0, 0)
    put(client, table, range(30, 40))
    server.stop()
    server = serve("data")
    zenobe("backup", "--to", place, "--endpoint", server.endpoint)
    assert len(zenobe("backup", "list", "--from", place).splitlines()) == 2
    before = keys(store, prefix)
    assert "removed 1 backups" in zenobe("backup", "prune", "--from", place, "--keep", "1")
    assert len(keys(store, prefix)) < len(before)
    assert "ranges agree with those of the original" in zenobe("backup", "verify", "--from", place)
    zenobe("restore", "--from", place, "--data", tmp_path / "restored")
    assert count(support.client(serve("restored").endpoint), table) == 40


def test_a_killed_verification_leaves_nothing_behind(held, serve, zenobe, begin, tmp_path):
    place = "s3://bucket/" + support.unique_name("killed-verify")
    server = serve("data")
    client = support.client(server.endpoint)
    put(client, support.create_table(client), range(20))
    zenobe("backup", "--to", place, "--endpoint", server.endpoint)
    scratch = tmp_path / "scratch"
    command = ["backup", "verify", "--from", place, "--scratch", scratch]
    held.proxy.hold_after(3)
    verify = begin(*command)
    support.wait_until(held.proxy.holds, "a file is held")
    verify.kill()
    verify.communicate(timeout=SECONDS_MAX)
    held.proxy.release()
    assert len(list(scratch.iterdir())) == 1
    assert "ranges agree with those of the original" in zenobe(*command)
    assert list(scratch.iterdir()) == []
