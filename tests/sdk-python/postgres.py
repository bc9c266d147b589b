"""PostgreSQL servers for tests: one alone, or a primary with two standbys that a test can fail over."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

import support
from server import Server, binary

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "postgres" / "cluster.sh"


class Postgres:
    """A server that ends with this process at the latest. With `primary` it is a standby of that server."""

    def __init__(self, name="", primary=None, configuration=""):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.name = name
        self.directory = os.path.join(tempfile.gettempdir(), f"zenobe-postgres-{os.getpid()}-{self.port}")
        arguments = [self.directory, str(self.port), name, *([str(primary.port)] if primary else [])]
        self.script = subprocess.Popen(
            ["sh", str(SCRIPT), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "ZENOBE_POSTGRES_CONFIGURATION": configuration},
        )
        ready = self.script.stdout.readline()
        if not ready.startswith("ready "):
            if os.environ.get("CI"):
                pytest.fail("there is no PostgreSQL to test with")
            pytest.skip("there is no PostgreSQL; `cargo xtask postgres` fetches one")
        self.programs = ready.removeprefix("ready ").strip()

    @property
    def url(self):
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres?sslmode=disable"

    def new_database(self):
        """The URL of a database that nobody else has."""
        name = support.unique_name("own").replace("-", "_").lower()
        self.execute(f"CREATE DATABASE {name}")
        return self.url.replace("/postgres?", f"/{name}?")

    def execute(self, sql):
        """Runs SQL, and returns what it printed."""
        psql = [
            os.path.join(self.programs, "psql"), "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres",
            "-d", "postgres", "-At", "-v", "ON_ERROR_STOP=1", "-c", sql,
        ]
        return subprocess.run(psql, check=True, capture_output=True, text=True).stdout.strip()

    def postmaster(self):
        with open(os.path.join(self.directory, "data", "postmaster.pid")) as file:
            return int(file.readline())

    @contextlib.contextmanager
    def frozen(self):
        """Stops all processes of the server for a while. Its connections stay open, and nobody answers."""
        postmaster = self.postmaster()
        os.kill(postmaster, signal.SIGSTOP)
        processes = [*children(postmaster), postmaster]
        try:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGSTOP)
            yield
        finally:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    def kill(self):
        """Ends the server and all its processes as a power cut would."""
        postmaster = self.postmaster()
        # Stopped, it starts no more processes, and ends none.
        os.kill(postmaster, signal.SIGSTOP)
        for process in [*children(postmaster), postmaster]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def stop(self):
        self.script.stdin.close()
        self.script.wait()


def children(parent):
    """The processes that this one has started."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = pathlib.Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            # The name in parentheses may hold anything.
            if int(stat.rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry))
    return found


class Replicated:
    """A primary and two standbys. A commit is acknowledged when one of the standbys has it, too."""

    def __init__(self):
        # A standby that has lost its primary looks for the new one at once, not every five seconds.
        settings = {"synchronous_standby_names": "ANY 1 (a, b, c)", "wal_retrieve_retry_interval": "100ms"}
        configuration = "\n".join(f"{name} = '{value}'" for name, value in settings.items())
        self.primary = Postgres("a", configuration=configuration)
        self.standbys = [Postgres(name, primary=self.primary) for name in "bc"]
        self.servers = [self.primary, *self.standbys]
        self.wait_for_standbys(2)

    @property
    def url(self):
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"postgres://postgres@{hosts}/postgres?sslmode=disable&target_session_attrs=read-write"

    def wait_for_standbys(self, count):
        query = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'quorum'"
        support.wait_until(lambda: self.primary.execute(query) == str(count), "the standbys follow")

    def fail_over(self):
        """Kills the primary, and promotes the standby that has received most: it has all that was acknowledged."""
        self.primary.kill()
        # What the primary had sent is still being received.
        streaming = "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'"
        for standby in self.standbys:
            support.wait_until(lambda: standby.execute(streaming) == "0", "the standby has lost its primary")
        received = "SELECT coalesce(pg_last_wal_receive_lsn(), '0/0') - '0/0'::pg_lsn"
        self.standbys.sort(key=lambda server: int(server.execute(received)))
        self.primary = self.standbys.pop()
        for standby in self.standbys:
            address = f"host=127.0.0.1 port={self.primary.port} user=postgres application_name={standby.name}"
            standby.execute(f"ALTER SYSTEM SET primary_conninfo = '{address}'")
            standby.execute("SELECT pg_reload_conf()")
        self.primary.execute("SELECT pg_promote()")

    def stop(self):
        for server in self.servers:
            server.stop()


class OnStore(Server):
    """A server without a directory."""

    def __init__(self, url, arguments=()):
        self.arguments = ["--store", url, *arguments]
        self.directory = None
        self.start()

    def health(self, check="ready"):
        """The status and the body of a health check."""
        try:
            with urllib.request.urlopen(f"{self.endpoint}/_zenobe/health/{check}") as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def status(self):
        """What `zenobe status` prints."""
        command = [binary(), "status", "--endpoint", self.endpoint]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
