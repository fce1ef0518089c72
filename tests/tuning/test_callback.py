"""The callback: it measures what the library measures, tells every logger, and leaves the training as it was."""

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


class Listener(hf.TrainerCallback):
    """A logger such as those that report to TensorBoard: it stands before the user's own callbacks."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, dict[str, float]]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float], **rest: Any) -> None:
        self.heard.append((state.global_step, dict(logs)))


def questions(tokenizer: Any, n: int = 32) -> list[dict[str, Any]]:
    task = load_task("toy-question")
    split = task.split("train")
    texts = [" ".join(text) if isinstance(text, tuple) else text for text in split.texts[:n]]
    return [
        {**tokenizer(text, padding="max_length", max_length=24, truncation=True), "labels": int(y)}
        for text, y in zip(texts, split.y[:n], strict=True)
    ]


def own_trainer(folder: Path, *callbacks: Any, model: Any = None, **arguments: Any) -> hf.Trainer:
    """A user's own training: a classifier of questions, eight steps."""
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
def looked(tmp_path_factory: pytest.TempPathFactory) -> tuple[hf.Trainer, Listener, list[dict[str, Any]]]:
    """A training watched every three steps, what its logger heard, and the results file."""
    folder = tmp_path_factory.mktemp("looked")
    listener = Listener()
    trainer = own_trainer(folder, listener)
    results = folder / "new" / "geometry.jsonl"
    callback = GeometryCallback(small(), every=3, layers="0,2", results=results)
    assert callback.attach(trainer) is callback
    trainer.train()
    return trainer, listener, [json.loads(line) for line in results.read_text().splitlines()]


def test_the_start_every_few_steps_and_the_end_are_looked_at(looked: Any) -> None:
    _, listener, lines = looked
    assert [(line["step"], line["layer"]) for line in lines] == [(s, layer) for s in (0, 3, 6, 8) for layer in (0, 2)]
    assert [step for step, logs in listener.heard if "geometry/seconds" in logs] == [0, 3, 6, 8]


def test_what_is_logged_is_what_the_library_measures(looked: Any) -> None:
    trainer, listener, lines = looked
    now = Encoder.wrap(trainer.model, trainer.processing_class, name="now")
    tables = []
    for encoder in (EMBEDDED, now):
        space = extract(encoder, small(), layers=2)[0]
        found = cluster(space.X, space.label_names)
        tables.append(label_distances(cluster_distances(space.X, found)))
    line, heard = lines[-1], listener.heard[-1][1] | listener.heard[-2][1]
    assert line["clusters"] == found.n_clusters == heard["geometry/layer2/clusters"]
    assert (line["n"], line["labels"]) == (len(space.y), found.n_labels)
    assert line["separable"] == found.is_separable == bool(heard["geometry/layer2/separable"])
    assert line["conflicts"] == len(found.conflicts)
    assert line["minimum_distance"] == pytest.approx(np.nanmean(tables[1].minimum()), rel=1e-3)
    relative = np.nanmean(tables[1].minimum()) / tables[1].radius
    assert heard["geometry/layer2/relative_minimum_distance"] == pytest.approx(relative, rel=1e-3)
    expected = spatial_similarity(*tables, permutations=0, resamples=0).pearson
    assert line["similarity"] == pytest.approx(expected, abs=1e-3)
    assert lines[1]["similarity"] == pytest.approx(1.0)


def test_the_trainers_own_logs_go_on(looked: Any) -> None:
    _, listener, _ = looked
    assert [step for step, logs in listener.heard if "loss" in logs] == [4, 8]


def test_a_look_at_a_step_that_is_logged_does_not_silence_the_trainer(tmp_path: Path) -> None:
    listener = Listener()
    trainer = own_trainer(tmp_path, listener)
    GeometryCallback(small("sentence", 12, 4), every=2, layers="last").attach(trainer)
    trainer.train()
    assert [step for step, logs in listener.heard if "loss" in logs] == [4, 8]


def test_training_is_the_same_with_and_without_it(tmp_path: Path, looked: Any) -> None:
    trainer = own_trainer(tmp_path)
    trainer.train()
    watched = looked[0].model.state_dict()
    assert all(torch.equal(value, watched[key]) for key, value in trainer.model.state_dict().items())


def test_without_attaching_it_writes_to_the_history(tmp_path: Path) -> None:
    trainer = own_trainer(tmp_path, GeometryCallback(small("sentence", 12, 4), every=100, layers="last"))
    trainer.train()
    assert [entry["step"] for entry in trainer.state.log_history if "geometry/layer2/clusters" in entry] == [0, 8]


class Own(torch.nn.Module):
    """A user's own model, which transformers knows nothing of."""

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
    trainer = own_trainer(tmp_path / "out", model=Own(bare))
    GeometryCallback(small("sentence", 12, 4), layers="last", results=results).attach(trainer)
    trainer.train()
    assert len(results.read_text().splitlines()) == 2
    assert find_encoder(Own(bare)) is bare
    assert find_encoder(Own(bare, bare), "parts.1") is bare
    assert find_encoder(None, bare) is bare
    with pytest.raises(InputError, match="2 encoders found in Own; name one, as GeometryCallback"):
        find_encoder(Own(bare, hf.AutoModel.from_pretrained(FOLDER, dtype=torch.float32)))
    with pytest.raises(InputError, match="encoder 'nothing' requested; the model has no submodule of this name"):
        find_encoder(Own(bare), "nothing")


def test_the_encoder_is_found_under_an_adapter() -> None:
    import peft

    model = hf.AutoModelForSequenceClassification.from_pretrained(FOLDER, num_labels=20, dtype=torch.float32)
    adapted = peft.get_peft_model(model, peft.LoraConfig(target_modules=["query"]))
    wrapped = Encoder.wrap(find_encoder(adapted), hf.AutoTokenizer.from_pretrained(FOLDER), name="adapted")
    assert type(wrapped.model).__name__ == "BertModel"


def test_at_most_so_many_examples_are_taken_always_the_same_ones() -> None:
    split = load_task("toy-pos").split("train")
    few = subsample(split, 100, 0)
    assert len(few) == 100
    assert len(np.unique(few.sentence)) < 20
    np.testing.assert_array_equal(few.sentence, subsample(split, 100, 0).sentence)
    assert not np.array_equal(few.sentence, subsample(split, 100, 1).sentence)
    assert len(subsample(split, 10**6, 0)) == len(split)


def test_two_labels_have_no_similarity(tmp_path: Path) -> None:
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
def test_unfit_options_are_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        GeometryCallback(**options)
    assert message in str(refused.value)


def test_what_only_the_training_shows_to_be_unfit_is_one_line_too(tmp_path: Path) -> None:
    trainer = own_trainer(tmp_path)
    trainer.callback_handler.processing_class = None
    GeometryCallback(small()).attach(trainer)
    with pytest.raises(InputError, match="no tokenizer arrived; give GeometryCallback"):
        trainer.train()
    (tmp_path / "file").write_text("")
    trainer = own_trainer(tmp_path)
    GeometryCallback(small(), layers="last", results=tmp_path / "file" / "results").attach(trainer)
    with pytest.raises(WorkError, match="results .* cannot be written"):
        trainer.train()
