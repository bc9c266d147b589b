"""`zenobe sql` on a terminal: editing, completion, history, paging and cancelling."""

import fcntl
import http.server
import json
import os
import pty
import re
import select
import stat
import struct
import subprocess
import termios
import threading
import time

import pytest

from server import binary
from support import create_table, n, put, s

PATIENCE_SECONDS = 60
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")


class Terminal:
    def __init__(self, endpoint, home, columns=100):
        self.screen, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = os.environ | {
            "HOME": str(home), "XDG_STATE_HOME": "", "TERM": "xterm", "AWS_ACCESS_KEY_ID": "", "AWS_REGION": "us-east-1",
        }
        self.process = subprocess.Popen(
            [binary(), "sql", "--endpoint", endpoint],
            stdin=follower, stdout=follower, stderr=follower, env=environment, preexec_fn=lambda: own_terminal(follower),
        )
        os.close(follower)
        self.seen = ""
        self.expect("zenobe> ")

    def send(self, text):
        os.write(self.screen, text.encode())

    def expect(self, text):
        """Waits for a text, and returns what came before it since the last one."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self.seen:
            ready, _, _ = select.select([self.screen], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{text!r} does not come after {self.seen!r}"
            try:
                read = os.read(self.screen, 65536)
            except OSError:
                read = b""
            assert read, f"the shell ended before {text!r}: {self.seen!r}"
            self.seen = CONTROL.sub("", self.seen + read.decode())
        before, _, self.seen = self.seen.partition(text)
        return before

    def run(self, line):
        """What a line prints."""
        self.send(line + "\r")
        self.expect("\n")
        return self.expect("zenobe> ")


def own_terminal(follower):
    os.setsid()
    fcntl.ioctl(follower, termios.TIOCSCTTY, 0)


@pytest.fixture
def table(dynamodb):
    name = create_table(dynamodb, keys="pk:S,sk:N")
    for number in range(3):
        put(dynamodb, name, pk="a", sk=number, colour="red")
    return name


@pytest.fixture
def terminal(endpoint, tmp_path):
    opened = Terminal(endpoint, tmp_path)
    yield opened
    opened.process.kill()
    opened.process.wait()


def test_statements_are_typed_completed_and_remembered(terminal, table, tmp_path):
    printed = terminal.run(f"SELECT * FROM \"{table}\" WHERE pk = 'a' AND sk < 2;")
    assert " pk | sk | colour\n----+----+--------\n a  |  0 | red\n a  |  1 | red\n(2 rows, 0.5 units)" in printed
    # Ctrl-C drops what is typed.
    terminal.send("nonsense")
    terminal.expect("nonsense")
    terminal.send("\x03")
    terminal.expect("zenobe> ")
    # Two lines are one statement; Tab knows the keyword, and the attribute that a result has shown.
    terminal.send(f"SELECT sk FROM \"{table}\"\r")
    terminal.expect("     -> ")
    assert "\n  1\n" in terminal.run("WHE\t pk = 'a' AND colo\t = 'red' AND sk = 1;")
    assert "expanded rows are on" in terminal.run("\\x")
    assert "there is no command \\nonsense" in terminal.run("\\nonsense")
    assert "partition key       pk (S)" in terminal.run(f"\\d {table}")
    terminal.send("\x04")
    assert terminal.process.wait(PATIENCE_SECONDS) == 0
    history = tmp_path / ".local/state/zenobe/sql_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "WHERE pk = 'a' AND colour = 'red'" in history.read_text()


def test_long_results_wait_for_the_reader(terminal, dynamodb):
    table = create_table(dynamodb, keys="pk:S,sk:N")
    for start in range(0, 250, 25):
        requests = [{"PutRequest": {"Item": {"pk": s("a"), "sk": n(sk)}}} for sk in range(start, start + 25)]
        dynamodb.batch_write_item(RequestItems={table: requests})
    terminal.send(f"SELECT * FROM \"{table}\" WHERE pk = 'a';\r")
    assert " a  | 99\n" in terminal.expect("-- 100 rows so far: Enter for more, q to stop -- ")
    terminal.send("q\r")
    assert "(100 rows, " in terminal.expect("zenobe> ")


def test_scans_are_warned_of(terminal, table):
    printed = terminal.run(f"SELECT * FROM \"{table}\";")
    assert f"zenobe: warning: this statement scans table {table}: 3 items, " in printed


def test_a_statement_can_be_cancelled(tmp_path):
    asked = threading.Event()

    class Hanging(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["X-Amz-Target"].endswith("ExecuteStatement"):
                asked.set()
                self.rfile.read(1)  # Until the shell has gone.
                return
            body = json.dumps({"TableNames": ["t"], "Table": {"TableName": "t"}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hanging)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    terminal = Terminal(f"http://127.0.0.1:{server.server_port}", tmp_path)
    try:
        terminal.send("DELETE FROM t WHERE pk = 'a';\r")
        assert asked.wait(PATIENCE_SECONDS)
        terminal.send("\x03")
        assert "cancelled" in terminal.expect("zenobe> ")
        assert "(1 table)" in terminal.run("\\d")
        terminal.send("\\q\r")
        assert terminal.process.wait(PATIENCE_SECONDS) == 0
    finally:
        terminal.process.kill()
        terminal.process.wait()
        server.shutdown()
