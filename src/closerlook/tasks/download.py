"""Download corpora from their official sources; each file is verified before it is put in its place."""

from __future__ import annotations

import hashlib
import os
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO
from urllib.error import HTTPError
from urllib.parse import urlsplit

from closerlook.errors import CloserLookError, WorkError
from closerlook.tasks.catalogue import Entry, Remote
from closerlook.tasks.readers import Options, read_files

TIMEOUT = 30.0  # seconds to wait for the next bytes
CHUNK = 1 << 16
LARGEST = 50_000_000
"""The largest file that is downloaded, in bytes; those of the catalogue have a few million."""

THIS_MACHINE = {"localhost", "127.0.0.1", "::1"}

Progress = Callable[[str, int, int], None]
"""A function that is called with the address, the bytes received, and the bytes in total."""


def download_corpus(
    entry: Entry, data: str | Path, *, mirror: str | None = None, progress: Progress | None = None
) -> list[Path]:
    """The paths of the entry's files in the data folder, after a download of those that are missing or wrong.

    The list is empty for a built-in task. mirror: a server with the same paths as the official sources, such as
    'https://mirror.example'. Only https is used, also after redirects, and http for a server on this machine.
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
        _check_digest(remote, paths)
        _check_content(remote, paths[0])
        parts = [path.read_bytes() for path in paths]
    except (OSError, CloserLookError):
        return False
    return _cut(b"".join(parts), remote.cut) == parts


def _download(remote: Remote, folder: Path, mirror: str | None, progress: Progress | None) -> list[Path]:
    """The remote's targets, downloaded to a temporary folder and moved to their places once all checks have passed."""
    url = remote.url if mirror is None else mirror.rstrip("/") + urlsplit(remote.url).path
    targets = [folder / target for target in remote.targets]
    try:
        with _temporary_folder(targets[0].parent) as temporary:
            part = temporary / "download.part"
            _download_file(url, part, progress)
            _check_digest(remote, [part])
            pieces = [temporary / target.name for target in targets]
            for piece, content in zip(pieces, _cut(part.read_bytes(), remote.cut), strict=True):
                piece.write_bytes(content)
            _check_content(remote, pieces[0])
            for piece, target in zip(pieces, targets, strict=True):
                os.replace(piece, target)
    except (OSError, HTTPException, ValueError, CloserLookError) as error:
        paths = " and ".join(map(str, targets))
        cut = f", cut after {remote.cut} sentences" if remote.cut else ""
        raise WorkError(f"{url}: {error}; to download by hand, save {remote.url} as {paths}{cut}") from None
    return targets


@contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    """A folder in `parent` that is removed at the end; folders that had to be made for it are removed if empty."""
    made = [folder for folder in (parent, *parent.parents) if not folder.exists()]
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=parent, prefix=".download-") as temporary:
            yield Path(temporary)
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to https only; a server on this machine may also redirect to this machine."""

    def redirect_request(  # noqa: PLR0917 - the signature of urllib
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        try:
            _check_address(newurl, local=urlsplit(req.full_url).scheme == "http")
        except (WorkError, ValueError):
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_address(url: str, *, local: bool = True) -> None:
    """Raise WorkError unless the address begins with https. local: http is allowed for a server on this machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (local and parts.scheme == "http" and parts.hostname in THIS_MACHINE):
        raise WorkError(f"{url[:200]!a} is not an https address; http is allowed for a server on this machine only")


def _download_file(url: str, path: Path, progress: Progress | None) -> None:
    """Write the file at that address to `path`. Its size must be stated by the server, and is checked first."""
    _check_address(url)
    opener = urllib.request.build_opener(_Redirects)
    try:
        response = opener.open(url, timeout=TIMEOUT)
    except HTTPError as refused:
        with refused:  # closes the connection
            raise WorkError(f"the server answers {refused.code} {refused.reason}") from None
    with response, path.open("xb") as stream:
        expected: int | None = response.length
        if expected is None or expected > LARGEST:
            size = "of unknown size" if expected is None else f"of {expected:,} bytes"
            raise WorkError(f"the server offers a file {size}; expected a stated size of at most {LARGEST:,} bytes")
        received = 0
        while chunk := response.read(CHUNK):
            received += stream.write(chunk)
            if progress is not None:
                progress(url, received, expected)
    if received != expected:
        raise WorkError(f"received {received} bytes, expected {expected}: the connection broke")


def _check_digest(remote: Remote, paths: Sequence[Path]) -> None:
    """Raise WorkError if the files, one after the other, have none of the accepted digests."""
    for digest in remote.digests:
        algorithm, _, expected = digest.partition(":")
        if _digest(algorithm, paths) == expected:
            return
    if remote.digests:
        found = f"sha256:{_digest('sha256', paths)}"
        raise WorkError(
            f"the file has digest {found}, expected {remote.digests[0]}: the source may have released a newer file"
        )


def _digest(algorithm: str, paths: Sequence[Path]) -> str:
    digest = hashlib.new(algorithm, usedforsecurity=False)
    for path in paths:
        with path.open("rb") as stream:
            while block := stream.read(CHUNK):
                digest.update(block)
    return digest.hexdigest()


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
