"""A server process that keeps everything in memory."""

import http.client
import json
import os
import re
import subprocess
import threading
import urllib.parse

from .binary import find_binary

ADDRESS = re.compile(r"is listening on (http://\S+:(\d+))")
START_SECONDS_MAX = 30
# After a restart the port is the former one; another process may hold it for a moment.
START_ATTEMPTS_MAX = 5


CONTROL_SECONDS_MAX = 10


class StartError(RuntimeError):
    """The server did not start. The message holds what it said."""


class ControlError(RuntimeError):
    """The server refused what a test wanted of it. The message holds why."""


class Database:
    """Where a database is served, and what a test may do to it."""

    region = "us-east-1"
    access_key_id = "zenobe"
    secret_access_key = "zenobe"
    endpoint = None

    @property
    def client_settings(self):
        """Keyword arguments for `boto3.client` and `boto3.resource`."""
        return {
            "endpoint_url": self.endpoint,
            "region_name": self.region,
            "aws_access_key_id": self.access_key_id,
            "aws_secret_access_key": self.secret_access_key,
        }

    @property
    def environment(self):
        """Variables that make any AWS SDK use this server, also for streams, which have a variable of their own."""
        return {
            "AWS_ENDPOINT_URL_DYNAMODB": self.endpoint,
            "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
        }

    def reset(self):
        """An empty database at the same endpoint. Existing clients keep working."""
        self._control("POST", "reset")

    def snapshot(self, name):
        """Remembers the whole database under a name."""
        self._control("POST", "snapshots", {"name": name})

    def restore(self, name):
        """Returns to a snapshot. Existing clients keep working."""
        self._control("POST", "restore", {"snapshot": name})

    def fork(self, snapshot=None):
        """A copy of the database, or of a snapshot, at an endpoint of its own, until `stop`."""
        return Fork(self, self._control("POST", "forks", {"snapshot": snapshot} if snapshot else {}))

    def fault(self, rule):
        """Makes requests fail, wait or read old data: `fault("kind=throttle table=Orders rate=0.1")`. Gone after a reset."""
        return self._control("POST", "faults", {"rule": rule})["id"]

    def _control(self, method, path, body=None):
        address = urllib.parse.urlsplit(self.endpoint).netloc
        connection = http.client.HTTPConnection(address, timeout=CONTROL_SECONDS_MAX)
        try:
            connection.request(method, f"/_zenobe/test/{path}", json.dumps(body or {}))
            response = connection.getresponse()
            answer = json.loads(response.read() or "{}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ControlError(f"{self.endpoint} cannot be asked for {path}: {error}") from error
        finally:
            connection.close()
        if response.status != 200:
            raise ControlError(answer.get("error", f"{self.endpoint} answered {response.status}"))
        return answer


class Fork(Database):
    """A copy of a database. It ends with `stop`, with its `with` block, or with the server."""

    def __init__(self, origin, described):
        self._origin = origin
        self._id = described["id"]
        self.endpoint = described["endpoint"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._origin._control("DELETE", f"forks/{self._id}")


class Server(Database):
    """Listens on a free port of 127.0.0.1."""

    def __init__(self, binary=None, arguments=()):
        self._binary = binary or find_binary()
        self._arguments = list(arguments)
        self._port = 0
        self._process = None
        self.endpoint = None
        self._start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def reset(self):
        """An empty database at the same endpoint. Existing clients keep working."""
        try:
            super().reset()
        except ControlError:
            # It has died, or its options keep it from being controlled. A new process is empty as well.
            self.stop()
            self._start()

    def stop(self):
        """Ends the process. There is nothing to save, so it is not asked first."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            self._process = None

    def _start(self):
        for _ in range(START_ATTEMPTS_MAX):
            said = self._start_once()
            if said is None:
                return
            if "in use" not in said:
                break
        raise StartError(f"{self._binary} does not start:\n{said}")

    def _start_once(self):
        """Starts the process. Returns what it said if it ended instead of listening."""
        listen = ["--memory", "--test-control", "--listen", f"127.0.0.1:{self._port}"]
        command = [self._binary, "serve", *listen, *self._arguments]
        # What the developer's own server is configured with must not reach this one.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ZENOBE_")}
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        # A server that says nothing at all must not keep the tests waiting.
        impatience = threading.Timer(START_SECONDS_MAX, self._process.kill)
        impatience.start()
        said = []
        try:
            for line in self._process.stdout:
                said.append(line)
                found = ADDRESS.search(line)
                if found:
                    self.endpoint, self._port = found.group(1), int(found.group(2))
                    # Reads on to the end, so that the server never blocks on a full pipe.
                    threading.Thread(target=_drain, args=(self._process.stdout,), daemon=True).start()
                    return None
        finally:
            impatience.cancel()
        self.stop()
        return "".join(said)


def _drain(stdout):
    try:
        for _ in stdout:
            pass
    except ValueError:
        # Closed by `stop`.
        pass
