"""A load balancer: sends each request to a server that says it is ready."""

import http.client
import http.server
import itertools
import select
import threading
import time

CHECK_SECONDS = 0.1


class Balancer:
    def __init__(self, ports):
        self.ports = ports
        self.ready = set()
        self.served = {port: 0 for port in ports}
        self._turns = itertools.count()
        self._local = threading.local()
        self._is_closed = False
        balancer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # An answer is written in two pieces, and the second must not wait for an acknowledgement of the first.
            disable_nagle_algorithm = True

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers, answer = balancer.forward(self.path, dict(self.headers), body)
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in ("connection", "content-length"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        for port in ports:
            threading.Thread(target=self._check, args=(port,), daemon=True).start()

    def forward(self, path, headers, body):
        """Once: what fails is the client's to see."""
        ready = sorted(self.ready)
        if not ready:
            return 502, [], b"{}"
        port = ready[next(self._turns) % len(ready)]
        connection = self._connection(port)
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        received = answer.read()
        self.served[port] += 1
        return answer.status, answer.getheaders(), received

    def _connection(self, port):
        """A connection that is open, as far as can be seen."""
        connections = self._local.__dict__.setdefault("connections", {})
        connection = connections.setdefault(port, http.client.HTTPConnection("127.0.0.1", port, timeout=60))
        if connection.sock and select.select([connection.sock], [], [], 0)[0]:
            connection.close()
        return connection

    def _check(self, port):
        while not self._is_closed:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/_zenobe/health/ready")
                is_ready = connection.getresponse().status == 200
                connection.close()
            except OSError:
                is_ready = False
            (self.ready.add if is_ready else self.ready.discard)(port)
            time.sleep(CHECK_SECONDS)

    def close(self):
        self._is_closed = True
        self._server.shutdown()
