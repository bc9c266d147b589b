"""An S3-compatible server on loopback, and a proxy before it that has bad days on request."""

import http.client
import http.server
import threading

import boto3
from moto.server import ThreadedMotoServer

# What S3 answers: a status, a code and a message.
ERRORS = {
    "throttle": (503, "SlowDown", "Reduce your request rate."),
    "deny": (403, "AccessDenied", "Access Denied"),
}
ACCESS = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}


class ObjectStore:
    def __init__(self):
        self.moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.moto.start()
        host, port = self.moto.get_host_and_port()
        self.proxy = Proxy((host, port))
        self.s3 = boto3.client("s3", endpoint_url=f"http://{host}:{port}", **ACCESS)

    @property
    def endpoint(self):
        return self.proxy.endpoint

    def close(self):
        self.proxy.close()
        self.moto.stop()


class Proxy:
    """Passes requests on. `throttled`, `cut` and `corrupted` are how many of the next requests for objects to answer with
    SlowDown, to break off in the middle, or to pass on with another body; `hold` makes requests for objects beyond the first
    so many wait to be released; while it is `away`, no request is answered, and while it is `closed`, every one is denied.
    `asked` has the methods and paths of the requests for objects that it did not turn away."""

    def __init__(self, target):
        self.target = target
        self.throttled = self.cut = self.corrupted = 0
        self.hold = None
        self.away = self.closed = False
        self.refused = self.reads = 0
        self.asked = []
        self.lock = threading.Lock()
        self.released = threading.Event()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                proxy.answer(self)

            do_PUT = do_POST = do_HEAD = do_DELETE = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def hold_after(self, count):
        """Holds the requests for objects after so many more."""
        with self.lock:
            self.reads, self.hold = 0, count

    def holds(self):
        """Whether a request is held."""
        return self.hold is not None and self.reads > self.hold

    def release(self):
        """Answers what it has held, and holds nothing more."""
        with self.lock:
            self.hold = None
            held, self.released = self.released, threading.Event()
        held.set()

    def fault(self, method, path):
        """What goes wrong with this request."""
        is_object = path.split("?")[0].strip("/").count("/") > 0
        with self.lock:
            if self.away:
                self.refused += 1
                return "away"
            if self.closed:
                return "deny"
            if not is_object:
                return None
            self.reads += 1
            self.asked.append((method, path.split("?")[0]))
            if self.hold is not None and self.reads > self.hold:
                return "hold"
            if self.throttled:
                self.throttled -= 1
                return "throttle"
            if self.cut:
                self.cut -= 1
                return "cut"
            if self.corrupted and method == "PUT":
                self.corrupted -= 1
                return "corrupt"
            return None

    def answer(self, request):
        released = self.released
        fault = self.fault(request.command, request.path)
        length = int(request.headers.get("Content-Length", 0))
        if fault in ERRORS:
            request.rfile.read(length)
            status, code, message = ERRORS[fault]
            body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
            request.send_response(status)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)
            return
        if fault == "away":
            request.close_connection = True
            request.connection.close()
            return
        if fault == "hold":
            released.wait(60)
        onward = http.client.HTTPConnection(*self.target)
        headers = {name: value for name, value in request.headers.items() if name.lower() != "connection"}
        body = request.rfile.read(length)
        if fault == "corrupt":
            body = body[:-1] + b"!"
        onward.request(request.command, request.path, body, headers)
        response = onward.getresponse()
        body = response.read()
        onward.close()
        request.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                request.send_header(name, value)
        # The answer to HEAD has the length of what it leaves out.
        length = response.getheader("Content-Length", "0") if request.command == "HEAD" else str(len(body))
        request.send_header("Content-Length", length)
        request.end_headers()
        try:
            request.wfile.write(body[: len(body) // 2] if fault == "cut" else body)
        except OSError:
            return
        if fault == "cut":
            request.close_connection = True
            request.connection.close()

    def close(self):
        self.release()
        self.server.shutdown()
        self.server.server_close()
