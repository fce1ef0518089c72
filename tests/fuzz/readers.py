"""The readers that are fuzzed, each with whole small files as seeds."""

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from closerlook import Space
from closerlook.encoders.source import EncoderInfo, _half_parameters
from closerlook.report.writing import load_study
from closerlook.representations.checked_json import START, fill_checksum
from closerlook.representations.distances import read_distances
from closerlook.representations.points import load_points
from closerlook.study.files import read_result, result_path, write_result
from closerlook.study.plan import read_plan
from closerlook.study.results import load_results
from closerlook.study.spreadsheet import write_csv
from closerlook.tasks.readers import read_task
from closerlook.tuning.settings import TuningSettings
from closerlook.tuning.tuned import FILE as TUNED
from closerlook.tuning.tuned import Snapshot, TuningResult
from tests.report.studies import made_up, write_study
from tests.report.test_page import MANIFEST

SEEDS = Path(__file__).parent / "seeds"
KEY = "ab" * 32


@dataclass(frozen=True)
class Reader:
    """A reader: the whole files it is fuzzed with, and a function that reads a file with the given content.

    wrap: makes the file from what is mutated, such as an archive from one of its members.
    """

    seeds: Callable[[], list[bytes]]
    name: str
    read: Callable[[Path], object]
    wrap: Callable[[bytes], bytes] = bytes


def files(*names: str) -> Callable[[], list[bytes]]:
    return lambda: [(SEEDS / name).read_bytes() for name in names]


def saved_space(suffix: str) -> list[bytes]:
    """A saved space with words and provenance, as the bytes of its file."""
    import tempfile

    X = np.arange(12.0).reshape(6, 2)
    space = Space.from_arrays(X, ["a", "b", "a\0", "b", "c", "c"], words=list("uvwxyz"), encoder="e", layer=2, task="t")
    with tempfile.TemporaryDirectory() as folder:
        return [space.save(Path(folder) / f"s{suffix}").read_bytes()]


def arrays() -> list[bytes]:
    stream = io.BytesIO()
    np.savez(stream, X=np.eye(3), y=np.array(["a", "b", "c"]), X_test=np.eye(3), y_test=np.arange(3))
    packed = io.BytesIO()
    np.savez_compressed(packed, X=np.zeros((4, 2)), y=np.arange(4))
    return [stream.getvalue(), packed.getvalue(), *saved_space(".npz")]


def npy() -> list[bytes]:
    found = []
    for array in (np.eye(3), np.eye(3, dtype=np.float16), np.arange(9).reshape(3, 3), np.array([["a"] * 3] * 3)):
        stream = io.BytesIO()
        np.save(stream, array)
        found.append(stream.getvalue())
    return found


def in_archive(member: bytes) -> bytes:
    """A .npz file with this member as X."""
    labels, stream = io.BytesIO(), io.BytesIO()
    np.save(labels, np.arange(3))
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("X.npy", member)
        archive.writestr("y.npy", labels.getvalue())
    return stream.getvalue()


def headers() -> list[bytes]:
    """The headers of safetensors files, without their length: of a saved space, and of plain tensors."""
    X = {"dtype": "F32", "shape": [6, 2], "data_offsets": [0, 48]}
    y = {"dtype": "I32", "shape": [6], "data_offsets": [48, 72]}
    plain = {"X": X, "y": y, "__metadata__": {"format": "pt"}}
    half = {"w": {"dtype": "BF16", "shape": [4, 3], "data_offsets": [48, 72]}, "v": X}
    saved = saved_space(".safetensors")[0]
    return [saved[8 : 8 + int.from_bytes(saved[:8], "little")], json.dumps(plain).encode(), json.dumps(half).encode()]


def with_length(header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + bytes(72)


def read_cell(path: Path) -> object:
    """What is read from a mutated cell; its checksum is made anew, since otherwise every one would only be damaged."""
    target = result_path(path.parent, KEY)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(with_checksum(path.read_bytes()))
    return read_result(path.parent, KEY)


def cells() -> list[bytes]:
    rows = [
        {"measure": "n_clusters", "value": 3.0, "n": 9},
        {"measure": "minimum_distance", "label": "a", "value": 1.5},
    ]
    result = {"key": KEY, "kind": "geometry", "title": "t", "content": {}, "rows": rows, "payload": {"a": [1, 2]}}
    facts = {"seconds": 0.1, "cpu_seconds": 0.1, "peak_bytes": 1, "host": "h", "threads": 1, "version": "0"}
    with TemporaryDirectory() as folder:
        write_result(Path(folder), result | facts)
        return [result_path(Path(folder), KEY).read_bytes()]


def read_manifest(path: Path) -> object:
    folder = path.parent / "study"
    if not folder.exists():
        write_study(folder, made_up(steps=(), layers=(0,), tasks={"t": ["a", "b"]}))
    (folder / "manifest.json").write_bytes(path.read_bytes())
    return load_study(folder)


def tables() -> list[bytes]:
    stream = io.BytesIO()
    write_csv(made_up(steps=(), layers=(0,), tasks={"=t": ["-a", "b\0"]}).head(12), stream)
    return [stream.getvalue()]


def parquet_tables() -> list[bytes]:
    """The table of a study as another program saves it: without the checksum, which would refuse every mutation."""
    stream = io.BytesIO()
    made_up(steps=(), layers=(0,), tasks={"t": ["a", "b"]}).head(12).to_parquet(stream, index=False)
    return [stream.getvalue()]


def parquet_vectors() -> list[bytes]:
    space = Space.from_arrays(np.arange(12.0).reshape(6, 2), list("abcabc"), words=list("uvwxyz"), task="t")
    with TemporaryDirectory() as folder:
        return [space.to_parquet(Path(folder) / "s.parquet").read_bytes()]


def csv_vectors() -> list[bytes]:
    return [b"label,d0,d1\na,0.5,1\nb,2,3.25\na,-1,4e-3\n", b"text;x;y;label\nlight;1;2;a\nrain;3;4;b\n"]


def runs() -> list[bytes]:
    """A finished fine-tuning run, with its checksum."""
    info = EncoderInfo(layers=2, width=4, window=16, has_cls=True, parameters=9)
    snapshots = (Snapshot(0, 0.0, "f0", {"train": 2.0}, {"train": 0.1}), Snapshot(3, 1.0, "f1", {}, {}, "step-3"))
    settings = TuningSettings(epochs=1, learning_rate=0.1, batch_size=4, probe={"t": "h"}, layers=[2])
    result = TuningResult("e", "f0", info, 9, "t", "h", settings, snapshots, 3, 1.5, "cpu", {"torch": "2"})
    with TemporaryDirectory() as folder:
        result.save(Path(folder))
        return [(Path(folder) / TUNED).read_bytes()]


def read_run(path: Path) -> object:
    """What is read from a mutated run; its checksum is made anew."""
    (path.parent / TUNED).write_bytes(with_checksum(path.read_bytes()))
    return TuningResult.load(path.parent)


def with_checksum(content: bytes) -> bytes:
    """The content with the checksum that it should have, if it begins with one."""
    start = START.match(content)
    return content if start is None else fill_checksum(content, start.start(1))


TEXT_FILES = ("entities/train.txt", "labels/tags.txt", "embeddings/layers/train/2.txt", "provenance/train/2.json")


def text_folders() -> list[bytes]:
    """A text folder of the released DirectProbe code, its files one after the other, separated by NUL."""
    space = Space.from_arrays(np.arange(12.0).reshape(6, 2), list("abcabc"), layer=2, split="train", task="t")
    with TemporaryDirectory() as folder:
        space.save(Path(folder) / "probe")
        return [b"\0".join((Path(folder) / "probe" / name).read_bytes() for name in TEXT_FILES)]


def read_text_folder(path: Path) -> object:
    folder = path.parent / "probe"
    for name, content in zip(TEXT_FILES, path.read_bytes().split(b"\0"), strict=False):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return load_points(folder)


def distances() -> list[bytes]:
    matrix = [[None, 1.5], [1.5, None]]
    table = {"labels": ["a", "b"], "values": matrix, "lower": matrix, "upper": matrix, "statistic": "mean"}
    table |= {"separable": True, "min_points": 1, "excluded": {"a": 1}, "radius": 2.5}
    return [json.dumps({"title": "t", "label_distances": table}).encode()]


def task(label: str | None = None) -> Callable[[Path], object]:
    return lambda path: read_task(path, label=label)


READERS: dict[str, Reader] = {
    "conllu": Reader(files("weather.conllu"), "f.conllu", task()),
    "conllulex": Reader(files("rain.conllulex"), "f.conllulex", task("role")),
    "conll": Reader(files("columns.conll"), "f.conll", task()),
    "trec": Reader(files("questions.label"), "f.label", task()),
    "jsonl": Reader(files("targets.jsonl", "spans.jsonl", "pairs.jsonl"), "f.jsonl", task()),
    "csv": Reader(files("texts.csv"), "f.csv", task()),
    "tsv": Reader(files("words.tsv"), "f.tsv", task()),
    "plan": Reader(files("plan.yaml"), "f.yaml", read_plan),
    "npz": Reader(arrays, "f.npz", load_points),
    "npy": Reader(npy, "f.npz", load_points, in_archive),
    "safetensors": Reader(lambda: saved_space(".safetensors"), "f.safetensors", load_points),
    "header": Reader(headers, "f.safetensors", load_points, with_length),
    "weights": Reader(headers, "f.safetensors", _half_parameters, with_length),
    "cell": Reader(cells, "cell", read_cell),
    "manifest": Reader(lambda: [json.dumps(MANIFEST).encode()], "manifest", read_manifest),
    "table": Reader(tables, "f.csv", load_results),
    "results": Reader(parquet_tables, "f.parquet", load_results),
    "parquet": Reader(parquet_vectors, "f.parquet", load_points),
    "vectors": Reader(csv_vectors, "f.csv", load_points),
    "run": Reader(runs, "run", read_run),
    "folder": Reader(text_folders, "folder", read_text_folder),
    "distances": Reader(distances, "f.json", read_distances),
}
