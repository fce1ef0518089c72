"""One labelled space in one panel: collapse, dimension, isotropy, how the labels fit, how far they separate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from closerlook.geometry.clusters import Clustering, cluster
from closerlook.geometry.fit import LabelFit, label_fit
from closerlook.geometry.hulls import TAU
from closerlook.geometry.kernels import Progress
from closerlook.geometry.nulls import by_chance
from closerlook.geometry.overlap import Overlap, largest_cluster_shares, overlaps
from closerlook.geometry.shape import Collapse, Isotropy, collapse, isotropy, labelled, participation_ratio, two_nn

PARTS = 7
"""Steps that progress counts."""

Found = TypeVar("Found")


@dataclass(frozen=True)
class Panel:
    """A space of n rows, d columns and m labels, by all measures that need nothing but itself.

    largest_share: of a label's rows that lie in its largest cluster, mean over labels. overlaps: the pairs of labels
    that no hyperplane separates, with the share of their rows that would have to go for the rest to be separable.
    cover: the probability that rows in general position separate whatever their labels, and ratio: n / 2d; both of
    the rows of two labels, mean over pairs.
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
        """How many pairs of labels no hyperplane separates."""
        return len(self.overlaps)

    @property
    def largest_overlap_share(self) -> float:
        """The largest share of two labels' rows that would have to go; 0 where all pairs are separable."""
        return max((one.share for one in self.overlaps), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """By name, part by part."""
        return asdict(self)

    def flat(self) -> dict[str, float]:
        """One plain name for each value, as tables want them."""
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
    """The panel of a space. clustering: DirectProbe's clusters where they are known; else they are found.

    clusters: False does without them, and largest_share is NaN.

    >>> found = describe_space([[0.0], [1.0], [8.0], [9.0]], ["a", "a", "b", "b"])
    >>> found.n_overlapping_pairs, found.largest_cluster_share, found.collapse.nc4
    (0, 1.0, 1.0)
    """
    points, codes, m = labelled(X, y)
    n, d = points.shape
    done = 0

    def step(part: Callable[[], Found]) -> Found:
        nonlocal done
        found = part()
        done += 1
        if progress:
            progress(done, PARTS)
        return found

    known = step(lambda: clustering or (cluster(points, y, tau=tau, threads=threads) if clusters else None))
    shares = [math.nan] if known is None else list(largest_cluster_shares(known).values())
    meeting = step(lambda: overlaps(points, y, tau=tau, threads=threads))
    cover, ratio = by_chance(codes, d)
    return Panel(
        n=n,
        d=d,
        m=m,
        collapse=step(lambda: collapse(points, y)),
        participation_ratio=step(lambda: participation_ratio(points)),
        two_nn=step(lambda: two_nn(points, threads=threads)),
        isotropy=step(lambda: isotropy(points)),
        label_fit=step(lambda: label_fit(points, y, threads=threads)),
        largest_cluster_share=sum(shares) / len(shares),
        overlaps=tuple(meeting),
        cover=cover,
        ratio=ratio,
    )
