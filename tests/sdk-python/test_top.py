"""`zenobe top` on a terminal: it refreshes, sorts by key, fits the window, and leaves the terminal as it was."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

import support
from server import binary
from support import create_table, put

PATIENCE_SECONDS = 60
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Top:
    def __init__(self, endpoint, rows=24, columns=90):
        self.screen, self.follower = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.follower)
        self.process = subprocess.Popen(
            [binary(), "top", "--endpoint", endpoint, "--interval", "0.2"],
            stdin=self.follower, stdout=self.follower, stderr=self.follower, preexec_fn=self.own_terminal,
        )
        self.seen = b""
        self.expect(ENTER)

    def own_terminal(self):
        os.setsid()
        fcntl.ioctl(self.follower, termios.TIOCSCTTY, 0)

    def resize(self, rows, columns):
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, text):
        os.write(self.screen, text)

    def expect(self, text):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self.seen:
            ready, _, _ = select.select([self.screen], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{text!r} does not come after {self.seen!r}"
            self.seen += os.read(self.screen, 65536)
        before, _, self.seen = self.seen.partition(text)
        return before

    def frame(self):
        """The lines of the next whole frame."""
        self.expect(b"\x1b[H")
        frame = self.expect(b"\x1b[J").replace(b"\x1b[K", b"").decode()
        # The terminal adds carriage returns of its own.
        return frame.replace("\r", "").split("\n")

    def ended(self):
        self.expect(LEAVE)
        assert self.process.wait(PATIENCE_SECONDS) == 0
        assert termios.tcgetattr(self.follower) == self.before, "the terminal is as it was"


@pytest.fixture
def top(memory_server):
    opened = []

    def open_top():
        opened.append(Top(memory_server.endpoint))
        return opened[-1]

    yield open_top
    for it in opened:
        it.process.kill()
        it.process.wait()
        os.close(it.screen)
        os.close(it.follower)


def test_it_shows_tables_and_keys_and_quits(memory_server, top):
    dynamodb = support.client(memory_server.endpoint)
    table = create_table(dynamodb, keys="pk:S")
    for _ in range(50):
        put(dynamodb, table, pk="a-key-that-is-hot")
    screen = top()
    frame = screen.frame()
    assert any(line.startswith("OPERATION") for line in frame)
    while not any("pk=a-key-that-is-hot" in line for line in frame):
        frame = screen.frame()
    assert len(frame) <= 24
    assert all(len(line) <= 90 for line in frame)
    screen.send(b"n")
    frame = screen.frame()
    screen.resize(12, 60)
    while len(frame) > 12:
        frame = screen.frame()
    assert all(len(line) <= 60 for line in frame)
    screen.send(b"q")
    screen.ended()


@pytest.mark.parametrize("how", ["control-c", "signal"])
def test_it_leaves_the_terminal_as_it_was(top, how):
    screen = top()
    screen.frame()
    if how == "control-c":
        screen.send(b"\x03")
    else:
        screen.process.send_signal(signal.SIGTERM)
    screen.ended()
