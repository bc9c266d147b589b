"""A server process of the binary under test."""

import os
import pathlib
import re
import subprocess
import threading

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 30


def binary():
    """The server's executable: `ZENOBE_BINARY`, else the newest of the workspace's own builds."""
    named = os.environ.get("ZENOBE_BINARY")
    if named:
        return named
    target = pathlib.Path(__file__).resolve().parents[2] / "target"
    built = [path for path in (target / "release/zenobe", target / "debug/zenobe") if path.exists()]
    if not built:
        raise RuntimeError("no server: set ZENOBE_BINARY, or build one with `cargo xtask serve`")
    return str(max(built, key=lambda path: path.stat().st_mtime))


class Server:
    """Starts on a free port; `endpoint` is what it printed. Without a data directory it keeps nothing."""

    def __init__(self, data=None, directory=None, arguments=()):
        self.arguments = [*(["--data", str(data)] if data else ["--memory"]), *arguments]
        self.directory = directory
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [binary(), "serve", "--listen", "127.0.0.1:0", *self.arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=self.directory,
        )
        self.output = []
        self.endpoint = None
        self._ready = threading.Event()
        follow = (self.process.stdout, self.output, self._ready)
        threading.Thread(target=self._follow, args=follow, daemon=True).start()
        self._ready.wait(START_SECONDS_MAX)
        if self.endpoint is None:
            self.kill()
            raise RuntimeError("the server does not start:\n" + "".join(self.output))

    def _follow(self, stdout, output, ready):
        # Reads to the end, so that the server never blocks on a full pipe. Given its own process, because a killed server's output
        # may end only after the next server has been started.
        for line in stdout:
            output.append(line)
            found = ADDRESS.search(line)
            if found and not ready.is_set():
                self.endpoint = found.group()
                ready.set()
        ready.set()

    def stop(self):
        self.process.terminate()
        return self.process.wait(STOP_SECONDS_MAX)

    def kill(self):
        self.process.kill()
        self.process.wait()
