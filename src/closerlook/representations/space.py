"""A Space: vectors with their labels, and where they come from; the two never part."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.geometry.frame import as_labels


@dataclass(frozen=True)
class Provenance:
    """Where a space comes from; what is not known is None.

    weights: fingerprint of the encoder's files or parameters. checkpoint: revision or training step. layer: 0 is the
    embedding output. task_hash: the task's content hash. pool: how subwords became one vector. seed: of random weights.
    window: tokens read at a time. dtype: the precision computed in. versions: of the code that computed it.
    """

    encoder: str | None = None
    weights: str | None = None
    checkpoint: str | None = None
    layer: int | None = None
    task: str | None = None
    task_hash: str | None = None
    split: str | None = None
    pool: str | None = None
    seed: int | None = None
    window: int | None = None
    dtype: str | None = None
    versions: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Provenance:
        """The provenance that `to_dict` wrote; fields of a newer version are left out."""
        known = {f.name for f in fields(cls)}
        return cls(**{key: value for key, value in values.items() if key in known})

    def title(self) -> str:
        """One line for people: 'bert-tiny · toy-pos/train · layer 2 · mean', and the checkpoint where it is a step."""
        encoder = self.encoder or "?"
        if self.checkpoint and " " in self.checkpoint:  # no revision of a hub
            encoder += f" ({self.checkpoint})"
        layer = "?" if self.layer is None else self.layer
        return f"{encoder} · {self.task or '?'}/{self.split or '?'} · layer {layer} · {self.pool or '?'}"


@dataclass(frozen=True, eq=False)
class Space:
    """n vectors of one split under one encoder at one layer, each with a label.

    X: (n, d) float32. y: (n,) int32, indices into `labels`. Both may be memory-mapped and are read-only. words: (n,)
    the word, span or 'head dependent' behind each row; None for sentences, and where it is not known.

    >>> space = Space.from_arrays([[0.0, 1.0], [1.0, 0.0]], ["NOUN", "VERB"], task="weather")
    >>> space.n, space.d, space.labels, space.provenance.task
    (2, 2, ('NOUN', 'VERB'), 'weather')
    """

    X: NDArray[np.float32]
    y: NDArray[np.int32]
    labels: tuple[str, ...]
    provenance: Provenance = Provenance()
    words: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.words is not None:
            _check_words(len(self.words), len(self.X), "words")
        for array in (self.X, self.y):
            array.flags.writeable = False

    @property
    def n(self) -> int:
        """How many vectors."""
        return len(self.X)

    @property
    def d(self) -> int:
        """How many dimensions."""
        return int(self.X.shape[1])

    def __repr__(self) -> str:
        return f"Space({self.provenance.title()}: {self.n} × {self.d}, {len(self.labels)} labels)"

    @property
    def label_names(self) -> NDArray[np.str_]:
        """(n,) each row's label by name, as scikit-learn takes it."""
        return np.asarray(self.labels, dtype=np.str_)[self.y]

    @classmethod
    def from_arrays(cls, X: ArrayLike, y: ArrayLike, *, words: ArrayLike | None = None, **provenance: Any) -> Space:
        """A checked space from a user's own arrays; y holds label names or numbers, one for each row of X.

        words: (n,) what is behind each row, if that is known.
        """
        vectors = _vectors(X)
        names = names_of(y)
        if len(names) != len(vectors):
            raise InputError(
                f"X has {len(vectors)} rows and y has {len(names)} labels; expected one label for each row"
            )
        labels, codes = np.unique(names, return_inverse=True)
        unknown = sorted(set(provenance) - {field.name for field in fields(Provenance)})
        if unknown:
            raise InputError(
                f"provenance {', '.join(unknown)} is unknown; see closerlook.representations.space.Provenance"
            )
        known = None if words is None else words_of(words, len(vectors))
        return cls(vectors, codes.astype(np.int32), tuple(map(str, labels)), Provenance(**provenance), known)

    def save(self, path: str | Path) -> Path:
        """The file or folder written: `.npz`, `.safetensors`, or a folder as the released DirectProbe reads it."""
        from closerlook.representations import files

        return files.save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, *, split: str = "train", layer: int | None = None) -> Space:
        """The space in a file or DirectProbe folder; `split` and `layer` choose among those a folder holds."""
        from closerlook.representations import files

        return files.load(Path(path), split, layer)


def _vectors(X: ArrayLike) -> NDArray[np.float32]:
    array = np.asarray(X)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"X has shape {array.shape}; expected (n, d), one row for each example")
    if array.dtype.kind not in "fiub":
        raise InputError(f"X holds {array.dtype}; expected real numbers")
    with np.errstate(over="ignore"):
        vectors = np.array(array, dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise InputError(
            f"X holds NaN, infinity or a number too large for float32 in row {bad[0]} ({len(bad)} rows in all)"
        )
    return vectors


def words_of(words: ArrayLike, n: int, name: str = "words") -> tuple[str, ...]:
    """(n,) the word behind each of n rows."""
    array = np.asarray(words)
    if array.ndim != 1 or (array.dtype.kind not in "US" and not all(isinstance(word, str) for word in array.tolist())):
        raise InputError(f"{name} has shape {array.shape} and holds {array.dtype}; expected (n,) strings, one a row")
    _check_words(len(array), n, name)
    try:
        return tuple(np.char.decode(array, "utf-8").tolist() if array.dtype.kind == "S" else array.tolist())
    except UnicodeDecodeError as error:
        raise InputError(f"{name} holds bytes that are not UTF-8 ({error.reason}); expected strings") from None


def _check_words(found: int, n: int, name: str) -> None:
    if found != n:
        raise InputError(f"{name} has {found} entries; expected {n}, one for each row")


def names_of(y: ArrayLike) -> NDArray[np.str_]:
    """(n,) labels by name; whole numbers become the words for them."""
    array = np.asarray(y)
    if array.ndim != 1:
        raise InputError(f"y has shape {array.shape}; expected (n,), one label for each row of X")
    labels, codes = as_labels(array, len(array))
    return np.array([str(label) for label in labels], dtype=np.str_)[codes]
