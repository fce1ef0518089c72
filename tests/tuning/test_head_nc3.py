"""NC3 with heads that were trained: by `tune`, and by transformers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer

from closerlook.encoders.source import resolve
from closerlook.representations.extract import extract
from closerlook.representations.space import Space
from closerlook.tasks import load_task
from closerlook.tuning import snapshot_spaces, tune
from closerlook.tuning.heads import head_nc3, load_head, saved_head_nc3
from closerlook.tuning.tuned import TuningResult
from tests.tuning.trainings import BASE


def plain_nc3(space: Space, weight: np.ndarray) -> float:
    """‖W/‖W‖ − M/‖M‖‖ for the labels that occur, both centred."""
    labels = np.unique(space.y)
    M = np.stack([space.X[space.y == label].astype(float).mean(axis=0) for label in labels])
    W = weight[labels].astype(float)
    M, W = M - M.mean(axis=0), W - W.mean(axis=0)
    return float(np.linalg.norm(W / np.linalg.norm(W) - M / np.linalg.norm(M)))


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tuned")
    tune(
        "bert-tiny",
        "toy-question",
        epochs=1,
        snapshots=3,
        layers="last",
        save_weights=True,
        out=folder,
        store=folder / "store",
    )
    return folder


def test_every_snapshot_after_the_start_has_the_nc3_of_its_head(tuned: Path) -> None:
    run = TuningResult.load(tuned)
    assert run.snapshots[0].nc3 is None
    assert len(run.snapshots) == 3
    for snapshot in run.snapshots[1:]:
        (space,) = snapshot_spaces(run, snapshot, layers="last", store=tuned / "store")
        weight = load_file(tuned / str(snapshot.weights) / "head.safetensors")["weight"].numpy()
        assert snapshot.nc3 == pytest.approx(plain_nc3(space, weight), rel=1e-6)


def test_training_turns_the_head_towards_the_label_means(tuned: Path) -> None:
    _, first, last = (snapshot.nc3 for snapshot in TuningResult.load(tuned).snapshots)
    assert first is not None
    assert last is not None
    assert last < first - 0.05


def test_a_run_of_an_earlier_version_has_no_nc3(tuned: Path) -> None:
    values = TuningResult.load(tuned).to_dict()
    for snapshot in values["snapshots"]:
        del snapshot["nc3"]
    assert [snapshot.nc3 for snapshot in TuningResult.from_dict(values).snapshots] == [None] * 3


def test_the_saved_head_of_tune_is_read_only_for_its_own_task_and_pooling(tuned: Path) -> None:
    run, task = TuningResult.load(tuned), load_task("toy-question")
    (space,) = snapshot_spaces(run, layers="last", store=tuned / "store")
    source = resolve(str(tuned / str(run.snapshots[-1].weights)))
    assert saved_head_nc3(source, task, space) == pytest.approx(run.snapshots[-1].nc3, rel=1e-9)
    assert saved_head_nc3(source, load_task("toy-pos"), space) is None
    assert saved_head_nc3(source, task, replace(space, provenance=replace(space.provenance, pool="last"))) is None
    assert saved_head_nc3(resolve(str(tuned / "step-0")), task, space) is None, "the head of step 0 is random"
    assert saved_head_nc3(resolve("bert-tiny"), task, space) is None


def save_model(folder: Path, model: torch.nn.Module) -> Path:
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(BASE).save_pretrained(folder)
    return folder


def test_the_nc3_of_a_token_classifier_of_transformers_uses_its_weights_by_label_name(tmp_path: Path) -> None:
    task = load_task("toy-pos")
    names = dict(enumerate([*reversed(task.labels), "other"]))
    torch.manual_seed(0)
    model = AutoModelForTokenClassification.from_pretrained(BASE, dtype=torch.float32, id2label=names)
    folder = save_model(tmp_path, model)
    (space,) = extract(str(folder), task, layers="last", splits="train", store=tmp_path / "store")
    weight = model.classifier.weight.detach().numpy()[:-1][::-1]
    found = load_head(resolve(str(folder)), task, device="cpu").nc3(space)
    assert found == pytest.approx(plain_nc3(space, weight), rel=1e-6)


def test_a_head_behind_another_layer_does_not_read_the_last_layer(tmp_path: Path) -> None:
    task = load_task("toy-question")
    model = AutoModelForSequenceClassification.from_pretrained(
        BASE, dtype=torch.float32, id2label=dict(enumerate(task.labels))
    )
    folder = save_model(tmp_path, model)
    (space,) = extract(str(folder), task, layers="last", splits="train", pool="cls", store=tmp_path / "store")
    assert load_head(resolve(str(folder)), task, device="cpu").nc3(space) is None


@pytest.mark.parametrize(("pool", "is_read"), [("last", True), ("mean", False)])
def test_the_head_of_a_decoder_reads_the_last_token(tmp_path: Path, pool: str, is_read: bool) -> None:
    task = load_task("toy-question")
    config = AutoConfig.for_model(
        "llama",
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        vocab_size=len(AutoTokenizer.from_pretrained(BASE)),
        id2label=dict(enumerate(task.labels)),
        pad_token_id=0,
    )
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(config)
    folder = save_model(tmp_path, model)
    (space,) = extract(str(folder), task, layers="last", splits="train", pool=pool, store=tmp_path / "store")
    found = load_head(resolve(str(folder)), task, device="cpu").nc3(space)
    assert found == (pytest.approx(plain_nc3(space, model.score.weight.detach().numpy())) if is_read else None)


def test_nc3_is_undefined_for_one_label_and_for_weights_that_became_nan() -> None:
    X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    y = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
    assert head_nc3(torch.eye(3)[:2], X, np.zeros(6, dtype=np.int32)) is None
    assert head_nc3(torch.full((2, 3), float("nan")), X, y) is None
    assert head_nc3(torch.eye(3)[:2], X, y) is not None
