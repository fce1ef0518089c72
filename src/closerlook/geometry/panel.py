"""All measures of one labelled space: collapse, dimension, isotropy, label fit, separability."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeVar

from numpy.typing import ArrayLike

from closerlook.geometry.clusters import Clustering, cluster
from closerlook.geometry.fit import LabelFit, label_fit
from closerlook.geometry.hulls import TAU
from closerlook.geometry.kernels import Progress
from closerlook.geometry.nulls import cover_of_pairs
from closerlook.geometry.overlap import Overlap, largest_cluster_shares, overlaps
from closerlook.geometry.pairs import Candidates
from closerlook.geometry.shape import (
    Collapse,
    Isotropy,
    collapse,
    isotropy,
    labelled,
    participation_ratio,
    principal_variances,
    two_nn,
)
from closerlook.notebook import html

if TYPE_CHECKING:
    import pandas as pd

PARTS = 7
"""Number of steps that progress reports."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Panel:
    """All measures of one space of n rows, d columns and m labels.

    largest_cluster_share: the share of a label's rows in its largest cluster, mean over labels. overlaps: the pairs of
    labels that are not linearly separable. cover: the probability that rows in general position with random labels are
    separable; ratio: n / 2d; both for the rows of two labels, mean over pairs.

    >>> panel = describe_space([[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 1.0], [5.0, 0.0]], [*"aabbb"])
    >>> panel
    Panel(5 × 2, 2 labels, 19 measures)
    >>> panel.n_overlapping_pairs, panel.largest_cluster_share
    (0, 1.0)
    """

    n: int
    d: int
    m: int
    collapse: Collapse
    participation_ratio: float
    two_nn: float
    isotropy: Isotropy
    label_fit: LabelFit
    largest_cluster_share: float
    overlaps: tuple[Overlap, ...]
    cover: float
    ratio: float

    @property
    def n_overlapping_pairs(self) -> int:
        """The number of pairs of labels that are not linearly separable."""
        return len(self.overlaps)

    @property
    def largest_overlap_share(self) -> float:
        """The largest share of two labels' rows that must be removed to separate them; 0 if all are separable."""
        return max((overlap.share for overlap in self.overlaps), default=0.0)

    def __repr__(self) -> str:
        return f"Panel({self.n} × {self.d}, {self.m} labels, {len(self.flat())} measures)"

    def to_frame(self) -> pd.DataFrame:
        """One row for each measure of `flat`: its name and its value."""
        import pandas as pd

        return pd.DataFrame(list(self.flat().items()), columns=["measure", "value"])

    def _repr_html_(self) -> str:
        table = self.to_frame()
        half = (len(table) + 1) // 2
        return html(repr(self), table[:half], table[half:])

    def to_dict(self) -> dict[str, object]:
        """The fields by name, with nested parts."""
        return asdict(self)

    def flat(self) -> dict[str, float]:
        """All values in one dictionary, as columns of a table."""
        return {
            **self.collapse.to_dict(),
            "participation_ratio": self.participation_ratio,
            "two_nn": self.two_nn,
            **self.isotropy.to_dict(),
            **self.label_fit.to_dict(),
            "largest_cluster_share": self.largest_cluster_share,
            "n_overlapping_pairs": float(self.n_overlapping_pairs),
            "largest_overlap_share": self.largest_overlap_share,
            "cover_probability": self.cover,
            "n_over_2d": self.ratio,
        }


def describe_space(
    X: ArrayLike,
    y: ArrayLike,
    *,
    clustering: Clustering | None = None,
    clusters: bool = True,
    tau: float = TAU,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Panel:
    """All measures of a labelled space.

    clustering: DirectProbe's clusters, if known; otherwise they are computed. clusters: False skips them, and
    largest_cluster_share is NaN.

    >>> panel = describe_space([[0.0], [1.0], [8.0], [9.0]], ["a", "a", "b", "b"])
    >>> panel.n_overlapping_pairs, panel.largest_cluster_share, panel.collapse.nc4
    (0, 1.0, 1.0)
    """
    points, codes, m = labelled(X, y)
    n, d = points.shape
    done = 0

    def step(part: Callable[[], Result]) -> Result:
        nonlocal done
        result = part()
        done += 1
        if progress:
            progress(done, PARTS)
        return result

    known = step(lambda: clustering or (cluster(points, y, tau=tau, threads=threads) if clusters else None))
    shares = [math.nan] if known is None else list(largest_cluster_shares(known).values())
    overlapping = step(lambda: overlaps(points, y, tau=tau, threads=threads))
    cover, ratio = cover_of_pairs(codes, d)
    near, variances = Candidates.none(n, 2), principal_variances(points)
    fit = step(lambda: label_fit(points, y, threads=threads, candidates=near))
    return Panel(
        n=n,
        d=d,
        m=m,
        collapse=step(lambda: collapse(points, y)),
        participation_ratio=step(lambda: participation_ratio(points, variances=variances)),
        two_nn=step(lambda: two_nn(points, threads=threads, candidates=near)),
        isotropy=step(lambda: isotropy(points, variances=variances)),
        label_fit=fit,
        largest_cluster_share=sum(shares) / len(shares),
        overlaps=tuple(overlapping),
        cover=cover,
        ratio=ratio,
    )
