"""The head sees exactly the vectors that are probed, and the gradient reaches the encoder through every unit."""

from pathlib import Path

import numpy as np
import pytest
import torch

from closerlook.encoders.encoder import Encoder
from closerlook.representations.extract import choose_pool, extract
from closerlook.tasks.task import Task, Unit
from closerlook.tuning.examples import Examples
from closerlook.tuning.labeller import Labeller
from tests.encoders.families import FAMILIES, save_family
from tests.tuning.tasks import small

UNITS: tuple[Unit, ...] = ("token", "pair", "span", "sentence")
CLOSE = 4e-5
"""What padding and the size of a batch may change in float32; a wrong subword changes the first digit."""


def made(task: Task, pool: str = "auto", encoder: Encoder | None = None) -> tuple[Labeller, Examples]:
    encoder = encoder or Encoder.load(device="cpu")
    chosen = choose_pool(pool, task.unit, has_cls=encoder.info.has_cls)
    return Labeller(encoder, task), Examples(encoder, task.unit, task.split("train"), chosen)


def in_batches(labeller: Labeller, examples: Examples) -> tuple[np.ndarray, np.ndarray]:
    """The head's input and labels, five texts at a time in another order than the split's; in the split's order."""
    order = np.random.default_rng(0).permutation(len(examples))
    found, labels, rows = [], [], []
    with torch.no_grad():
        for start in range(0, len(order), 5):
            texts = order[start : start + 5].tolist()
            batch = examples.collate([examples[text] for text in texts])
            found.append(labeller.vectors(batch["batch"]).numpy())
            labels.append(batch["labels"].numpy())
            rows += [row for text in texts for row in np.flatnonzero(examples_text(examples) == text)]
    back = np.argsort(examples.rows[rows])
    return np.concatenate(found)[back], np.concatenate(labels)[back]


def examples_text(examples: Examples) -> np.ndarray:
    return np.repeat(np.arange(len(examples)), np.diff(examples._first_example))


@pytest.mark.parametrize(
    ("unit", "pool"), [(unit, "auto") for unit in UNITS] + [("token", "last"), ("pair", "first"), ("sentence", "mean")]
)
def test_the_head_sees_exactly_the_vectors_that_extraction_gives(unit: Unit, pool: str) -> None:
    labeller, examples = made(small(unit), pool)
    labeller.eval()
    X, y = in_batches(labeller, examples)
    (space,) = extract("bert-tiny", small(unit), layers="last", pool=pool)
    np.testing.assert_allclose(X, space.X, atol=CLOSE)
    np.testing.assert_array_equal(y, space.y)
    vectors = examples.vectors(labeller.encoder, [labeller.encoder.info.layers])[0]
    np.testing.assert_allclose(vectors, space.X[examples.rows], atol=CLOSE)


@pytest.mark.parametrize("unit", ["token", "sentence"])
def test_long_texts_are_read_in_the_same_windows_as_in_extraction(unit: Unit) -> None:
    encoder = Encoder.load(device="cpu", window=8)
    labeller, examples = made(small(unit), encoder=encoder)
    assert len(examples.aligned.windows) > len(examples)
    (space,) = extract("bert-tiny", small(unit), layers="last", window=8)
    np.testing.assert_allclose(in_batches(labeller.eval(), examples)[0], space.X, atol=CLOSE)


@pytest.mark.parametrize("unit", UNITS)
def test_the_gradient_flows_through_every_unit_to_every_layer(unit: Unit) -> None:
    labeller, examples = made(small(unit))
    labeller(**examples.collate([0, 1, 2]))["loss"].backward()
    still = [name for name, weight in labeller.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert all("pooler" in name or ".key.bias" in name for name in still), still  # attention ignores a key's bias


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_gradient_flows_in_every_family(family: str, tmp_path: Path) -> None:
    encoder = Encoder.load(str(save_family(family, tmp_path / family)), device="cpu")
    labeller, examples = made(small("token", 4, 2), encoder=encoder)
    labeller.train()
    labeller(**examples.collate([0, 1]))["loss"].backward()
    assert encoder.model.get_input_embeddings().weight.grad.any()


def test_the_loss_is_the_mean_over_all_labelled_examples() -> None:
    labeller, examples = made(small())
    labeller.eval()
    parts = [examples.collate([text]) for text in (0, 1, 2)]
    n = sum(len(part["labels"]) for part in parts)
    with torch.no_grad():
        whole = labeller(**examples.collate([0, 1, 2]))["loss"]
        summed = sum(labeller(**part, num_items_in_batch=n)["loss"] for part in parts)
    assert float(whole) == pytest.approx(float(summed), abs=1e-5)


def test_a_score_is_the_loss_and_the_share_that_is_right() -> None:
    labeller, examples = made(small())
    labeller.eval()
    batch = examples.collate(list(range(len(examples))))
    with torch.no_grad():
        found = labeller(**batch)
    loss, accuracy = labeller.score(examples.vectors(labeller.encoder, [2])[0], examples.y)
    assert loss == pytest.approx(float(found["loss"]), abs=1e-4)
    assert accuracy == float((found["logits"].argmax(1) == batch["labels"]).double().mean())
