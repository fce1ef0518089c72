"""The text folders that the released DirectProbe code reads, and in which its authors published their vectors.

entities/train.txt              one example per line: its text, a tab, its label
labels/tags.txt                 the labels, one per line
embeddings/layers/train/12.txt  one vector per line, numbers separated by spaces (also embeddings/**/train*.txt)
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np

from closerlook.errors import InputError
from closerlook.escaping import parse_json
from closerlook.representations.atomic import atomic_write
from closerlook.representations.memory import check_memory
from closerlook.representations.space import Provenance, Space

PROVENANCE = "provenance"
"""A folder of JSON files that only this library writes and reads: the provenance of each space."""


def save_folder(space: Space, folder: Path) -> None:
    """Write the files of this split and layer into the folder; files of other splits and layers stay."""
    split, layer = space.provenance.split or "train", space.provenance.layer or 0
    if split != Path(split).name:
        raise InputError(f"split {split!r} cannot be part of a file's name; rename it, or use .npz")
    invalid = next((label for label in space.labels if label != " ".join(label.split())), None)
    if invalid is not None:
        raise InputError(
            f"label {invalid!r} cannot be written as text: it has a tab, a line break or extra spaces; use .npz"
        )
    if any("\ud800" <= character <= "\udfff" for label in space.labels for character in label):
        raise InputError("a label contains half a surrogate pair, which cannot be written as text; use .npz")
    with atomic_write(folder / "labels" / "tags.txt") as stream:
        stream.writelines(f"{label}\n".encode() for label in space.labels)
    with atomic_write(folder / "entities" / f"{split}.txt") as stream:
        stream.writelines(f"{i}\t{space.labels[code]}\n".encode() for i, code in enumerate(space.y))
    with atomic_write(folder / "embeddings" / "layers" / split / f"{layer}.txt") as stream:
        np.savetxt(stream, space.X, fmt="%.9g")  # nine digits represent every float32 exactly
    with atomic_write(folder / PROVENANCE / split / f"{layer}.json") as stream:
        stream.write(json.dumps(space.provenance.to_dict()).encode())


def load_folder(folder: Path, split: str, layer: int | None, max_memory: int | None = None) -> Space:
    """The space of that split and layer; layer may be None if the folder has only one."""
    return _load(folder, split, layer, None, max_memory)


def load_vectors(vectors: Path, max_memory: int | None = None) -> Space:
    """The space whose vectors are in this file below `embeddings/`: SPLIT/LAYER.txt, or SPLIT.txt."""
    folder = next(parent.parent for parent in vectors.absolute().parents if parent.name == "embeddings")
    named = [name for name in (vectors.parent.name, vectors.stem.split(".")[0]) if name in _splits(folder)]
    if not named:
        raise InputError(
            f"{vectors} belongs to no split of {folder} ({', '.join(_splits(folder)) or 'none'}); "
            "expected SPLIT/LAYER.txt or SPLIT.txt"
        )
    return _load(folder, named[0], None, vectors, max_memory)


def find_test_file(path: Path) -> Path | None:
    """The file with the vectors of test that belongs to a file with the vectors of train; None if there is none.

    path: the file with the vectors of train, or a folder that has only one such file.
    """
    train = _embeddings(path, "train", None) if path.is_dir() else path
    if train.parent.name == "train":
        test = train.parents[1] / "test" / train.name
    else:
        test = train.with_name(train.name.replace("train", "test", 1))
    return test if test != train and test.is_file() else None


def _splits(folder: Path) -> list[str]:
    return sorted(file.stem for file in (folder / "entities").glob("*.txt"))


def _load(folder: Path, split: str, layer: int | None, vectors: Path | None, max_memory: int | None) -> Space:
    labels = sorted(set(_lines(_only(folder, "labels", sorted((folder / "labels").glob("*.txt"))))))
    if _splits(folder) and split not in _splits(folder):
        raise InputError(f"{folder} has no split {split}; it has {', '.join(_splits(folder))}")
    entities = folder / "entities" / f"{split}.txt"
    names = [line.rsplit("\t", 1)[-1].strip() for line in _lines(entities)]
    code = {label: i for i, label in enumerate(labels)}
    unknown = next((name for name in names if name not in code), None)
    if unknown is not None:
        raise InputError(f"{entities} has label {unknown!r}, which {folder / 'labels'} does not list")
    vectors = vectors or _embeddings(folder, split, layer)
    try:
        check_memory(vectors, vectors.stat().st_size, max_memory)
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # an empty file: refused below
            X = np.loadtxt(vectors, dtype=np.float32, ndmin=2, encoding="utf-8", comments=None)
    except (ValueError, OSError) as error:
        raise InputError(f"{vectors} cannot be read as numbers: {error}") from None
    try:
        checked = Space.from_arrays(X, names)
    except InputError as error:
        raise InputError(f"{vectors}: {error}") from None
    y = np.array([code[name] for name in names], dtype=np.int32)
    return Space(checked.X, y, tuple(labels), _provenance(folder, vectors, split))


def _embeddings(folder: Path, split: str, layer: int | None) -> Path:
    """The only file of vectors of that split, and of that layer if one is given."""
    root = folder / "embeddings"
    name = "*" if layer is None else str(layer)
    layered = [*root.glob(f"layers/{split}/{name}.txt"), *root.glob(f"{split}/{name}.txt")]
    plain = [file for file in root.rglob("*.txt") if file.stem.split(".")[0] == split] if layer is None else []
    return _only(folder, f"embeddings for split {split}", sorted({*layered, *plain}))


def _only(folder: Path, kind: str, files: list[Path]) -> Path:
    """The only file in the list; kind: what the file should hold, for the error message."""
    if not files:
        raise InputError(f"{folder} has no {kind}; expected a DirectProbe folder with entities/, labels/, embeddings/")
    if len(files) > 1:
        some = ", ".join(str(file.relative_to(folder)) for file in files[:8])
        raise InputError(f"{folder} has several {kind} ({some}); choose a layer, or name the file itself")
    return files[0]


def _lines(file: Path) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from None
    return [line.rstrip("\r") for line in text.split("\n") if line.strip()]


def _provenance(folder: Path, vectors: Path, split: str) -> Provenance:
    layer = int(vectors.stem) if vectors.stem.isascii() and vectors.stem.isdigit() else None
    description = folder / PROVENANCE / split / f"{vectors.stem}.json"
    if description.is_file():
        try:
            return Provenance.from_dict(parse_json(description.read_bytes()))
        except (OSError, ValueError, AttributeError, TypeError):
            raise InputError(f"{description} cannot be read; expected JSON, or no such file") from None
    return Provenance(split=split, layer=layer)
