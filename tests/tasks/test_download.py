"""Downloads, from a real server on this machine: right files, wrong ones, broken connections; nothing half-written."""

import hashlib
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from closerlook.errors import WorkError
from closerlook.tasks.catalogue import CATALOGUE, Corpus, Entry, Remote, list_tasks, load_catalogue_task
from closerlook.tasks.download import LARGEST, download_corpus
from closerlook.tasks.readers import Options, read_task

DATA = Path(os.environ.get("CLOSERLOOK_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no corpora: name their folder with CLOSERLOOK_DATA")

SENTENCES = [f"1\t{word}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n".encode() for word in ("Rain", "Snow", "Hail")]
BODY = b"".join(SENTENCES)


@dataclass
class Site:
    """A running server: its content by path, how many bytes it withholds, and the requests it received.

    redirects: other addresses by path. stated: the size that it states, if not the true one.
    """

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    withheld: int = 0
    chunked: bool = False
    requests: list[str] = field(default_factory=list)
    redirects: dict[str, str] = field(default_factory=dict)
    stated: int | None = None


@contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    """A server on this machine; tls: for https."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.requests.append(self.path)
            if self.path in site.redirects:
                self.send_response(302)
                self.send_header("Location", site.redirects[self.path])
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = site.files.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            if site.chunked:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
                self.wfile.write(b"0\r\n\r\n")
            else:
                self.send_header("Content-Length", str(len(body) if site.stated is None else site.stated))
                self.end_headers()
                self.wfile.write(body[: len(body) - site.withheld])
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    site = Site(f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "*")
    with running() as started:
        yield started


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for this machine, with its key in the same file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl on this machine")
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    options = "req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -days 2 -subj /CN=test"
    address = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(path), "-out", f"{path}.public"]
    subprocess.run([openssl, *options.split(), *address], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(f"{path}.public").read_bytes())
    return path


@pytest.fixture
def secure(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server with https, which this process trusts."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with running(tls) as started:
        yield started


def sha256(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def entry_of(*remotes: Remote, **files: tuple[str, ...]) -> Entry:
    corpus = Corpus("Rain 1.0", "https://rain.example", "MIT", "@misc{rain}", files, remotes)
    return Entry("rain", "token", "part of speech", corpus, Options(label="upos"))


def rain(site: Site, body: bytes = BODY, **changes: object) -> Entry:
    """A corpus of one file, which the site serves."""
    site.files["/rain.conllu"] = body
    remote = Remote(f"{site.address}/rain.conllu", ("rain/train.conllu",), (sha256(BODY),))
    return entry_of(replace(remote, **changes), train=("rain/train.conllu",))  # type: ignore[arg-type]


def everything_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def failure(entry: Entry, folder: Path, **options: str) -> str:
    """The message of a download that fails, which leaves every file as it was and none besides."""
    before = {name: (folder / name).read_bytes() for name in everything_in(folder)}
    with pytest.raises(WorkError) as caught:
        download_corpus(entry, folder, mirror=options.get("mirror"))
    assert {name: (folder / name).read_bytes() for name in everything_in(folder)} == before
    assert not list(folder.rglob(".download-*"))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_is_fetched_and_takes_its_place(site: Site, tmp_path: Path) -> None:
    assert download_corpus(rain(site), tmp_path) == [tmp_path / "rain/train.conllu"]
    assert (tmp_path / "rain/train.conllu").read_bytes() == BODY
    assert everything_in(tmp_path) == ["rain/train.conllu"]
    assert [path.name for path in (tmp_path / "rain").iterdir()] == ["train.conllu"]


def test_progress_is_called_for_every_chunk(site: Site, tmp_path: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    download_corpus(rain(site), tmp_path, progress=lambda *args: calls.append(args))
    assert calls[-1] == (f"{site.address}/rain.conllu", len(BODY), len(BODY))


def test_a_right_file_is_kept_and_a_wrong_one_replaced(site: Site, tmp_path: Path) -> None:
    download_corpus(rain(site), tmp_path)
    assert download_corpus(rain(site), tmp_path) == [tmp_path / "rain/train.conllu"]
    assert len(site.requests) == 1
    (tmp_path / "rain/train.conllu").write_bytes(BODY[:-9])
    download_corpus(rain(site), tmp_path)
    assert len(site.requests) == 2
    assert (tmp_path / "rain/train.conllu").read_bytes() == BODY


def test_any_of_several_digests_will_do(site: Site, tmp_path: Path) -> None:
    md5 = "md5:" + hashlib.md5(BODY, usedforsecurity=False).hexdigest()
    download_corpus(rain(site, digests=(sha256(b"other"), md5)), tmp_path)
    assert everything_in(tmp_path) == ["rain/train.conllu"]


def test_one_file_is_cut_in_two_after_some_sentences(site: Site, tmp_path: Path) -> None:
    places = ("rain/train.conllu", "rain/test.conllu")
    entry = rain(site, targets=places, cut=2)
    assert download_corpus(entry, tmp_path) == [tmp_path / place for place in places]
    assert (tmp_path / places[0]).read_bytes() == SENTENCES[0] + SENTENCES[1]
    assert (tmp_path / places[1]).read_bytes() == SENTENCES[2]
    download_corpus(entry, tmp_path)
    assert len(site.requests) == 1
    (tmp_path / places[0]).write_bytes(SENTENCES[0])  # the same bytes in all, cut elsewhere
    (tmp_path / places[1]).write_bytes(SENTENCES[1] + SENTENCES[2])
    download_corpus(entry, tmp_path)
    assert len(site.requests) == 2
    assert (tmp_path / places[1]).read_bytes() == SENTENCES[2]


def test_a_mirror_serves_the_paths_of_the_source(site: Site, tmp_path: Path) -> None:
    entry = rain(site, url="https://rain.example/rain.conllu")
    site.files["/corpora/rain.conllu"] = BODY
    download_corpus(entry, tmp_path, mirror=f"{site.address}/corpora/")
    assert site.requests == ["/corpora/rain.conllu"]


def test_a_file_without_digest_is_known_by_its_content(site: Site, tmp_path: Path) -> None:
    (tmp_path / "t.conllu").write_bytes(BODY)
    task = read_task(tmp_path / "t.conllu")
    content = {"upos": task.split_hash(task.split("train"))}
    folder = tmp_path / "data"
    download_corpus(rain(site, b"# a comment\n" + BODY, digests=(), content=content), folder)
    assert everything_in(folder) == ["rain/train.conllu"]
    (folder / "rain/train.conllu").unlink()
    message = failure(rain(site, BODY.replace(b"NOUN", b"VERB"), digests=(), content=content), folder)
    assert f", expected {content['upos']}: the source may have changed; to download by hand" in message
    message = failure(rain(site, b"<html>", digests=(), content=content), folder)
    assert "train.conllu, line 1: 1 columns; expected 10" in message


def test_an_alternative_with_the_content_is_kept(site: Site, tmp_path: Path) -> None:
    record = '{"words": ["Rain"], "upos": ["NOUN"]}'
    (tmp_path / "train.jsonl").write_text(record)
    task = read_task(tmp_path / "train.jsonl", label="upos")
    content = {"upos": task.split_hash(task.split("train"))}
    entry = rain(site, SENTENCES[0], digests=(), content=content, targets=("train.conllu",))
    entry = replace(entry, corpus=replace(entry.corpus, files={"train": ("train.conllu", "train.jsonl")}))
    assert download_corpus(entry, tmp_path) == [tmp_path / "train.jsonl"]
    assert site.requests == []
    (tmp_path / "train.jsonl").write_text(record.replace("Rain", "Snow"))
    assert download_corpus(entry, tmp_path) == [tmp_path / "train.conllu"]


def test_a_wrong_digest_is_refused(site: Site, tmp_path: Path) -> None:
    assert failure(rain(site, b"other"), tmp_path) == (
        f"{site.address}/rain.conllu: the file has digest {sha256(b'other')}, expected {sha256(BODY)}:"
        " the source may have released a newer file; to download by hand,"
        f" save {site.address}/rain.conllu as {tmp_path / 'rain/train.conllu'}"
    )


def test_a_failed_download_leaves_an_older_file_as_it_was(site: Site, tmp_path: Path) -> None:
    (tmp_path / "rain").mkdir()
    (tmp_path / "rain/train.conllu").write_bytes(b"older")
    failure(rain(site, b"other"), tmp_path)


def test_a_truncated_body_is_refused(site: Site, tmp_path: Path) -> None:
    site.withheld = 7
    message = failure(rain(site, digests=()), tmp_path)
    assert f"received {len(BODY) - 7} bytes, expected {len(BODY)}: the connection broke; to download by hand" in message


def test_https_is_used_and_redirects_within_it_are_followed(secure: Site, tmp_path: Path) -> None:
    entry = rain(secure, url=f"{secure.address}/old.conllu")
    secure.redirects["/old.conllu"] = f"{secure.address}/rain.conllu"
    download_corpus(entry, tmp_path)
    assert secure.requests == ["/old.conllu", "/rain.conllu"]
    assert (tmp_path / "rain/train.conllu").read_bytes() == BODY


def test_an_unknown_certificate_is_refused(secure: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    assert "certificate verify failed" in failure(rain(secure), tmp_path)
    assert secure.requests == []


def test_a_redirect_from_https_to_http_is_refused(secure: Site, site: Site, tmp_path: Path) -> None:
    entry = rain(secure)
    for address in (f"{site.address}/rain.conllu", "http://rain.example/", "ftp://rain.example/", "file:///etc/passwd"):
        secure.redirects["/rain.conllu"] = address
        message = failure(entry, tmp_path)
        assert f"{address!a} is not an https address" in message or f"to url {address!a} is not allowed" in message
    assert site.requests == []


def test_a_redirect_from_this_machine_to_http_elsewhere_is_refused(site: Site, tmp_path: Path) -> None:
    site.redirects["/rain.conllu"] = "http://rain.example/rain.conllu"
    assert "'http://rain.example/rain.conllu' is not an https address" in failure(rain(site), tmp_path)


def test_a_file_of_unknown_size_is_refused(site: Site, tmp_path: Path) -> None:
    site.chunked = True
    assert "the server offers a file of unknown size; expected a stated size" in failure(rain(site), tmp_path)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(site: Site, tmp_path: Path) -> None:
    site.stated = LARGEST + 1
    message = failure(rain(site), tmp_path)
    assert "the server offers a file of 50,000,001 bytes; expected a stated size of at most 50,000,000" in message


def test_no_more_is_read_than_the_server_states(site: Site, tmp_path: Path) -> None:
    site.stated = 10
    assert f"the file has digest {sha256(BODY[:10])}" in failure(rain(site), tmp_path)


def test_every_file_of_the_catalogue_has_a_digest_or_says_why_not() -> None:
    remotes = {remote.url: remote for entry in list_tasks() for remote in entry.corpus.remotes}
    assert len(remotes) > 5
    for remote in remotes.values():
        assert remote.url.startswith("https://")
        assert bool(remote.digests) != bool(remote.content and remote.no_digest)


def test_a_missing_file_is_refused(site: Site, tmp_path: Path) -> None:
    entry = rain(site)
    site.files.clear()
    assert failure(entry, tmp_path).startswith(
        f"{site.address}/rain.conllu: the server answers 404 Not Found; to download by hand"
    )


def test_no_network_says_what_to_place_where(site: Site, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    entry = rain(site, url="https://rain.example/rain.conllu", targets=("a.conllu", "b.conllu"), cut=2)
    message = failure(entry, tmp_path, mirror=f"http://127.0.0.1:{port}")
    assert message.startswith(f"http://127.0.0.1:{port}/rain.conllu: <urlopen error ")
    assert "Connection refused" in message
    assert message.endswith(
        "; to download by hand, save https://rain.example/rain.conllu"
        f" as {tmp_path / 'a.conllu'} and {tmp_path / 'b.conllu'}, cut after 2 sentences"
    )


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/hostname", "ftp://rain.example/rain", "rain.conllu", "http://[", "http://a b/"),
        *("http://rain.example/rain", "http://127.0.0.1.rain.example/rain", "http://127.0.0.1@rain.example/rain"),
    ],
)
def test_only_https_addresses_are_fetched(site: Site, tmp_path: Path, url: str) -> None:
    message = failure(rain(site, url=url), tmp_path)
    assert message.startswith(f"{url}: ")
    assert url == "http://[" or f"{url!a} is not an https address" in message


def test_an_interrupted_download_leaves_nothing(site: Site, tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download_corpus(rain(site), tmp_path, progress=interrupt)
    assert list(tmp_path.rglob("*")) == []


def test_an_interruption_while_writing_leaves_nothing(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        download_corpus(rain(site), tmp_path)
    assert everything_in(tmp_path) == []
    assert not list(tmp_path.rglob(".download-*"))


def test_a_folder_that_cannot_be_made_is_refused(site: Site, tmp_path: Path) -> None:
    (tmp_path / "rain").write_text("a file where the folder should be")
    assert "File exists" in failure(rain(site), tmp_path)


def test_a_built_in_task_needs_no_file(tmp_path: Path) -> None:
    assert download_corpus(CATALOGUE["toy-pos"], tmp_path) == []


@needs_data
@pytest.mark.parametrize("entry", [entry for entry in list_tasks() if entry.corpus.remotes], ids=lambda e: e.name)
def test_every_corpus_comes_out_as_it_is_kept_here(site: Site, tmp_path: Path, entry: Entry) -> None:
    """The real recipes on a mirror of the real files; STREUSLE's train, here only as JSON lines, is kept as such."""
    for remote in entry.corpus.remotes:
        sources = [DATA / target for target in remote.targets]
        if all(source.is_file() for source in sources):
            site.files[urlsplit(remote.url).path] = b"".join(source.read_bytes() for source in sources)
        else:
            alternative = sources[0].with_suffix(".jsonl")
            copy = tmp_path / alternative.relative_to(DATA)
            copy.parent.mkdir()
            copy.write_bytes(alternative.read_bytes())
    paths = download_corpus(entry, tmp_path, mirror=site.address)
    for path in paths:
        assert path.read_bytes() == (DATA / path.relative_to(tmp_path)).read_bytes()
    assert load_catalogue_task(entry.name, tmp_path) == load_catalogue_task(entry.name, DATA)


@needs_data
@pytest.mark.parametrize("entry", [entry for entry in list_tasks() if entry.corpus.remotes], ids=lambda e: e.name)
def test_the_corpora_here_are_right_and_kept(entry: Entry) -> None:
    assert len(download_corpus(entry, DATA, mirror="http://127.0.0.1:9")) == len(entry.corpus.files)
