"""Where the server comes from, and what is said when there is none."""

import functools
import hashlib
import http.server
import io
import pathlib
import tarfile
import threading

import boto3
import pytest

from zenobe_testing import BinaryError, Server, StartError, find_binary


def executable(path, text="#!/bin/sh\nexit 0\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def downloads(tmp_path):
    """A directory that is served over HTTP, and its address."""
    directory = tmp_path / "downloads"
    directory.mkdir()
    handler = functools.partial(QuietHandler, directory=str(directory))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield directory, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def variables(tmp_path, **more):
    return {"PATH": str(tmp_path / "nowhere"), "XDG_CACHE_HOME": str(tmp_path / "cache"), **more}


def test_a_named_binary_wins_over_the_path(tmp_path):
    named = executable(tmp_path / "named")
    installed = executable(tmp_path / "bin" / "zenobe")
    on_path = variables(tmp_path, PATH=str(installed.parent))
    assert find_binary(on_path) == str(installed)
    assert find_binary(on_path | {"ZENOBE_BINARY": str(named)}) == str(named)


def test_a_named_binary_must_be_executable(tmp_path):
    with pytest.raises(BinaryError, match="not an executable file"):
        find_binary(variables(tmp_path, ZENOBE_BINARY=str(tmp_path / "absent")))


def test_without_a_binary_the_message_says_what_to_do(tmp_path):
    with pytest.raises(BinaryError, match="ZENOBE_BINARY.*ZENOBE_DOWNLOAD_URL.*ZENOBE_DOWNLOAD_SHA256"):
        find_binary(variables(tmp_path))


@pytest.mark.parametrize("is_archive", [True, False])
def test_a_download_is_checked_unpacked_and_kept(tmp_path, downloads, is_archive):
    directory, address = downloads
    content = b"#!/bin/sh\necho downloaded\n"
    file = directory / "zenobe-release"
    if is_archive:
        with tarfile.open(file, "w:gz") as archive:
            for name, data in (("zenobe-1/README.md", b"read me"), ("zenobe-1/zenobe", content)):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    else:
        file.write_bytes(content)
    checksum = hashlib.sha256(file.read_bytes()).hexdigest()
    settings = variables(
        tmp_path, ZENOBE_DOWNLOAD_URL=f"{address}/{file.name}", ZENOBE_DOWNLOAD_SHA256=checksum.upper()
    )
    binary = pathlib.Path(find_binary(settings))
    assert binary.read_bytes() == content
    assert binary.stat().st_mode & 0o111 == 0o111
    file.unlink()
    assert find_binary(settings) == str(binary)


def test_a_download_with_another_checksum_is_refused_and_not_kept(tmp_path, downloads):
    directory, address = downloads
    (directory / "zenobe").write_bytes(b"something else")
    settings = variables(tmp_path, ZENOBE_DOWNLOAD_URL=f"{address}/zenobe", ZENOBE_DOWNLOAD_SHA256="0" * 64)
    for _ in range(2):
        with pytest.raises(BinaryError, match="has the checksum .* asks for 0000"):
            find_binary(settings)


def test_a_download_needs_a_checksum_and_an_answer(tmp_path, downloads):
    _, address = downloads
    settings = variables(tmp_path, ZENOBE_DOWNLOAD_URL=f"{address}/absent")
    with pytest.raises(BinaryError, match="ZENOBE_DOWNLOAD_SHA256 must hold"):
        find_binary(settings)
    with pytest.raises(BinaryError, match="cannot download .*404"):
        find_binary(settings | {"ZENOBE_DOWNLOAD_SHA256": "0" * 64})


def test_a_server_that_does_not_start_is_quoted(tmp_path):
    broken = executable(tmp_path / "broken", "#!/bin/sh\necho the disk is on fire >&2\nexit 3\n")
    with pytest.raises(StartError, match="the disk is on fire"):
        Server(binary=str(broken))
    with pytest.raises(StartError, match="--no-such-option"):
        Server(arguments=["--no-such-option"])


def test_the_environment_configures_no_server(monkeypatch):
    monkeypatch.setenv("ZENOBE_CREDENTIALS", "someone:else")
    monkeypatch.setenv("ZENOBE_REGION", "mars-1")
    with Server() as server:
        client = boto3.client("dynamodb", **server.client_settings)
        assert client.list_tables()["TableNames"] == []


def test_servers_run_side_by_side_and_end(tmp_path):
    with Server() as one, Server() as other:
        assert one.endpoint != other.endpoint
        processes = [one._process, other._process]
    assert all(process.poll() is not None for process in processes)
