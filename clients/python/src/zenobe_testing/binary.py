"""Finding the server: `ZENOBE_BINARY`, then PATH, then a download that is named together with its checksum."""

import hashlib
import os
import pathlib
import shutil
import tarfile
import tempfile
import urllib.request

DOWNLOAD_SECONDS_MAX = 60


class BinaryError(RuntimeError):
    """There is no server to run. The message says what to do."""


def find_binary(environment=os.environ):
    """The path of the server's executable."""
    named = environment.get("ZENOBE_BINARY")
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise BinaryError(f"ZENOBE_BINARY names {named}, which is not an executable file")
        return named
    installed = shutil.which("zenobe", path=environment.get("PATH"))
    if installed:
        return installed
    url = environment.get("ZENOBE_DOWNLOAD_URL")
    if url:
        return str(_download(url, environment))
    raise BinaryError(
        "the zenobe binary was not found: install it, name it in ZENOBE_BINARY, or name a release archive in "
        "ZENOBE_DOWNLOAD_URL and its checksum in ZENOBE_DOWNLOAD_SHA256"
    )


def _download(url, environment):
    """Downloads once per checksum; what does not have the checksum is never kept."""
    expected = environment.get("ZENOBE_DOWNLOAD_SHA256", "").lower()
    if len(expected) != 64:
        raise BinaryError(f"ZENOBE_DOWNLOAD_SHA256 must hold the 64 hexadecimal digits of the checksum of {url}")
    kept = _cache(environment) / expected / "zenobe"
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
        archive = pathlib.Path(scratch) / "download"
        try:
            with urllib.request.urlopen(url, timeout=DOWNLOAD_SECONDS_MAX) as answer, open(archive, "wb") as file:
                shutil.copyfileobj(answer, file)
        except OSError as error:
            raise BinaryError(f"cannot download {url}: {error}") from error
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != expected:
            raise BinaryError(f"{url} has the checksum {found}, and ZENOBE_DOWNLOAD_SHA256 asks for {expected}")
        binary = _unpacked(archive, pathlib.Path(scratch), url)
        binary.chmod(0o755)
        # Another process may have been faster; it renamed the same bytes.
        os.replace(binary, kept)
    return kept


def _unpacked(archive, scratch, url):
    """The binary in a release archive, or the download itself if it is no archive."""
    if not tarfile.is_tarfile(archive):
        return archive
    with tarfile.open(archive) as members:
        for member in members:
            if member.isfile() and pathlib.PurePosixPath(member.name).name == "zenobe":
                binary = scratch / "zenobe"
                with members.extractfile(member) as source, open(binary, "wb") as file:
                    shutil.copyfileobj(source, file)
                return binary
    raise BinaryError(f"the archive {url} holds no file zenobe")


def _cache(environment):
    base = environment.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "zenobe" / "binaries"
