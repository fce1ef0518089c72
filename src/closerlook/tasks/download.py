"""Download corpora from their official sources; each file is verified before it is put in its place."""

from __future__ import annotations

import hashlib
import os
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import HTTPError
from urllib.parse import urlsplit

from closerlook.errors import CloserLookError, WorkError
from closerlook.tasks.catalogue import Entry, Remote
from closerlook.tasks.readers import Options, read_files

TIMEOUT = 30.0  # seconds to wait for the next bytes
CHUNK = 1 << 16

Progress = Callable[[str, int, int | None], None]
"""A function that is called with the address, the bytes received, and the total if the server states it."""


def download_corpus(
    entry: Entry, data: str | Path, *, mirror: str | None = None, progress: Progress | None = None
) -> list[Path]:
    """The paths of the entry's files in the data folder, after a download of those that are missing or wrong.

    The list is empty for a built-in task. mirror: a server with the same paths as the official sources, such as
    'http://mirror.example'.
    """
    folder = Path(data)
    paths: list[Path] = []
    for remote in entry.corpus.remotes:
        paths += _present_files(entry, remote, folder) or _download(remote, folder, mirror, progress)
    return paths


def _present_files(entry: Entry, remote: Remote, folder: Path) -> list[Path]:
    """The correct files that are in the folder already: the remote's targets, or other files with the same content."""
    candidates = [remote.targets]
    if remote.content:
        candidates += [(f,) for files in entry.corpus.files.values() if set(files) & set(remote.targets) for f in files]
    for files in candidates:
        paths = [folder / file for file in files]
        if all(map(os.path.isfile, paths)) and _are_correct(remote, paths):
            return paths
    return []


def _are_correct(remote: Remote, paths: Sequence[Path]) -> bool:
    try:
        parts = [path.read_bytes() for path in paths]
        body = b"".join(parts)
        _check_digest(remote, body)
        _check_content(remote, paths[0])
    except (OSError, CloserLookError):
        return False
    return _cut(body, remote.cut) == parts


def _download(remote: Remote, folder: Path, mirror: str | None, progress: Progress | None) -> list[Path]:
    """The remote's targets, downloaded to a temporary folder and moved to their places once all checks have passed."""
    url = remote.url if mirror is None else mirror.rstrip("/") + urlsplit(remote.url).path
    targets = [folder / target for target in remote.targets]
    try:
        body = _download_bytes(url, progress)
        _check_digest(remote, body)
        parent = targets[0].parent
        parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=parent, prefix=".download-") as temporary:
            parts = [Path(temporary) / target.name for target in targets]
            for part, content in zip(parts, _cut(body, remote.cut), strict=True):
                part.write_bytes(content)
            _check_content(remote, parts[0])
            for part, target in zip(parts, targets, strict=True):
                os.replace(part, target)
    except (OSError, HTTPException, ValueError, CloserLookError) as error:
        paths = " and ".join(map(str, targets))
        cut = f", cut after {remote.cut} sentences" if remote.cut else ""
        raise WorkError(f"{url}: {error}; to download by hand, save {remote.url} as {paths}{cut}") from None
    return targets


def _download_bytes(url: str, progress: Progress | None) -> bytes:
    if urlsplit(url).scheme not in {"http", "https"}:
        raise WorkError("not an http or https address")
    body = bytearray()
    try:
        response = urllib.request.urlopen(url, timeout=TIMEOUT)  # noqa: S310 - the scheme is checked above
    except HTTPError as refused:
        with refused:  # closes the connection
            raise WorkError(f"the server answers {refused.code} {refused.reason}") from None
    with response:
        expected: int | None = response.length
        while chunk := response.read(CHUNK):
            body += chunk
            if progress is not None:
                progress(url, len(body), expected)
    if expected not in {None, len(body)}:
        raise WorkError(f"received {len(body)} bytes, expected {expected}: the connection broke")
    return bytes(body)


def _check_digest(remote: Remote, body: bytes) -> None:
    for digest in remote.digests:
        algorithm, _, expected = digest.partition(":")
        if hashlib.new(algorithm, body, usedforsecurity=False).hexdigest() == expected:
            return
    if remote.digests:
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        raise WorkError(
            f"the file has digest {digest}, expected {remote.digests[0]}: the source may have released a newer file"
        )


def _check_content(remote: Remote, path: Path) -> None:
    for label, expected in remote.content.items():
        task = read_files({"train": path}, name=path.stem, options=Options(label=label))
        content = task.split_hash(task.split("train"))
        if content != expected:
            raise WorkError(f"the {label} content has hash {content}, expected {expected}: the source may have changed")


def _cut(body: bytes, sentences: int | None) -> list[bytes]:
    """The body in one piece, or cut in two after that many sentences (each ends with a blank line)."""
    if sentences is None:
        return [body]
    pieces = body.split(b"\n\n", sentences)
    head = b"".join(piece + b"\n\n" for piece in pieces[:sentences])
    return [head, *pieces[sentences:]]
