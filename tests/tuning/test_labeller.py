"""The input of the head is exactly the probed vectors, and gradients reach the encoder for every unit."""

from pathlib import Path

import numpy as np
import pytest
import torch

from closerlook.encoders.encoder import Encoder
from closerlook.encoders.pooling import choose_pool
from closerlook.representations.extract import extract
from closerlook.tasks.task import Task, Unit
from closerlook.tuning.examples import Examples
from closerlook.tuning.labeller import Labeller
from tests.encoders.families import FAMILIES, save_family
from tests.tuning.tasks import small

UNITS: tuple[Unit, ...] = ("token", "pair", "span", "sentence")
CLOSE = 4e-5
"""How much padding and batch size may change a float32 vector; a wrong subword would change its first digit."""


def build(task: Task, pool: str = "auto", encoder: Encoder | None = None) -> tuple[Labeller, Examples]:
    encoder = encoder or Encoder.load(device="cpu")
    chosen = choose_pool(pool, task.unit, encoder.info)
    return Labeller(encoder, task), Examples(encoder, task.unit, task.split("train"), chosen)


def in_batches(labeller: Labeller, examples: Examples) -> tuple[np.ndarray, np.ndarray]:
    """The input of the head and the labels, computed in shuffled batches of five texts, put back into split order."""
    order = np.random.default_rng(0).permutation(len(examples))
    vectors, labels, rows = [], [], []
    with torch.no_grad():
        for start in range(0, len(order), 5):
            texts = order[start : start + 5].tolist()
            batch = examples.collate([examples[text] for text in texts])
            vectors.append(labeller.vectors(batch["batch"]).numpy())
            labels.append(batch["labels"].numpy())
            rows += [row for text in texts for row in np.flatnonzero(examples_text(examples) == text)]
    split_order = np.argsort(examples.rows[rows])
    return np.concatenate(vectors)[split_order], np.concatenate(labels)[split_order]


def examples_text(examples: Examples) -> np.ndarray:
    return np.repeat(np.arange(len(examples)), np.diff(examples._first_example))


@pytest.mark.parametrize(
    ("unit", "pool"), [(unit, "auto") for unit in UNITS] + [("token", "last"), ("pair", "first"), ("sentence", "mean")]
)
def test_the_input_of_the_head_equals_the_extracted_vectors(unit: Unit, pool: str) -> None:
    labeller, examples = build(small(unit), pool)
    labeller.eval()
    X, y = in_batches(labeller, examples)
    (space,) = extract("bert-tiny", small(unit), layers="last", pool=pool)
    np.testing.assert_allclose(X, space.X, atol=CLOSE)
    np.testing.assert_array_equal(y, space.y)
    vectors = examples.vectors(labeller.encoder, [labeller.encoder.info.layers])[0]
    np.testing.assert_allclose(vectors, space.X[examples.rows], atol=CLOSE)


@pytest.mark.parametrize("unit", ["token", "sentence"])
def test_long_texts_are_read_in_the_windows_of_extraction(unit: Unit) -> None:
    encoder = Encoder.load(device="cpu", window=8)
    labeller, examples = build(small(unit), encoder=encoder)
    assert len(examples.aligned.windows) > len(examples)
    (space,) = extract("bert-tiny", small(unit), layers="last", window=8)
    np.testing.assert_allclose(in_batches(labeller.eval(), examples)[0], space.X, atol=CLOSE)


@pytest.mark.parametrize("unit", UNITS)
def test_gradients_reach_every_layer_for_every_unit(unit: Unit) -> None:
    labeller, examples = build(small(unit))
    labeller(**examples.collate([0, 1, 2]))["loss"].backward()
    without_gradient = [
        name for name, weight in labeller.named_parameters() if weight.grad is None or not weight.grad.any()
    ]
    assert all("pooler" in name or ".key.bias" in name for name in without_gradient), (
        without_gradient
    )  # attention ignores a key's bias


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_gradients_reach_the_embedding_in_every_model_family(family: str, tmp_path: Path) -> None:
    encoder = Encoder.load(str(save_family(family, tmp_path / family)), device="cpu")
    labeller, examples = build(small("token", 4, 2), encoder=encoder)
    labeller.train()
    labeller(**examples.collate([0, 1]))["loss"].backward()
    assert encoder.model.get_input_embeddings().weight.grad.any()


def test_the_loss_is_the_mean_over_all_labelled_examples() -> None:
    labeller, examples = build(small())
    labeller.eval()
    parts = [examples.collate([text]) for text in (0, 1, 2)]
    n = sum(len(part["labels"]) for part in parts)
    with torch.no_grad():
        whole = labeller(**examples.collate([0, 1, 2]))["loss"]
        summed = sum(labeller(**part, num_items_in_batch=n)["loss"] for part in parts)
    assert float(whole) == pytest.approx(float(summed), abs=1e-5)


def test_a_score_is_the_mean_loss_and_the_accuracy() -> None:
    labeller, examples = build(small())
    labeller.eval()
    batch = examples.collate(list(range(len(examples))))
    with torch.no_grad():
        output = labeller(**batch)
    loss, accuracy = labeller.score(examples.vectors(labeller.encoder, [2])[0], examples.y)
    assert loss == pytest.approx(float(output["loss"]), abs=1e-4)
    assert accuracy == float((output["logits"].argmax(1) == batch["labels"]).double().mean())
