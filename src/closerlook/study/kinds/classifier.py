"""A grid of classifier probes, trained on train and tested on another split."""

from __future__ import annotations

from closerlook.study.measure import Measure

MEASURES = (
    Measure(
        "accuracy",
        "accuracy, %",
        "test accuracy of the probe size chosen on held-out training examples, mean over seeds; text: the chosen size",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "accuracy_sd",
        "standard deviation of the accuracy, %",
        "standard deviation of the test accuracy over seeds; n: number of seeds",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "macro_f1",
        "macro F1, %",
        "F1 score of the same probe on the test split, mean over labels and seeds",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "macro_f1_sd",
        "standard deviation of macro F1, %",
        "standard deviation of macro F1 over seeds; n: number of seeds",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "majority_accuracy",
        "majority accuracy, %",
        "test accuracy of always predicting the most frequent label of train",
        digits=1,
        scale=100.0,
        on_test=True,
    ),
    Measure(
        "n_unseen_labels",
        "unseen labels",
        "number of labels of the test split that do not occur in train",
        digits=0,
        on_test=True,
    ),
    Measure(
        "grid_accuracy",
        "accuracy of one probe size, %",
        "test accuracy of each probe size in the grid, mean over seeds; text: the size",
        digits=1,
        scale=100.0,
        rows="probe size",
        on_test=True,
        archive="none",
    ),
    Measure(
        "grid_held_out_accuracy",
        "held-out accuracy of one probe size, %",
        "accuracy of each probe size on held-out training examples, by which the size is chosen; text: the size",
        digits=1,
        scale=100.0,
        rows="probe size",
        on_test=True,
        archive="none",
    ),
    Measure(
        "label_accuracy",
        "accuracy of a label, %",
        "share of a label's test examples that the chosen probe classifies correctly; n: its test examples",
        digits=1,
        scale=100.0,
        rows="label",
        on_test=True,
        archive="none",
    ),
)
