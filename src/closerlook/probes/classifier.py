"""The classifier probe as a scikit-learn estimator; its sizes are chosen on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from closerlook.geometry.frame import as_labels, with_nuls
from closerlook.geometry.kernels import count_threads
from closerlook.probes.direct import check_jobs, value_errors
from closerlook.probes.grid import GRID, check_seeds, check_sizes, choose_sizes
from closerlook.probes.scaling import fit_scaler, standardise
from closerlook.probes.training import Job, ProbeTraining, Sizes
from closerlook.progress import progress_bar


class ClassifierProbe(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """An MLP classifier whose hidden sizes are chosen from a grid on a held-out part of the training rows.

    sizes: a list with the hidden widths of each network to try, such as [(64, 128), (32,)]; [()] is a linear probe;
    None: the paper's 16 pairs of 32, 64, 128 and 256. seeds: the number of networks of each size, or a list of seeds.
    Other options: see `ProbeTraining`. device: "auto", "cpu" or "cuda". n_jobs: threads on a CPU, all cores for None
    and -1; the results do not depend on it.

    After fitting: `classes_`; `sizes_`, the sizes with the best mean held-out accuracy (the smallest if tied);
    `held_out_`, {sizes: (r,) held-out accuracy by seed}; `network_`, the best network of the chosen sizes, which
    predicts.

    >>> X, y = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]] * 5, ["a", "a", "a", "b", "b", "b"] * 5
    >>> ClassifierProbe(sizes=[(8,)], seeds=1).fit(X, y).predict([[0.15], [4.9]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        sizes: Sequence[Sizes] | None = None,
        seeds: int | Sequence[int] = 5,
        learning_rate: float = ProbeTraining.learning_rate,
        batch_size: int = ProbeTraining.batch_size,
        max_rounds: int = ProbeTraining.max_rounds,
        patience: int = ProbeTraining.patience,
        weight_decay: float = ProbeTraining.weight_decay,
        held_out: float = ProbeTraining.held_out,
        device: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.sizes = sizes
        self.seeds = seeds
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_rounds = max_rounds
        self.patience = patience
        self.weight_decay = weight_decay
        self.held_out = held_out
        self.device = device
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train the networks on X: (n, d), y: (n,), and choose one of them."""
        import torch

        from closerlook.encoders.loading import choose_device
        from closerlook.probes.networks import Data, train

        points, labels = validate_data(self, X, with_nuls(y), dtype=np.float64)
        with value_errors():
            if labels.dtype.kind == "O":
                as_labels(labels, len(points))  # its message names the labels of mixed types
            check_classification_targets(labels)
            sizes, seeds = check_sizes(GRID if self.sizes is None else self.sizes), check_seeds(self.seeds)
            training, device = self._training(), choose_device(self.device)
            threads = count_threads(check_jobs(self.n_jobs))
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self._scaler = fit_scaler(points)
        rows = torch.from_numpy(standardise(self._scaler, points)[None]).to(device)
        data = Data(rows, torch.from_numpy(codes.astype(np.int64)[None]).to(device), len(self.classes_))
        jobs = [Job(shape, seed) for shape in sizes for seed in seeds]
        with progress_bar("networks", None) as show:
            networks = train(data, jobs, training, threads=threads, progress=show)
        networks_by_size = {shape: [network for network in networks if network.job.sizes == shape] for shape in sizes}
        self.held_out_ = {shape: np.array([network.accuracy for network in networks_by_size[shape]]) for shape in sizes}
        held_out = np.stack([self.held_out_[shape] for shape in sizes])
        self.sizes_ = sizes[choose_sizes(held_out, [networks_by_size[shape][0].n_weights for shape in sizes])]
        self.network_ = max(networks_by_size[self.sizes_], key=lambda network: (network.accuracy, -network.loss))
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """(m, k) the probability of each class for each row of X: (m, d)."""
        check_is_fitted(self)
        queries = validate_data(self, X, dtype=np.float64, reset=False)
        scores = self.network_.scores(standardise(self._scaler, queries))
        probabilities: NDArray[np.float64] = softmax(scores, axis=1)
        return probabilities

    def predict(self, X: ArrayLike) -> NDArray[np.generic]:
        """(m,) the most probable class of each row of X: (m, d)."""
        probabilities = self.predict_proba(X)
        labels: NDArray[np.generic] = self.classes_[probabilities.argmax(axis=1)]
        return labels

    def _training(self) -> ProbeTraining:
        return ProbeTraining(
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            max_rounds=self.max_rounds,
            patience=self.patience,
            weight_decay=self.weight_decay,
            held_out=self.held_out,
        )
