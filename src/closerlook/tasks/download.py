"""Corpora from their official sources, each file checked before it takes its place."""

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

TIMEOUT = 30.0  # seconds without a byte
CHUNK = 1 << 16

Progress = Callable[[str, int, int | None], None]
"""Called with the address, the bytes so far, and the bytes in all where the server says."""


def get(entry: Entry, data: str | Path, *, mirror: str | None = None, progress: Progress | None = None) -> list[Path]:
    """The entry's files in the data folder, fetched where they are missing or wrong; none for a built-in task.

    mirror: an address that serves the paths of the official sources, say 'http://mirror.example'.
    """
    folder = Path(data)
    paths: list[Path] = []
    for remote in entry.corpus.remotes:
        paths += _kept(entry, remote, folder) or _fetched(remote, folder, mirror, progress)
    return paths


def _kept(entry: Entry, remote: Remote, folder: Path) -> list[Path]:
    """The files already there, if they are right: the remote's targets, or others with the content it is known by."""
    candidates = [remote.targets]
    if remote.content:
        candidates += [(f,) for files in entry.corpus.files.values() if set(files) & set(remote.targets) for f in files]
    for files in candidates:
        paths = [folder / file for file in files]
        if all(map(os.path.isfile, paths)) and _are_right(remote, paths):
            return paths
    return []


def _are_right(remote: Remote, paths: Sequence[Path]) -> bool:
    try:
        parts = [path.read_bytes() for path in paths]
        body = b"".join(parts)
        _check_digest(remote, body)
        _check_content(remote, paths[0])
    except (OSError, CloserLookError):
        return False
    return _cut(body, remote.cut) == parts


def _fetched(remote: Remote, folder: Path, mirror: str | None, progress: Progress | None) -> list[Path]:
    """The remote's targets, written beside their places and moved there once every check has passed."""
    url = remote.url if mirror is None else mirror.rstrip("/") + urlsplit(remote.url).path
    targets = [folder / target for target in remote.targets]
    try:
        body = _fetch(url, progress)
        _check_digest(remote, body)
        home = targets[0].parent
        home.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=home, prefix=".download-") as fresh:
            news = [Path(fresh) / target.name for target in targets]
            for new, part in zip(news, _cut(body, remote.cut), strict=True):
                new.write_bytes(part)
            _check_content(remote, news[0])
            for new, target in zip(news, targets, strict=True):
                os.replace(new, target)
    except (OSError, HTTPException, ValueError, CloserLookError) as error:
        places = " and ".join(map(str, targets))
        cut = f", cut after {remote.cut} sentences" if remote.cut else ""
        raise WorkError(f"{url}: {error}; to do it by hand, place {remote.url} at {places}{cut}") from None
    return targets


def _fetch(url: str, progress: Progress | None) -> bytes:
    if urlsplit(url).scheme not in {"http", "https"}:
        raise WorkError("not an http or https address")
    body = bytearray()
    try:
        response = urllib.request.urlopen(url, timeout=TIMEOUT)  # noqa: S310 - the scheme is checked above
    except HTTPError as refused:
        with refused:  # it holds the connection
            raise WorkError(f"the server answers {refused.code} {refused.reason}") from None
    with response:
        expected: int | None = response.length
        while chunk := response.read(CHUNK):
            body += chunk
            if progress is not None:
                progress(url, len(body), expected)
    if expected not in {None, len(body)}:
        raise WorkError(f"{len(body)} bytes arrived; expected {expected}: the connection broke")
    return bytes(body)


def _check_digest(remote: Remote, body: bytes) -> None:
    for digest in remote.digests:
        algorithm, _, expected = digest.partition(":")
        if hashlib.new(algorithm, body, usedforsecurity=False).hexdigest() == expected:
            return
    if remote.digests:
        found = f"sha256:{hashlib.sha256(body).hexdigest()}"
        raise WorkError(f"{found} arrived; expected {remote.digests[0]}: the source may have released a newer file")


def _check_content(remote: Remote, path: Path) -> None:
    for label, expected in remote.content.items():
        task = read_files({"train": path}, name=path.stem, options=Options(label=label))
        found = task.split_hash(task.split("train"))
        if found != expected:
            raise WorkError(f"{label} content {found} arrived; expected {expected}: the source may have changed")


def _cut(body: bytes, sentences: int | None) -> list[bytes]:
    """The body, or its first sentences (each ends with a blank line) and the rest."""
    if sentences is None:
        return [body]
    pieces = body.split(b"\n\n", sentences)
    head = b"".join(piece + b"\n\n" for piece in pieces[:sentences])
    return [head, *pieces[sentences:]]
