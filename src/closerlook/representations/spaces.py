"""`Spaces`: the spaces that `extract` returns, in order and by name of their split."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex, overload

from closerlook.errors import InputError
from closerlook.notebook import html
from closerlook.representations.space import Space
from closerlook.tasks.task import split_name, split_order

if TYPE_CHECKING:
    import pandas as pd


class Spaces(tuple[Space, ...]):
    """A tuple of spaces, which can also be asked by name: `spaces["test"]`, `spaces["test", 2]` or `spaces.test`.

    It is sorted by task, as requested, then by split (train, dev, test, others by name), then by layer.

    >>> from closerlook import extract
    >>> spaces = extract("bert-tiny", "toy-question", splits="all")
    >>> len(spaces), spaces["test", 2].X.shape
    (6, (86, 128))
    >>> spaces.select(split="train")[0]
    Space(bert-tiny · toy-question/train · layer 0 · cls: 381 × 128, 20 labels)
    """

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex) -> Space: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Space, ...]: ...
    @overload
    def __getitem__(self, key: str | tuple[str, int]) -> Space: ...
    def __getitem__(self, key: SupportsIndex | slice | str | tuple[str, int]) -> Space | tuple[Space, ...]:
        """The space at a position, of a split, or of a split and a layer."""
        if isinstance(key, str):
            return self._only(self.select(split=key), f"split {key!r}")
        if isinstance(key, tuple):
            split, layer = key
            return self._only(self.select(split=split, layer=layer), f"split {split!r} at layer {layer}")
        return super().__getitem__(key)

    def __getattr__(self, name: str) -> Space:
        """The space of the split of that name."""
        if name.startswith("_") or split_name(name) not in self._splits():
            raise AttributeError(f"there is no space of a split {name!r}; the splits are {', '.join(self._splits())}")
        return self[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._splits()]

    def select(self, *, task: str | None = None, split: str | None = None, layer: int | None = None) -> Spaces:
        """The spaces of a task, a split and a layer, each if given."""
        return Spaces(
            space
            for space in self
            if (task is None or space.provenance.task == task)
            and (split is None or space.provenance.split in {split, split_name(split)})
            and (layer is None or space.provenance.layer == layer)
        )

    def to_frame(self) -> pd.DataFrame:
        """One row for each space: where it comes from, and its numbers of vectors, dimensions and labels."""
        import pandas as pd

        names = ("encoder", "checkpoint", "task", "split", "layer", "pool")
        return pd.DataFrame(
            [
                {name: getattr(space.provenance, name) for name in names}
                | {"n": space.n, "d": space.d, "labels": len(space.labels)}
                for space in self
            ]
        )

    def _repr_html_(self) -> str:
        table = self.to_frame().dropna(axis=1, how="all")  # without columns of unknown facts
        return html(f"{len(self)} {'space' if len(self) == 1 else 'spaces'}", table)

    def _splits(self) -> list[str]:
        return sorted({space.provenance.split or "" for space in self}, key=split_order)

    def _only(self, found: Spaces, requested: str) -> Space:
        """The only space that was found."""
        if len(found) == 1:
            return next(iter(found))
        if not found:
            layers = sorted({space.provenance.layer for space in self if space.provenance.layer is not None})
            raise InputError(
                f"{requested} requested; there are spaces of {', '.join(self._splits())} at layers "
                f"{', '.join(map(str, layers))}"
            )
        provenances = [space.provenance for space in found]
        if len({provenance.task for provenance in provenances}) > 1:
            tasks = ", ".join(dict.fromkeys(str(provenance.task) for provenance in provenances))
            raise InputError(f"{requested} requested; several tasks have it ({tasks}): choose with select(task=...)")
        layers = [provenance.layer for provenance in provenances if provenance.layer is not None]
        split = provenances[0].split
        raise InputError(
            f"{requested} requested; it has layers {', '.join(map(str, layers))}: choose one, as in "
            f"spaces[{split!r}, {max(layers)}]"
        )
