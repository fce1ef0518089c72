"""GeometryCallback measures what the library measures, reaches every logger, and does not change the training."""

import json
import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from sklearn.neighbors import NearestCentroid

from closerlook.encoders.encoder import Encoder
from closerlook.encoders.source import EMBEDDED, resolve
from closerlook.errors import CloserLookError, InputError, WorkError
from closerlook.geometry import cluster, cluster_distances, label_distances, spatial_similarity
from closerlook.report.watched import write_watched
from closerlook.representations.extract import extract
from closerlook.tasks import load_task
from closerlook.tasks.task import Task
from closerlook.tuning import GeometryCallback
from closerlook.tuning.alarms import Alarm
from closerlook.tuning.callback import find_encoder
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
    callback = GeometryCallback(small(), every=3, layers="0,2", results=results, max_share=None)
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
    assert line["clusters"] == clustering.n_clusters == logged["geometry/small-token/layer2/clusters"]
    assert (line["n"], line["labels"]) == (len(space.y), clustering.n_labels)
    assert line["separable"] == clustering.is_separable == bool(logged["geometry/small-token/layer2/separable"])
    assert line["conflicts"] == len(clustering.conflicts)
    assert line["minimum_distance"] == pytest.approx(np.nanmean(tables[1].minimum()), rel=1e-3)
    relative = np.nanmean(tables[1].minimum()) / tables[1].radius
    assert logged["geometry/small-token/layer2/relative_minimum_distance"] == pytest.approx(relative, rel=1e-3)
    expected = spatial_similarity(*tables, permutations=0, resamples=0).pearson
    assert line["similarity"] == pytest.approx(expected, abs=1e-3)
    assert lines[1]["similarity"] == pytest.approx(1.0)


def test_the_results_file_becomes_a_page(measured_training: Any) -> None:
    page, training = write_watched(Path(measured_training[0].args.output_dir) / "new" / "geometry.jsonl", figures=False)
    assert training.rows.step.unique().tolist() == [0, 3, 6, 8]
    assert "small-token" in page.read_text()


def test_the_trainer_still_logs_its_own_values(measured_training: Any) -> None:
    _, recorder, _ = measured_training
    assert [step for step, logs in recorder.entries if "loss" in logs] == [4, 8]


def test_measuring_at_a_logging_step_does_not_suppress_the_trainers_log(tmp_path: Path) -> None:
    recorder = Recorder()
    trainer = own_trainer(tmp_path, recorder)
    GeometryCallback(small("sentence", 12, 4), every=2, layers="last", max_share=None).attach(trainer)
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
    assert [
        entry["step"] for entry in trainer.state.log_history if "geometry/small-sentence/layer2/clusters" in entry
    ] == [0, 8]


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
    assert "geometry/two/layer2/similarity" not in logged
    assert "geometry/two/layer2/clusters" in logged
    assert all(math.isfinite(value) for value in logged.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every is 0; expected a whole number, 1 or more"),
        ({"max_points": 1.5}, "max_points is 1.5; expected a whole number"),
        ({"max_share": 5}, "max_share is 5; expected a number from 0 to 1, or None for no limit"),
        ({"alarm": "loud"}, "alarm is 'loud'; expected a function that takes an Alarm, or True or False"),
        ({"tasks": "toy-poss"}, "toy-poss"),
        ({"tasks": []}, "no task given"),
        ({"tasks": ["toy-pos", "toy-pos"]}, "tasks are toy-pos, toy-pos; expected different names"),
        ({"held_out": "train"}, "held_out is 'train', the split that is measured; expected another split"),
        ({"held_out": "dev"}, "split 'dev' requested; task toy-pos has train, test"),
        ({"split": "dev"}, "split 'dev' requested; task toy-pos has train, test"),
        ({"results": FOLDER}, "bert-tiny is a folder; expected a file"),
    ],
)
def test_invalid_options_are_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        GeometryCallback(**options)
    assert message in str(refused.value)


def test_held_out_accuracy_is_that_of_the_nearest_label_mean(measured_training: Any) -> None:
    trainer, _, lines = measured_training
    now = Encoder.wrap(trainer.model, trainer.processing_class, name="now")
    train, test = (extract(now, small(), layers=2, splits=split)[0] for split in ("train", "test"))
    reference = NearestCentroid().fit(train.X, train.label_names)
    expected = reference.score(test.X, test.label_names)
    assert lines[-1]["held_out_split"] == "test"
    assert lines[-1]["held_out_n"] == len(test.y)
    assert lines[-1]["held_out_accuracy"] == pytest.approx(expected, abs=1.5 / len(test.y))
    assert 0 < expected < 1


def test_several_tasks_are_measured_and_their_names_are_in_the_logged_names(tmp_path: Path) -> None:
    recorder, tasks = Recorder(), [small("sentence", 12, 4), small("token", 10, 4)]
    trainer = own_trainer(tmp_path, recorder, max_steps=2)
    GeometryCallback(tasks, layers="last", results=tmp_path / "g.jsonl").attach(trainer)
    trainer.train()
    logged = {name for _, logs in recorder.entries for name in logs if name.startswith("geometry/")}
    for task in tasks:
        assert f"geometry/{task.name}/layer2/clusters" in logged
        assert f"geometry/{task.name}/layer2/held_out_accuracy" in logged
    lines = [json.loads(line) for line in (tmp_path / "g.jsonl").read_text().splitlines()]
    assert [(line["step"], line["task"]) for line in lines] == [(step, task.name) for step in (0, 2) for task in tasks]
    alone = own_trainer(tmp_path, max_steps=2)
    GeometryCallback(tasks[1], layers="last", results=tmp_path / "alone.jsonl").attach(alone)
    alone.train()
    last = json.loads((tmp_path / "alone.jsonl").read_text().splitlines()[-1])
    timed = {"seconds", "share"}
    assert {k: v for k, v in last.items() if k not in timed} == {k: v for k, v in lines[-1].items() if k not in timed}


def test_a_task_without_a_second_split_holds_out_a_fifth_of_train() -> None:
    whole = load_task("toy-question")
    only = Task(whole.name, whole.unit, whole.labels, (whole.split("train"),))
    (watched,) = GeometryCallback(only, max_points=10**6).tasks
    assert watched.held_out is not None
    assert len(watched.held_out) + len(watched.split) == len(whole.split("train"))
    assert not set(watched.held_out.texts) & set(watched.split.texts)
    (without,) = GeometryCallback(only, held_out=None, max_points=7).tasks
    assert without.held_out is None
    assert len(without.split) == 7


def test_without_time_only_the_start_and_the_end_are_measured_and_a_message_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = own_trainer(tmp_path)
    options = {"every": 2, "layers": "last", "max_share": 0.0, "results": tmp_path / "g.jsonl"}
    GeometryCallback(small("sentence", 12, 4), **options).attach(trainer)
    trainer.train()
    lines = [json.loads(line) for line in (tmp_path / "g.jsonl").read_text().splitlines()]
    assert [(line["step"], line["skipped"]) for line in lines] == [(0, 0), (8, 3)]
    skipped = [record for record in caplog.records if "is not measured" in record.message]
    messages = [record.message for record in skipped if record.levelno >= logging.WARNING]
    assert len(messages) == 1  # the others have a lower level
    assert messages[0].startswith("step 2 is not measured: a measurement takes ")


def test_a_damaged_encoder_raises_an_alarm_once_for_each_measure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A learning rate of 1 destroys what the encoder knows about words."""
    alarms: list[Alarm] = []
    trainer = own_trainer(tmp_path, learning_rate=1.0)
    task = small("token", 24, 12)
    options = {"every": 4, "layers": "last", "max_share": None, "results": tmp_path / "g.jsonl"}
    GeometryCallback(task, alarm=alarms.append, **options).attach(trainer)
    trainer.train()
    assert sorted(alarm.measure for alarm in alarms) == ["held_out_accuracy", "similarity"]
    lines = [json.loads(line) for line in (tmp_path / "g.jsonl").read_text().splitlines()]
    for alarm in alarms:
        (raised,) = [line for line in lines if alarm.measure in line["alarms"]]
        assert (raised["step"], raised[alarm.measure]) == (alarm.step, alarm.value)
        assert alarm.value < alarm.reference
        assert str(alarm) in [record.message for record in caplog.records if record.levelname == "WARNING"]


def test_a_training_without_effect_raises_no_alarm(tmp_path: Path) -> None:
    alarms: list[Alarm] = []
    trainer = own_trainer(tmp_path, learning_rate=0.0)
    GeometryCallback(small(), every=2, layers="last", max_share=None, alarm=alarms.append).attach(trainer)
    trainer.train()
    assert alarms == []


class Diverging(hf.TrainerCallback):
    """Makes a weight of the last layer NaN after the first step, as a training that diverges does."""

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any, **rest: Any) -> None:
        model.bert.encoder.layer[1].output.dense.bias.data[0] = math.nan


def test_vectors_that_are_not_finite_do_not_stop_the_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trainer = own_trainer(tmp_path, Diverging(), max_steps=1)
    GeometryCallback(small("token", 10, 4), layers="last", results=tmp_path / "g.jsonl").attach(trainer)
    trainer.train()
    lines = [json.loads(line) for line in (tmp_path / "g.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [0]
    assert "step 1: task small-token is not measured: encoder" in caplog.text
    assert "gives NaN or infinity at layer 2" in caplog.text
    trainer = own_trainer(tmp_path)
    Diverging().on_step_end(None, None, None, trainer.model)
    GeometryCallback(small("token", 10, 4), layers="last").attach(trainer)
    with pytest.raises(CloserLookError):  # at the start nothing is lost
        trainer.train()


def test_a_resumed_training_says_what_similarity_is_compared_with(tmp_path: Path) -> None:
    own_trainer(tmp_path, save_strategy="steps", save_steps=4, max_steps=4).train()
    trainer = own_trainer(tmp_path)
    GeometryCallback(small("token", 10, 4), layers="last", results=tmp_path / "g.jsonl").attach(trainer)
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    lines = [json.loads(line) for line in (tmp_path / "g.jsonl").read_text().splitlines()]
    assert [(line["step"], line["start_step"]) for line in lines] == [(4, 4), (8, 4)]
    assert lines[0]["similarity"] == pytest.approx(1.0)


def test_tensorboard_gets_the_same_names_and_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event files are read by TensorBoard itself; the Trainer puts `train/` before all names but evaluations."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "events"))
    trainer = own_trainer(tmp_path / "out", report_to="tensorboard")
    options = {"every": 4, "layers": "last", "max_share": None, "results": tmp_path / "g.jsonl"}
    GeometryCallback(small("token", 10, 4), **options).attach(trainer)
    trainer.train()
    (folder,) = {file.parent for file in (tmp_path / "events").rglob("events.out.*")}
    events = EventAccumulator(str(folder)).Reload()
    lines = [json.loads(line) for line in (tmp_path / "g.jsonl").read_text().splitlines()]
    for measure in ("clusters", "held_out_accuracy", "similarity", "relative_minimum_distance"):
        scalars = events.Scalars(f"train/geometry/small-token/layer2/{measure}")
        assert [scalar.step for scalar in scalars] == [0, 4, 8]
        assert [scalar.value for scalar in scalars] == pytest.approx([line[measure] for line in lines], rel=1e-5)
    assert [scalar.step for scalar in events.Scalars("train/geometry/seconds")] == [0, 4, 8]


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
