"""A plan is checked in full before any work, and every problem of it is told at once, in one line."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from closerlook.errors import InputError
from closerlook.probes.grid import GRID
from closerlook.study.plan import PRESETS, Plan, PlanError, make_plan, read_plan
from closerlook.study.resolving import resolve_plan, resolve_source
from tests.study.small import small_plan

LEAST: dict[str, Any] = {"encoders": "bert-tiny", "tasks": "toy-question"}


def refusal(**values: Any) -> str:
    with pytest.raises(InputError) as caught:
        make_plan(LEAST | values)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_encoders_and_tasks_are_enough(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("encoders: bert-tiny\ntasks: [toy-pos, toy-dep]\nsnapshots: {every: 10}\nseeds: 3\n")
    plan = read_plan(file)
    assert plan.encoders == ["bert-tiny"]
    assert plan.tasks == ["toy-pos", "toy-dep"]
    assert plan.snapshots == "every: 10"
    assert plan.seeds == [3]
    assert plan.splits == ["train", "test"]
    assert plan.classifier.sizes == GRID
    assert plan.tuning is not None


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_sound(preset: str) -> None:
    plan = read_plan(preset, encoders=["bert-tiny"])
    assert len(plan.tasks) == (2 if preset == "lora-vs-full" else 5)
    assert plan.cross
    assert plan.encoders == ["bert-tiny"]


def test_the_default_preset_is_the_embedded_encoder_on_the_embedded_tasks_with_one_cross_row() -> None:
    plan = read_plan("default")
    assert plan.encoders == ["bert-tiny"]
    assert all(task.startswith("toy-") for task in plan.tasks)
    assert plan.snapshots == 10  # before, after, and eight between
    assert plan.cross != "all"
    assert len(plan.cross) == 1


def test_paper_small_needs_encoders() -> None:
    with pytest.raises(InputError, match=r"paper-small has 1 problem: encoders is empty; .* \(--encoder\)"):
        read_plan("paper-small")


def test_lora_vs_full_needs_encoders_and_names_five_methods() -> None:
    with pytest.raises(InputError, match=r"lora-vs-full has 1 problem: encoders is empty; .* \(--encoder\)"):
        read_plan("lora-vs-full")
    plan = read_plan("lora-vs-full", encoders=["bert-tiny"])
    assert plan.tuning is not None
    assert plan.tuning.methods == ["full", "lora 4", "lora 16", "head", "last 2"]


def test_the_paper_preset_leaves_out_small_clusters_as_the_paper_does() -> None:
    assert read_plan("paper").geometry.min_points == 6
    assert len(read_plan("paper").encoders) == 5


def test_what_the_command_line_says_replaces_entries() -> None:
    plan = read_plan("default", tasks=["toy-role", "toy-fxn"], device="cpu", data=None)
    assert plan.tasks == ["toy-role", "toy-fxn"]
    assert plan.device == "cpu"


def test_replaced_tasks_of_a_preset_drop_its_cross_pairs_of_other_tasks_with_a_note(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert read_plan("default", tasks="mine.csv").cross == []
    assert caplog.messages == [
        "cross pairs of preset default dropped, because the tasks were replaced: toy-fxn → toy-role"
    ]
    plan = read_plan("paper", tasks=["ps-role", "mine.csv", "ps-fxn"])
    assert plan.cross != "all"
    assert [(pair.tuned, pair.probed) for pair in plan.cross] == [("ps-fxn", "ps-role"), ("ps-role", "ps-fxn")]
    assert caplog.messages[1].endswith("pos → ps-role, pos → ps-fxn, ps-role → pos, ps-fxn → pos")


def test_a_preset_whose_cross_pairs_all_fit_the_new_tasks_gives_no_note(caplog: pytest.LogCaptureFixture) -> None:
    assert len(read_plan("default", tasks=["toy-role", "toy-fxn"]).cross) == 1
    assert len(read_plan("default").cross) == 1
    assert caplog.messages == []


def test_cross_pairs_of_a_plan_file_are_never_dropped(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("encoders: bert-tiny\ntasks: [toy-role, toy-fxn]\ncross: [{tuned: toy-fxn, probed: toy-role}]\n")
    with pytest.raises(PlanError, match="cross names task 'toy-fxn', which is not among the tasks"):
        read_plan(file, tasks=["toy-role"])


def test_a_plan_comes_back_from_what_it_writes(tasks: Path) -> None:
    plan = small_plan(tasks, seeds=[1, 2], snapshots=[0, 1])
    assert make_plan(plan.to_dict()) == plan
    assert make_plan(yaml.safe_load(yaml.safe_dump(plan.to_dict()))) == plan


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"task": "toy-pos"}, "task is unknown; did you mean tasks?"),
        ({"tuning": {"epoch": 3}}, "tuning.epoch is unknown; did you mean epochs?"),
        ({"tuning": {"epochs": 0}}, "tuning.epochs: epochs is 0.0; expected a number above 0"),
        ({"tuning": {"lora": 0}}, "tuning.lora: lora is 0; expected True or a rank"),
        (
            {"tuning": {"trainer_arguments": {"seed": 3}}},
            "tuning.trainer_arguments: trainer argument seed is set by tune; give it as seed instead",
        ),
        ({"tuning": {"seed": 3}}, "tuning.seed is unknown"),
        ({"encoders": []}, "encoders is empty; expected one or more"),
        ({"tasks": {"a": 1}}, "tasks: expected a valid list (got {'a': 1})"),
        ({"tasks": ["a", "a"]}, "task 'a' is listed twice"),
        ({"seeds": [0, 0]}, "seed 0 is listed twice"),
        ({"seeds": [-1]}, "seeds.0: expected greater than or equal to 0 (got -1)"),
        ({"seeds": [True]}, "seeds.0: expected a valid integer (got True)"),
        ({"snapshots": "sometimes"}, "snapshots: snapshots 'sometimes' requested; expected log, epoch"),
        ({"snapshots": {"every": 0}}, "snapshots: snapshots 'every: 0' requested"),
        ({"layers": 1.5}, "layers: expected all, last, or numbers such as 2, [0, 2] or '0,2-4' (got 1.5)"),
        ({"layers": True}, "layers: expected all, last, or numbers"),
        ({"layers": [0, "1"]}, "layers: expected all, last, or numbers"),
        ({"measures": ["depth"]}, "measures.0: expected 'classifier', 'clusters'"),
        ({"classifier": {"sizes": [[0]]}}, "classifier.sizes: invalid sizes [[0]]"),
        ({"classifier": {"sizes": "large"}}, "classifier.sizes: invalid sizes 'large'"),
        ({"splits": ["test"]}, "splits ['test'] lacks train"),
        ({"control": "often"}, "control: expected true or false (got 'often')"),
        ({"control": True, "measures": ["clusters"]}, "control is about the classifier probes, but measures lacks"),
        ({"splits": "train"}, "the classifier needs a split other than train"),
        ({"device": "gpu"}, "device: expected auto, cpu, mps, cuda or cuda:N (got 'gpu')"),
        ({"cross": [{"tuned": "toy-question", "probed": "toy-pos"}]}, "cross names task 'toy-pos', which is not among"),
        ({"cross": [{"tuned": "toy-question", "probed": "toy-question"}]}, "cross pairs 'toy-question' with itself"),
        ({"geometry": {"attempts": "released"}}, "geometry.attempts: expected 'all' or 'both' (got 'released')"),
        (
            {"geometry": {"attempts": "both"}, "measures": ["panel"]},
            "geometry.attempts: both counts clusters, but measures lacks clusters",
        ),
        ({"geometry": {"tau": 0}}, "geometry.tau: expected greater than 0 (got 0)"),
        ({"uncertainty": {"resamples": 2}}, "uncertainty.resamples: expected greater than or equal to 4 (got 2)"),
        ({"measures": ["uncertainty", "clusters"]}, "uncertainty gives intervals of distances and similarity, but"),
        ({"tuning": None, "cross": "all"}, "cross needs fine-tuning, but tuning is null"),
    ],
)
def test_an_unfit_entry_is_named(values: dict[str, Any], message: str) -> None:
    assert message in refusal(**values)


def test_all_problems_of_a_plan_stand_in_one_line() -> None:
    told = refusal(nonsense=1, seeds=[-1], tuning={"epochs": -1, "speed": 2}, layers=True, measures="depth", threads=0)
    assert told.startswith("plan has 7 problems: ")
    for part in ("nonsense", "seeds.0", "tuning.epochs", "tuning.speed", "layers", "measures.0", "threads"):
        assert part in told


def test_problems_between_entries_are_counted_one_by_one() -> None:
    pair = {"tuned": "toy-question", "probed": "x"}
    told = refusal(tasks=["toy-question", "a", "a"], cross=[pair, pair], splits=["test"])
    assert told.startswith("plan has 5 problems: ")
    assert "the cross pair toy-question → x is listed twice" in told


EXPONENTS = """
name: 1e-3
encoders: {name: 5e-5, path: bert-tiny}
tasks: [toy-question, 2e4]
tuning:
  learning_rate: 1e-3
  trainer_arguments: {adam_epsilon: 1e-6, lr_scheduler_kwargs: {min_lr: 1E-7}}
  methods: [{method: lora 4, learning_rate: 5e-5}, {method: head, learning_rate: 1E-4, weight_decay: .5e-2}]
geometry: {tau: 1e-8, permutations: 2e3}
classifier: {sizes: [[3.2e1, 1e+2]]}
"""


def test_numbers_with_exponents_are_numbers_wherever_a_number_is_expected(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(EXPONENTS)
    plan = read_plan(file)
    assert plan.tuning is not None
    assert plan.tuning.learning_rate == 0.001
    assert plan.tuning.trainer_arguments == {"adam_epsilon": 1e-6, "lr_scheduler_kwargs": {"min_lr": 1e-7}}
    assert plan.tuning.methods == [
        {"method": "lora 4", "learning_rate": 5e-5},
        {"method": "head", "learning_rate": 1e-4, "weight_decay": 0.005},
    ]
    assert plan.classifier.sizes == ((32, 100),)
    assert (plan.geometry.tau, plan.geometry.permutations) == (1e-8, 2000)


def test_a_name_such_as_1e_3_stays_a_text(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(EXPONENTS)
    plan = read_plan(file)
    assert plan.name == "1e-3"
    assert plan.encoder_names == {"bert-tiny": "5e-5"}
    assert plan.tasks == ["toy-question", "2e4"]


KEYS = st.sampled_from([*Plan.model_fields, "encoder", ""])
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(KEYS, PLAIN, max_size=5))
def test_whatever_stands_in_a_plan_it_is_taken_or_refused_in_one_line(values: dict[str, Any]) -> None:
    told = ""
    try:
        plan = make_plan(LEAST | values)
    except InputError as error:
        told = str(error)
    if told:
        assert told.startswith("plan has ")
        assert len(told.splitlines()) == 1
    else:
        assert make_plan(plan.to_dict()) == plan


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"encoders: [", "is not YAML: while parsing"),
        (b"just words", "contains str; expected entries such as encoders and tasks"),
        (b"", "contains NoneType"),
        (b"\xff\xfe\x00", "is not UTF-8 text; expected YAML"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "plan.yaml"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_plan(file)
    assert "\n" not in str(caught.value)


def test_a_plan_that_is_not_there_is_refused_with_the_presets() -> None:
    with pytest.raises(InputError, match=r"plan nowhere\.yaml cannot be read: .*default, paper, paper-small"):
        read_plan("nowhere.yaml")


@pytest.mark.parametrize(("name", "meant"), [("defualt", "default"), ("paper_small", "paper-small")])
def test_a_preset_with_a_typing_error_is_recognised(name: str, meant: str) -> None:
    with pytest.raises(InputError, match=rf"plan {name} cannot be read: .*; did you mean {meant}\? "):
        read_plan(name)


def test_encoders_may_have_names() -> None:
    given = ["bert-tiny", {"name": "mine", "path": "out/checkpoint-500"}]
    plan = make_plan({"encoders": given, "tasks": "toy-pos"})
    assert plan.encoders == ["bert-tiny", "out/checkpoint-500"]
    assert plan.encoder_names == {"out/checkpoint-500": "mine"}
    assert make_plan(plan.to_dict()) == plan
    assert make_plan({"encoders": given[1], "tasks": "toy-pos"}).encoders == ["out/checkpoint-500"]


@pytest.mark.parametrize("encoder", [{"path": "x"}, {"name": 1, "path": "x"}, {"name": "a", "path": "x", "seed": 1}])
def test_an_encoder_with_other_entries_is_refused(encoder: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"encoders\.0: expected a path, a hub id, or {name: mine, path: out/"):
        make_plan({"encoders": [encoder], "tasks": "toy-pos"})


def test_two_encoders_cannot_have_the_same_name() -> None:
    named = [{"name": "mine", "path": path} for path in ("a", "b")]
    with pytest.raises(InputError, match="the name of an encoder 'mine' is listed twice"):
        make_plan({"encoders": named, "tasks": "toy-pos"})


# ---- opened ----


def problems(plan: Plan, store: Path) -> list[str]:
    with pytest.raises(PlanError) as caught:
        resolve_plan(plan, store)
    assert not store.exists()
    return caught.value.problems


def test_an_opened_plan_knows_encoders_tasks_and_settings(tasks: Path, tmp_path: Path) -> None:
    plan = small_plan(tasks)
    opened = resolve_plan(plan, tmp_path / "store")
    (task,) = plan.tasks
    assert opened.tasks[task].name == "words"
    assert opened.encoders["bert-tiny"][1].layers == 2
    assert opened.settings["bert-tiny", task].layers == [0, 2]
    assert opened.settings["bert-tiny", task].snapshot_layers == [2]
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": [0, 5]}, "layer 5 requested; bert-tiny has layers 0 to 2"),
        ({"snapshot_layers": "first"}, "layers 'first' requested"),
        ({"layers": 0, "classifier": {"layers": 1}}, "the classifier requests layer 1 of bert-tiny"),
        ({"encoders": "./nowhere"}, "encoder ./nowhere: there is no such folder"),
        ({"tasks": "nowhere.csv"}, "nowhere.csv: no such file or folder"),
        ({"tasks": "toy-poss"}, "task 'toy-poss' is unknown; did you mean toy-pos"),
        ({"tasks": "pos"}, "task pos needs UD English-PUD"),
        ({"splits": ["train", "dev"]}, "task words has train, test but no dev; name a column with split_column="),
        ({"pool": "middle"}, "pool 'middle' requested"),
        ({"snapshots": [0, 1000]}, "a snapshot at step 1000 requested; this training has steps 0 to 4"),
    ],
)
def test_what_cannot_be_used_is_refused_before_any_work(
    tasks: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    (told,) = problems(small_plan(tasks, **changes), tmp_path / "store")
    assert message in told


def test_a_task_with_one_label_cannot_be_tuned_on_but_can_be_looked_at(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / f"{split}.csv").write_text("text,label\na day,good\na night,good\n")
    plan = make_plan({"encoders": "bert-tiny", "tasks": str(tmp_path)})
    assert "all training examples have the label good" in problems(plan, tmp_path / "store")[0]
    assert resolve_plan(plan.model_copy(update={"tuning": None}), tmp_path / "store").tasks


def test_the_same_encoder_or_task_under_two_names_is_refused(tasks: Path, tmp_path: Path) -> None:
    from closerlook.encoders.source import resolve

    twice = ["bert-tiny", str(resolve("bert-tiny").folder)]
    words = str(tasks / "words")
    told = problems(small_plan(tasks, encoders=twice, tasks=[words, f"{words}/"]), tmp_path / "store")
    assert told == [
        f"{words} and {words}/ are the same task; expected each once",
        f"bert-tiny and {twice[1]} are the same encoder; expected each once",
    ]


def test_everything_missing_is_told_at_once(tasks: Path, tmp_path: Path) -> None:
    words = str(tasks / "words")
    plan = small_plan(tasks, encoders=["bert-tiny", "./nowhere"], tasks=[words, "no.csv", "pos"], layers=[0, 7])
    told = problems(plan, tmp_path / "store")
    assert len(told) == 4
    for part in ("layer 7", "./nowhere", "no.csv", "UD English-PUD"):
        assert any(part in line for line in told)


def test_problems_in_the_plan_and_outside_it_are_told_together(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(
        "encoders: [bert-tiny, ./nowhere]\ntasks: [toy-question, no.csv]\nlayers: 9\nspeed: high\nseeds: -1\n"
    )
    with pytest.raises(InputError, match=r"plan\.yaml has 5 problems: ") as caught:
        resolve_source(file, tmp_path / "store")
    for part in ("speed is unknown", "seeds.0", "layer 9 requested", "./nowhere", "no.csv"):
        assert part in str(caught.value)


def test_the_name_of_an_encoder_is_its_name_in_the_table(tasks: Path, tmp_path: Path) -> None:
    from closerlook.encoders.source import resolve
    from closerlook.study.cells import encoder_name

    path = str(resolve("bert-tiny").folder)
    named = make_plan({"encoders": {"name": "mine", "path": path}, "tasks": str(tasks / "words"), "tuning": None})
    opened = resolve_plan(named, tmp_path / "store")
    assert encoder_name(opened, path) == "mine"
    assert encoder_name(opened, f"random:{path}") == "random:mine"


def test_a_task_without_a_test_split_gets_one_that_workers_make_again(tmp_path: Path) -> None:
    from closerlook.study.cells import Cell, common_resources, task_hashes
    from closerlook.study.inputs import load_tasks

    file = tmp_path / "mine.csv"
    file.write_text("text,label\n" + "".join(f"text {i},{'ab'[i % 2]}\n" for i in range(20)))
    plan = make_plan({"encoders": "bert-tiny", "tasks": str(file), "test_share": 0.3})
    opened = resolve_plan(plan, tmp_path / "store")
    task = opened.tasks[str(file)]
    assert [(split.name, len(split)) for split in task.splits] == [("train", 14), ("test", 6)]
    assert "test share 0.3" in task.notes[-1]
    cell = Cell("any", 1, {}, common_resources(opened), (), "any")
    assert load_tasks(cell, task_hashes(opened, plan.tasks)) == [task]
    file.write_text(file.read_text().replace("text 3", "another"))
    moved = Cell("any", 1, {}, common_resources(opened) | {"data": "elsewhere"}, (), "any")  # not in the cache
    with pytest.raises(InputError, match="has changed since the study began"):
        load_tasks(moved, task_hashes(opened, plan.tasks))


def test_only_a_missing_test_split_is_made(tmp_path: Path) -> None:
    file = tmp_path / "mine-test.csv"
    file.write_text("text,label\na,x\nb,x\nc,y\nd,y\n")
    plan = make_plan({"encoders": "bert-tiny", "tasks": str(file)})
    assert "has test but no train" in problems(plan, tmp_path / "store")[0]
