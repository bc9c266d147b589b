"""A proxy in front of a PostgreSQL that breaks connections where it hurts: at COMMIT."""

import socket
import threading

SENT = b"Q\x00\x00\x00\x0bCOMMIT\x00"
ANSWERED = b"C\x00\x00\x00\x0bCOMMIT\x00"


class Proxy:
    """`fault` is what happens to the next COMMIT, once: "before" cuts the connection before it gets through, "after" when
    it has been carried out, before its answer gets through. "down" cuts every connection for as long as it is set."""

    def __init__(self, port):
        self.target = port
        self.fault = None
        self.struck = 0
        self._lock = threading.Lock()
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def set(self, fault):
        with self._lock:
            self.fault = fault
            doomed = list(self._open) if fault == "down" else []
        for connection in doomed:
            _cut(*connection)

    def close(self):
        self._listener.close()
        self.set("down")

    def _accept(self):
        while True:
            try:
                node, _ = self._listener.accept()
            except OSError:
                return
            if self.fault == "down":
                node.close()
                continue
            store = socket.create_connection(("127.0.0.1", self.target))
            pair = (node, store)
            with self._lock:
                self._open.add(pair)
            for source, sink, mark, fault in [(node, store, SENT, "before"), (store, node, ANSWERED, "after")]:
                threading.Thread(target=self._pump, args=(pair, source, sink, mark, fault), daemon=True).start()

    def _pump(self, pair, source, sink, mark, fault):
        """Statements arrive in one piece or in several, so the end of what came before is kept."""
        tail = b""
        try:
            while data := source.recv(65536):
                seen = tail + data
                if mark in seen and self._strikes(fault):
                    break
                tail = seen[-len(mark) + 1:]
                sink.sendall(data)
        except OSError:
            pass
        with self._lock:
            self._open.discard(pair)
        _cut(*pair)

    def _strikes(self, fault):
        with self._lock:
            if self.fault != fault:
                return False
            self.fault = None
            self.struck += 1
            return True


def _cut(*sockets):
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        one.close()
