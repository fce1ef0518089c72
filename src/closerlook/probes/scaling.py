"""Standardise vectors for classifier probes: on train, each column has mean 0 and variance 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import InputError

if TYPE_CHECKING:  # scikit-learn takes a second to import
    from sklearn.preprocessing import StandardScaler

LARGEST = 1e150
"""The largest number that can be standardised: the variance of larger ones overflows float64."""


def fit_scaler(X: NDArray[np.floating]) -> StandardScaler:
    """The scaler with mean and variance of each column of X: (n, d)."""
    from sklearn.preprocessing import StandardScaler

    _check_size(X, "X", LARGEST)
    return StandardScaler().fit(X)


def standardise(scaler: StandardScaler, X: NDArray[np.floating], name: str = "X") -> NDArray[np.float32]:
    """X (n, d), standardised; raises InputError if numbers are too large. name: of X in the message."""
    _check_size(X, name, LARGEST)
    scaled = scaler.transform(X)
    _check_size(scaled, f"{name}, divided by the standard deviation on train,", float(np.finfo(np.float32).max))
    return np.asarray(scaled, dtype=np.float32)


def _check_size(X: NDArray[np.floating], name: str, largest: float) -> None:
    found = max(float(X.max(initial=0)), -float(X.min(initial=0)))
    if found > largest:
        raise InputError(
            f"{name} holds {found:.3g}; expected numbers up to {largest:.3g} for classifier probes: divide train and "
            "test by a constant, or repair the rows"
        )
