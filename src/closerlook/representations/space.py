"""Space: vectors with their labels, and Provenance, which says where they come from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from closerlook.errors import InputError
from closerlook.geometry.frame import as_array, as_labels, text_array
from closerlook.notebook import html
from closerlook.plots.points import MOST_POINTS, plot_points

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd


@dataclass(frozen=True)
class Provenance:
    """Where the vectors of a space come from; a field is None if it is unknown.

    weights: fingerprint of the encoder's files or parameters. checkpoint: revision on the hub, or training step.
    layer: 0 is the embedding output. task_hash: the task's content hash. pool: how subwords became one vector.
    seed: the seed of randomly initialised weights. window: how many tokens the model read at a time. dtype: the
    precision of the computation. template: the text around every text. versions: the versions of the libraries that
    computed the vectors.

    >>> Provenance(encoder="bert-tiny", task="toy-pos", split="train", layer=2, pool="mean").title()
    'bert-tiny · toy-pos/train · layer 2 · mean'
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
    template: str | None = None
    versions: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """The fields as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Provenance:
        """The provenance from the values of `to_dict`; fields that this version does not know are ignored.

        Raises TypeError if a value has the wrong type.
        """
        known = {key: value for key, value in values.items() if key in {f.name for f in fields(cls)}}
        for key, value in known.items():
            expected: type = {"layer": int, "seed": int, "window": int, "versions": dict}.get(key, str)
            if not isinstance(value, expected) and (value is not None or expected is dict):
                raise TypeError(f"{key} is of type {type(value).__name__}; expected {expected.__name__}")
        return cls(**known)

    def title(self) -> str:
        """One line for display: 'bert-tiny · toy-pos/train · layer 2 · mean', with the training step if any."""
        encoder = self.encoder or "?"
        if self.checkpoint and " " in self.checkpoint:  # a training step; revisions on the hub contain no spaces
            encoder += f" ({self.checkpoint})"
        layer = "?" if self.layer is None else self.layer
        return f"{encoder} · {self.task or '?'}/{self.split or '?'} · layer {layer} · {self.pool or '?'}"


@dataclass(frozen=True, eq=False)
class Space:
    """n labelled vectors: the examples of one split of a task, in one layer of an encoder.

    X: (n, d) float32. y: (n,) int32, indices into `labels`. Both are read-only and may be memory-mapped. words: (n,)
    the word, span or 'head dependent' of each row; None for sentences, or if unknown.

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
        """The number of vectors."""
        return len(self.X)

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return int(self.X.shape[1])

    def __repr__(self) -> str:
        return f"Space({self.provenance.title()}: {self.n} × {self.d}, {len(self.labels)} labels)"

    def _repr_html_(self) -> str:
        import pandas as pd

        counts = np.bincount(self.y, minlength=len(self.labels))
        labels = pd.DataFrame({"label": self.labels, "points": counts}).sort_values("points", ascending=False)
        return html(repr(self), labels)

    def to_frame(self) -> pd.DataFrame:
        """One row for each vector: `label`, `word` if known, and its coordinates d0, d1 and so on."""
        import pandas as pd

        names = {"label": self.label_names} | ({} if self.words is None else {"word": self.words})
        coordinates = pd.DataFrame(self.X, columns=[f"d{at}" for at in range(self.d)])
        return pd.concat([pd.DataFrame(names), coordinates], axis=1)

    def plot(self, *, points: int = MOST_POINTS, seed: int = 0) -> alt.LayerChart:
        """A scatter plot along the first two principal components, coloured by label, as an altair chart.

        points: how many points are drawn; of a larger space, a sample in which every label keeps its share. seed: of
        the sample. A click on a label in the legend shows it alone; a point shows its row, word and label.
        """
        columns: dict[str, Any] = {"row": range(self.n)} | ({} if self.words is None else {"word": self.words})
        names = self.label_names.tolist()
        return plot_points(self.X, names, title=self.provenance.title(), columns=columns, points=points, seed=seed)

    @property
    def label_names(self) -> NDArray[Any]:
        """(n,) the name of each row's label, usable as y in scikit-learn: see `text_array`."""
        return text_array(self.labels)[self.y]

    @classmethod
    def from_arrays(cls, X: ArrayLike, y: ArrayLike, *, words: ArrayLike | None = None, **provenance: Any) -> Space:
        """A space from your own arrays, which are checked; y holds a label name or number for each row of X.

        words: (n,) the text of each row, if known. provenance: fields of `Provenance`.
        """
        vectors = _vectors(X)
        names = as_label_names(y)
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
        texts = None if words is None else as_words(words, len(vectors))
        return cls(vectors, codes.astype(np.int32), tuple(map(str, labels)), Provenance(**provenance), texts)

    def save(self, path: str | Path) -> Path:
        """Write the space to a .npz, .safetensors or .parquet file, or to a text folder of the DirectProbe code."""
        from closerlook.representations import files

        return files.save_space(self, Path(path))

    def to_parquet(self, path: str | Path) -> Path:
        """Write the space as Parquet, with the columns `vector` (a list), `label` and, if known, `word`.

        pandas and embedding-atlas (`--vector vector`) read it, and `Space.load` gives the same space back.
        """
        from closerlook.representations import files

        return files.write_parquet(self, Path(path))

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        split: str = "train",
        layer: int | None = None,
        x_key: str | None = None,
        y_key: str | None = None,
        labels: str | Path | None = None,
        max_memory: int | None = None,
    ) -> Space:
        """The space in a file or folder: a saved space, or vectors from another program.

        Vectors come from .npz, .npy (with `labels`, a file with one label for each row), .csv, .tsv, .parquet, a folder
        of a Hugging Face dataset, or 'hf:NAME'. split, layer: choose among the spaces of a folder or dataset.
        x_key: the name of the array (.npz) or the columns of the vectors, such as 'embedding' or 'd*'; by default X,
        the only column of lists, or all columns of numbers. y_key: the array or the column of the labels.
        max_memory: bytes that it may take; by default 2 GB, or twice the size of the file if that is more.
        """
        from closerlook.representations import files
        from closerlook.representations.tables import Names

        names = Names(x_key, y_key, None if labels is None else Path(labels))
        return files.load_space(Path(path), split, layer, names, max_memory=max_memory)


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


def as_words(words: ArrayLike, n: int, name: str = "words") -> tuple[str, ...]:
    """(n,) the texts of n rows, checked; name: what error messages call the array."""
    array = np.asarray(words)
    if array.dtype.kind == "U" and not isinstance(words, np.ndarray):  # numpy strings would lose trailing NULs
        array = np.asarray(words, dtype=np.object_)
    if array.ndim != 1 or (array.dtype.kind not in "US" and not all(isinstance(word, str) for word in array.tolist())):
        raise InputError(f"{name} has shape {array.shape} and holds {array.dtype}; expected (n,) strings, one per row")
    _check_words(len(array), n, name)
    try:
        return tuple(np.char.decode(array, "utf-8").tolist() if array.dtype.kind == "S" else array.tolist())
    except UnicodeDecodeError as error:
        raise InputError(f"{name} holds bytes that are not UTF-8 ({error.reason}); expected strings") from None


def _check_words(count: int, n: int, name: str) -> None:
    if count != n:
        raise InputError(f"{name} has {count} entries; expected {n}, one for each row")


def as_label_names(y: ArrayLike) -> NDArray[Any]:
    """(n,) label names; whole numbers are converted to strings."""
    array = as_array(y, "y")
    if array.ndim != 1:
        raise InputError(f"y has shape {array.shape}; expected (n,), one label for each row of X")
    labels, codes = as_labels(y, len(array))
    return text_array([str(label) for label in labels])[codes]
