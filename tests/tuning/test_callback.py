"""GeometryCallback measures what the library measures, reaches every logger, and does not change the training."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

from closerlook.encoders.encoder import Encoder
from closerlook.encoders.source import EMBEDDED, resolve
from closerlook.errors import InputError, WorkError
from closerlook.geometry import cluster, cluster_distances, label_distances, spatial_similarity
from closerlook.representations.extract import extract
from closerlook.tasks import load_task
from closerlook.tasks.task import Task
from closerlook.tuning import GeometryCallback
from closerlook.tuning.callback import find_encoder, subsample
from tests.tuning.tasks import small

FOLDER = resolve(EMBEDDED).folder


class Recorder(hf.TrainerCallback):
    """A logger, like the one for TensorBoard: the Trainer calls it before the user's own callbacks."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, dict[str, float]]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float], **rest: Any) -> None:
        self.entries.append((state.global_step, dict(logs)))


def questions(tokenizer: Any, n: int = 32) -> list[dict[str, Any]]:
    task = load_task("toy-question")
    split = task.split("train")
    texts = [" ".join(text) if isinstance(text, tuple) else text for text in split.texts[:n]]
    return [
        {**tokenizer(text, padding="max_length", max_length=24, truncation=True), "labels": int(y)}
        for text, y in zip(texts, split.y[:n], strict=True)
    ]


def own_trainer(folder: Path, *callbacks: Any, model: Any = None, **arguments: Any) -> hf.Trainer:
    """A Trainer as a user would write it: it classifies questions, for eight steps."""
    hf.set_seed(0)
    if model is None:
        model = hf.AutoModelForSequenceClassification.from_pretrained(FOLDER, num_labels=20, dtype=torch.float32)
    tokenizer = hf.AutoTokenizer.from_pretrained(FOLDER)
    options = {"output_dir": str(folder), "max_steps": 8, "per_device_train_batch_size": 8, "learning_rate": 1e-3}
    options |= {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "use_cpu": True, "logging_steps": 4}
    trainer = hf.Trainer(
        model=model,
        args=hf.TrainingArguments(**(options | {"dataloader_pin_memory": False} | arguments)),
        train_dataset=questions(tokenizer),
        processing_class=tokenizer,
        callbacks=list(callbacks),
    )
    trainer.remove_callback(hf.PrinterCallback)
    return trainer


@pytest.fixture(scope="module")
def measured_training(tmp_path_factory: pytest.TempPathFactory) -> tuple[hf.Trainer, Recorder, list[dict[str, Any]]]:
    """A training measured every three steps, its logger, and the lines of the results file."""
    folder = tmp_path_factory.mktemp("measured")
    recorder = Recorder()
    trainer = own_trainer(folder, recorder)
    results = folder / "new" / "geometry.jsonl"
    callback = GeometryCallback(small(), every=3, layers="0,2", results=results)
    assert callback.attach(trainer) is callback
    trainer.train()
    return trainer, recorder, [json.loads(line) for line in results.read_text().splitlines()]


def test_the_start_every_few_steps_and_the_end_are_measured(measured_training: Any) -> None:
    _, recorder, lines = measured_training
    assert [(line["step"], line["layer"]) for line in lines] == [(s, layer) for s in (0, 3, 6, 8) for layer in (0, 2)]
    assert [step for step, logs in recorder.entries if "geometry/seconds" in logs] == [0, 3, 6, 8]


def test_logged_values_equal_those_of_the_library(measured_training: Any) -> None:
    trainer, recorder, lines = measured_training
    now = Encoder.wrap(trainer.model, trainer.processing_class, name="now")
    tables = []
    for encoder in (EMBEDDED, now):
        space = extract(encoder, small(), layers=2)[0]
        clustering = cluster(space.X, space.label_names)
        tables.append(label_distances(cluster_distances(space.X, clustering)))
    line, logged = lines[-1], recorder.entries[-1][1] | recorder.entries[-2][1]
    assert line["clusters"] == clustering.n_clusters == logged["geometry/layer2/clusters"]
    assert (line["n"], line["labels"]) == (len(space.y), clustering.n_labels)
    assert line["separable"] == clustering.is_separable == bool(logged["geometry/layer2/separable"])
    assert line["conflicts"] == len(clustering.conflicts)
    assert line["minimum_distance"] == pytest.approx(np.nanmean(tables[1].minimum()), rel=1e-3)
    relative = np.nanmean(tables[1].minimum()) / tables[1].radius
    assert logged["geometry/layer2/relative_minimum_distance"] == pytest.approx(relative, rel=1e-3)
    expected = spatial_similarity(*tables, permutations=0, resamples=0).pearson
    assert line["similarity"] == pytest.approx(expected, abs=1e-3)
    assert lines[1]["similarity"] == pytest.approx(1.0)


def test_the_trainer_still_logs_its_own_values(measured_training: Any) -> None:
    _, recorder, _ = measured_training
    assert [step for step, logs in recorder.entries if "loss" in logs] == [4, 8]


def test_measuring_at_a_logging_step_does_not_suppress_the_trainers_log(tmp_path: Path) -> None:
    recorder = Recorder()
    trainer = own_trainer(tmp_path, recorder)
    GeometryCallback(small("sentence", 12, 4), every=2, layers="last").attach(trainer)
    trainer.train()
    assert [step for step, logs in recorder.entries if "loss" in logs] == [4, 8]


def test_trained_weights_are_the_same_with_and_without_the_callback(tmp_path: Path, measured_training: Any) -> None:
    trainer = own_trainer(tmp_path)
    trainer.train()
    measured = measured_training[0].model.state_dict()
    assert all(torch.equal(value, measured[key]) for key, value in trainer.model.state_dict().items())


def test_a_callback_that_is_not_attached_writes_to_the_log_history(tmp_path: Path) -> None:
    trainer = own_trainer(tmp_path, GeometryCallback(small("sentence", 12, 4), every=100, layers="last"))
    trainer.train()
    assert [entry["step"] for entry in trainer.state.log_history if "geometry/layer2/clusters" in entry] == [0, 8]


class OwnModel(torch.nn.Module):
    """A plain torch module that contains models of transformers."""

    def __init__(self, *encoders: Any) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(encoders)
        self.last = torch.nn.Linear(128, 20)

    def forward(self, input_ids: Any, attention_mask: Any, labels: Any, token_type_ids: Any = None) -> Any:
        states = self.parts[0](input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        logits = self.last(states[:, 0])
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def test_the_encoder_is_found_inside_any_model(tmp_path: Path) -> None:
    bare = hf.AutoModel.from_pretrained(FOLDER, dtype=torch.float32)
    results = tmp_path / "results.jsonl"
    trainer = own_trainer(tmp_path / "out", model=OwnModel(bare))
    GeometryCallback(small("sentence", 12, 4), layers="last", results=results).attach(trainer)
    trainer.train()
    assert len(results.read_text().splitlines()) == 2
    assert find_encoder(OwnModel(bare)) is bare
    assert find_encoder(OwnModel(bare, bare), "parts.1") is bare
    assert find_encoder(None, bare) is bare
    with pytest.raises(InputError, match="2 encoders found in OwnModel; name one, as GeometryCallback"):
        find_encoder(OwnModel(bare, hf.AutoModel.from_pretrained(FOLDER, dtype=torch.float32)))
    with pytest.raises(InputError, match="encoder 'nothing' requested; the model has no submodule of this name"):
        find_encoder(OwnModel(bare), "nothing")


def test_the_encoder_is_found_under_an_adapter() -> None:
    import peft

    model = hf.AutoModelForSequenceClassification.from_pretrained(FOLDER, num_labels=20, dtype=torch.float32)
    adapted = peft.get_peft_model(model, peft.LoraConfig(target_modules=["query"]))
    wrapped = Encoder.wrap(find_encoder(adapted), hf.AutoTokenizer.from_pretrained(FOLDER), name="adapted")
    assert type(wrapped.model).__name__ == "BertModel"


def test_subsampling_is_limited_and_repeatable() -> None:
    split = load_task("toy-pos").split("train")
    few = subsample(split, 100, 0)
    assert len(few) == 100
    assert len(np.unique(few.sentence)) < 20
    np.testing.assert_array_equal(few.sentence, subsample(split, 100, 0).sentence)
    assert not np.array_equal(few.sentence, subsample(split, 100, 1).sentence)
    assert len(subsample(split, 10**6, 0)) == len(split)


def test_two_labels_have_no_spatial_similarity(tmp_path: Path) -> None:
    texts = [((f"word{i}", "here"), [((0,), "A"), ((1,), "B")]) for i in range(4)]
    task = Task.build("two", "token", {"train": texts})
    trainer = own_trainer(tmp_path / "out")
    callback = GeometryCallback(task, layers="last", results=tmp_path / "results.jsonl").attach(trainer)
    trainer.train()
    line = json.loads((tmp_path / "results.jsonl").read_text().splitlines()[-1])
    assert line["similarity"] is None
    assert line["minimum_distance"] > 0
    assert callback.seconds > 0
    logged = next(entry for entry in trainer.state.log_history if "geometry/seconds" in entry)
    assert "geometry/layer2/similarity" not in logged
    assert all(math.isfinite(value) for value in logged.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every is 0; expected a whole number, 1 or more"),
        ({"max_examples": 1.5}, "max_examples is 1.5; expected a whole number"),
        ({"task": "toy-poss"}, "toy-poss"),
        ({"split": "dev"}, "split 'dev' requested; task toy-pos has train, test"),
        ({"results": FOLDER}, "bert-tiny is a folder; expected a file"),
    ],
)
def test_invalid_options_are_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        GeometryCallback(**options)
    assert message in str(refused.value)


def test_problems_that_appear_during_training_are_one_line_too(tmp_path: Path) -> None:
    trainer = own_trainer(tmp_path)
    trainer.callback_handler.processing_class = None
    GeometryCallback(small()).attach(trainer)
    with pytest.raises(InputError, match="no tokenizer given; pass GeometryCallback"):
        trainer.train()
    (tmp_path / "file").write_text("")
    trainer = own_trainer(tmp_path)
    GeometryCallback(small(), layers="last", results=tmp_path / "file" / "results").attach(trainer)
    with pytest.raises(WorkError, match="results .* cannot be written"):
        trainer.train()
