"""Spatial similarity of parts of train with each other."""

from __future__ import annotations

from closerlook.study.measure import Measure

MEASURES = (
    Measure(
        "similarity_halves",
        "similarity of split halves",
        "spatial similarity of two random halves of train, mean over splits; interval: smallest and largest",
    ),
    Measure(
        "similarity_folds",
        "similarity of folds",
        "spatial similarity of one fold of train and the rest, mean over folds; interval: smallest and largest",
    ),
)
