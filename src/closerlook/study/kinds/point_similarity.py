"""Point similarity of two spaces of the same examples."""

from __future__ import annotations

from closerlook.study.measure import Measure

MEASURES = (
    Measure(
        "cka",
        "CKA",
        "linear centred kernel alignment, debiased; 1: equal up to rotation and scale, about 0: unrelated",
        compares=True,
    ),
    Measure(
        "procrustes",
        "Procrustes",
        "how well a rotation and scaling maps one space onto the other; 1: exactly",
        compares=True,
    ),
    Measure("rsa", "RSA", "Spearman correlation of the distances between all pairs of points", compares=True),
    Measure(
        "shared_neighbours",
        "shared neighbours",
        "overlap of the nearest neighbours of a point in both spaces (Jaccard index), mean over points",
        compares=True,
    ),
)
