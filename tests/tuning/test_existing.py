"""Reading trainings that were done elsewhere, made here by real Trainer scripts."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from closerlook.encoders.encoder import Encoder
from closerlook.encoders.source import resolve
from closerlook.errors import InputError
from closerlook.representations.extract import extract
from closerlook.tasks import load_task
from closerlook.tasks.readers import read_task
from closerlook.tuning import snapshot_spaces, tune
from closerlook.tuning.existing import read_run
from closerlook.tuning.heads import has_head, head_scores
from tests.tuning.trainings import BASE, train


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("run") / "out")


def test_a_trainer_folder_gives_steps_epochs_losses_and_the_seed(out: Path) -> None:
    run = read_run(out, "bert-tiny")
    assert [checkpoint.step for checkpoint in run.checkpoints] == [2, 4, 6]
    assert [checkpoint.epoch for checkpoint in run.checkpoints] == pytest.approx([2 / 6, 4 / 6, 1.0])
    logged = json.loads((out / "checkpoint-6" / "trainer_state.json").read_text())["log_history"]
    assert run.checkpoints[-1].logged == {"loss": logged[2]["loss"]}
    assert (run.seed, run.method, run.tuned_on, run.skipped) == (5, "full", None, ())
    assert run.base.source.fingerprint == resolve("bert-tiny").fingerprint
    assert len({checkpoint.source.fingerprint for checkpoint in run.checkpoints}) == 3


def test_steps_are_in_the_order_of_numbers_not_of_names(out: Path, tmp_path: Path) -> None:
    for step in (4, 20, 100):
        shutil.copytree(out / "checkpoint-4", tmp_path / f"step-{step}")
        (tmp_path / f"step-{step}" / "trainer_state.json").unlink()
        config = json.loads((tmp_path / f"step-{step}" / "config.json").read_text())
        (tmp_path / f"step-{step}" / "config.json").write_text(json.dumps(config | {"step": step}))
    run = read_run(str(tmp_path / "step-*"), "bert-tiny")
    assert [checkpoint.step for checkpoint in run.checkpoints] == [4, 20, 100]
    assert all(math.isnan(checkpoint.epoch) for checkpoint in run.checkpoints)


def test_a_list_whose_numbers_do_not_rise_is_counted_in_the_given_order(out: Path) -> None:
    run = read_run([str(out / "checkpoint-4"), str(out / "checkpoint-2")], "bert-tiny")
    assert [checkpoint.step for checkpoint in run.checkpoints] == [1, 2]
    assert [Path(checkpoint.name).name for checkpoint in run.checkpoints] == ["checkpoint-4", "checkpoint-2"]


@pytest.mark.parametrize("damage", ["no weights", "cut weights", "no config"])
def test_an_incomplete_checkpoint_of_a_crashed_training_is_skipped_and_named(
    out: Path, tmp_path: Path, damage: str
) -> None:
    crashed = tmp_path / "out"
    shutil.copytree(out, crashed)
    weights = crashed / "checkpoint-6" / "model.safetensors"
    if damage == "no weights":
        weights.unlink()
    elif damage == "cut weights":
        weights.write_bytes(weights.read_bytes()[:100_000])
    else:
        (crashed / "checkpoint-6" / "config.json").unlink()
    run = read_run(crashed, "bert-tiny")
    assert [checkpoint.step for checkpoint in run.checkpoints] == [2, 4]
    assert len(run.skipped) == 1
    assert str(crashed / "checkpoint-6") in run.skipped[0]


def test_a_resumed_training_has_all_its_checkpoints_once(tmp_path: Path) -> None:
    first = train(tmp_path / "out", max_steps=4)
    train(first, resume=str(first / "checkpoint-4"), max_steps=6)
    assert [checkpoint.step for checkpoint in read_run(first, "bert-tiny").checkpoints] == [2, 4, 6]


def test_checkpoints_without_a_tokenizer_use_that_of_the_base(out: Path, tmp_path: Path) -> None:
    shutil.copytree(out / "checkpoint-6", tmp_path / "checkpoint-6")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "checkpoint-6" / file).unlink()
    last = read_run(tmp_path, BASE).checkpoints[-1]
    assert last.source.tokenizer == Path(BASE)
    (own,) = extract(str(out / "checkpoint-6"), "toy-question", layers="last")
    (borrowed,) = extract(Encoder.load(last.source, device="cpu"), "toy-question", layers="last")
    np.testing.assert_array_equal(own.X, borrowed.X)


def test_adapters_name_their_base_method_and_rank(tmp_path: Path) -> None:
    out = train(tmp_path / "out", lora=4)
    run = read_run(out)
    assert run.method == "lora 4"
    assert run.base.source.fingerprint == resolve("bert-tiny").fingerprint
    assert [checkpoint.step for checkpoint in run.checkpoints] == [2, 4, 6]
    assert all(checkpoint.source.adapter is not None for checkpoint in run.checkpoints)


def test_without_a_base_the_message_asks_for_it(out: Path) -> None:
    with pytest.raises(InputError, match=r"base encoder of .* is not known.*--base"):
        read_run(out)


def test_a_folder_without_checkpoints_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no checkpoints; expected checkpoint-N"):
        read_run(tmp_path, "bert-tiny")


def test_the_weights_of_tune_give_the_vectors_that_tune_stored(tmp_path: Path) -> None:
    result = tune("bert-tiny", "toy-question", epochs=1, snapshots=2, layers="last", save_weights=True, out=tmp_path)
    run = read_run(tmp_path)
    assert (run.tuned_on, run.seed, [c.step for c in run.checkpoints]) == ("toy-question", 0, [result.steps])
    (own,) = extract(run.checkpoints[-1].name, "toy-question", layers="last")
    (stored,) = snapshot_spaces(result, layers="last")
    np.testing.assert_allclose(own.X, stored.X, rtol=1e-4, atol=1e-4)  # batches, and so last digits, differ


@pytest.mark.parametrize("task_name", ["toy-question", "toy-pos"])
def test_the_head_scores_what_transformers_itself_predicts(tmp_path: Path, task_name: str) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer

    task = load_task(task_name)
    folder = train(tmp_path / "out", task_name) / "checkpoint-6"
    source = resolve(str(folder))
    assert has_head(source, task)
    loss, accuracy = head_scores(source, task, ["test"], device="cpu")["test"]
    split, tokenizer = task.split("test"), AutoTokenizer.from_pretrained(folder)
    is_sentence = task.unit == "sentence"
    model = (AutoModelForSequenceClassification if is_sentence else AutoModelForTokenClassification).from_pretrained(
        folder, dtype=torch.float32
    )
    right, losses = [], []
    for row in range(len(split)):
        text = split.texts[split.sentence[row]]
        encoded = tokenizer(" ".join(text) if not isinstance(text, str) else text, return_tensors="pt")
        at = None
        if not is_sentence:
            start = sum(len(word) + 1 for word in text[: split.positions[row][0]])
            at = encoded.char_to_token(start)
        with torch.inference_mode():
            logits = model(**encoded).logits[0] if at is None else model(**encoded).logits[0, at]
        right.append(int(logits.argmax()) == split.y[row])
        losses.append(float(torch.nn.functional.cross_entropy(logits[None], torch.tensor([int(split.y[row])]))))
        if row == 60:
            break
    if len(right) == len(split):
        assert accuracy == pytest.approx(np.mean(right))
        assert loss == pytest.approx(np.mean(losses), rel=1e-4)
    else:
        first = head_scores(source, _first_rows(task, len(right)), ["test"], device="cpu")["test"]
        assert first[1] == pytest.approx(np.mean(right))
        assert first[0] == pytest.approx(np.mean(losses), rel=1e-4)


def test_the_head_reads_the_second_text_of_a_pair_with_its_token_type(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(BASE, dtype=torch.float32, id2label={0: "a", 1: "b"})
    with torch.no_grad():
        model.base_model.embeddings.token_type_embeddings.weight[1] += torch.randn(model.config.hidden_size)
    tokenizer = AutoTokenizer.from_pretrained(BASE)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    rows = [{"text": f"It rains {n}.", "text_b": "It is wet. " * (n % 3 + 1), "label": "ab"[n % 2]} for n in range(9)]
    task = read_task(rows, name="pairs", text="text", text_b="text_b", label="label")
    loss, _ = head_scores(resolve(str(tmp_path)), task, ["train"], device="cpu")["train"]
    losses = []
    for row in rows:
        with torch.inference_mode():
            logits = model.eval()(**tokenizer(str(row["text"]), str(row["text_b"]), return_tensors="pt")).logits
        losses.append(float(torch.nn.functional.cross_entropy(logits, torch.tensor(["ab".index(str(row["label"]))]))))
    assert loss == pytest.approx(np.mean(losses), rel=1e-4)


def _first_rows(task, n):  # type: ignore[no-untyped-def]
    from closerlook.tasks.task import Split, Task

    whole = task.split("test")
    part = Split("test", whole.texts, whole.sentence[:n], whole.positions[:n], whole.y[:n])
    return Task(task.name, task.unit, task.labels, (part,))


def test_a_head_with_other_labels_is_not_scored(out: Path) -> None:
    source = resolve(str(out / "checkpoint-6"))
    assert not has_head(source, load_task("toy-pos"))
    assert not has_head(resolve("bert-tiny"), load_task("toy-question"))
