"""Existing trainings and several methods in a study: they are measured like the study's own fine-tunings."""

from pathlib import Path
from typing import Any

import pytest

from closerlook.errors import InputError
from closerlook.report import write_report
from closerlook.study.methods import read_method
from closerlook.study.plan import make_plan
from closerlook.study.results import load_results
from closerlook.study.runs import UNKNOWN
from closerlook.study.study import run_study
from closerlook.tuning import tune
from tests.study.small import small_values, write_tasks
from tests.tuning.trainings import train

QUICK: dict[str, Any] = {
    "measures": ["clusters", "distances", "similarity", "centroids", "classifier"],
    "layers": [2],
    "encoders": [],
}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tasks(tmp_path_factory.mktemp("tasks"))


def test_an_existing_run_gives_the_rows_of_a_fine_tuning(tasks: Path, tmp_path: Path) -> None:
    out = train(tmp_path / "out")
    run = {"name": "mine", "base": "bert-tiny", "checkpoints": str(out)}
    values = small_values(tasks) | QUICK | {"runs": [run]}
    done = run_study(values, tmp_path / "study", workers=1)
    assert not done.state.failed
    table = load_results(tmp_path / "study")
    assert set(table.encoder) == {"mine"}
    assert set(table.tuned_on) == {UNKNOWN}
    assert set(table.method) == {"full"}
    assert set(table.seed) == {5}
    clusters = table[(table.measure == "n_clusters") & (table.split == "train")].sort_values("step")
    assert clusters.step.tolist() == [0, 2, 4, 6]
    assert clusters.is_final.tolist() == [False, False, False, True]
    assert (table[(table.measure == "similarity_original") & (table.step == 0)].value == 1).all()
    assert write_report(tmp_path / "study", figures=False).exists()


def test_the_saved_weights_of_tune_give_the_numbers_of_the_studys_own_fine_tuning(tasks: Path, tmp_path: Path) -> None:
    values = small_values(tasks) | QUICK
    task = values["tasks"][0]
    own = run_study(values | {"encoders": ["bert-tiny"]}, tmp_path / "own", workers=1)
    settings = values["tuning"] | {"snapshots": values["snapshots"], "layers": [2], "save_weights": True}
    tune("bert-tiny", task, out=tmp_path / "tuned", **settings)
    run = {"name": "mine", "checkpoints": str(tmp_path / "tuned"), "tuned_on": task}
    other = run_study(values | {"runs": [run]}, tmp_path / "other", workers=1)
    assert not own.state.failed
    assert not other.state.failed
    first, second = (load_results(done.out) for done in (own, other))
    columns = ["step", "layer", "task", "split", "measure", "label"]
    for measure in ("n_clusters", "n_labels", "minimum_distance", "accuracy", "nc3_head"):
        a, b = (
            table[(table.measure == measure) & (table.tuned_on != "")].sort_values(columns) for table in (first, second)
        )
        assert len(a), measure
        assert a[columns].to_numpy().tolist() == b[columns].to_numpy().tolist(), measure
        assert b.value.to_numpy() == pytest.approx(a.value.to_numpy(), rel=1e-3, abs=1e-6), measure


def test_methods_are_encoders_of_their_own_in_the_table(tasks: Path, tmp_path: Path) -> None:
    values = small_values(tasks) | QUICK | {"encoders": ["bert-tiny"], "snapshots": 2}
    values["tuning"] |= {"methods": ["full", "lora 4", "head", "bitfit", "last 1", {"method": "random", "epochs": 1}]}
    done = run_study(values, tmp_path / "study", workers=1)
    assert not done.state.failed
    table = load_results(tmp_path / "study")
    tuned = table[table.tuned_on != ""]
    names = dict(tuned[["encoder", "method"]].drop_duplicates().to_numpy().tolist())
    assert names == {
        "bert-tiny": "full",
        "bert-tiny (lora 4)": "lora 4",
        "bert-tiny (head)": "head",
        "bert-tiny (bitfit)": "bitfit",
        "bert-tiny (last 1)": "last 1",
        "bert-tiny (random)": "random",
    }
    ends = tuned[tuned.is_final & (tuned.measure == "similarity_original") & (tuned.layer == 2)]
    similarity = dict(zip(ends.encoder, ends.value, strict=True))
    assert similarity["bert-tiny (head)"] == pytest.approx(1.0)  # the encoder does not change
    assert all(value < 1 - 1e-9 for name, value in similarity.items() if name != "bert-tiny (head)")
    assert write_report(tmp_path / "study", figures=False).exists()


def test_a_plan_with_runs_alone_needs_no_encoders_and_one_without_both_is_refused(tasks: Path) -> None:
    assert make_plan({"tasks": ["toy-pos"], "runs": [{"checkpoints": "out"}]}).encoders == []
    with pytest.raises(InputError, match=r"encoders is empty; .* or runs \(--run\)"):
        make_plan({"tasks": ["toy-pos"]})
    with pytest.raises(InputError, match="tuned_on 'toy-dep', which is not among the tasks"):
        make_plan({"tasks": ["toy-pos"], "runs": [{"checkpoints": "out", "tuned_on": "toy-dep"}]})


@pytest.mark.parametrize("entry", ["lorax", "last", "last two", 4, {"rank": 3}, {"method": 5}])
def test_an_unknown_method_is_refused_with_the_names(entry: Any) -> None:
    with pytest.raises(InputError, match="expected full, lora, 'lora 4', head, bitfit, 'last 2' or random"):
        read_method(entry)


def test_a_base_of_another_shape_is_refused(tasks: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer, BertConfig, BertModel

    from tests.tuning.trainings import BASE

    wide = tmp_path / "wide"
    model = BertModel(
        BertConfig(vocab_size=30522, hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=8)
    )
    model.save_pretrained(wide)
    AutoTokenizer.from_pretrained(BASE).save_pretrained(wide)
    out = train(tmp_path / "out")
    values = small_values(tasks) | QUICK | {"runs": [{"base": str(wide), "checkpoints": str(out)}]}
    with pytest.raises(InputError, match="its checkpoints have 2 layers × 128, base wide has 3 × 32"):
        run_study(values, tmp_path / "study", workers=1)
