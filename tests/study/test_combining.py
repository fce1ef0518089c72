"""The results of a study that was run in pieces, combined from their tables."""

import json
import logging
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from closerlook.errors import InputError
from closerlook.report.archive import archive
from closerlook.report.writing import load_study, write_report
from closerlook.study.combining import combine_results
from closerlook.study.explored import StoredExplorer, read_explorers, write_explorers
from closerlook.study.results import COLUMNS, load_results, read_manifest
from tests.report.studies import frame, made_up, write_study

SPACE = {"encoder": "bert", "task": "animals", "step": 0, "layer": 2, "is_final": False, "measure": "n_clusters"}
RUN = SPACE | {"tuned_on": "animals", "method": "full", "step": 10, "is_final": True}


def combined(tmp_path: Path, *tables: pd.DataFrame) -> pd.DataFrame:
    """The table that is combined from those of pieces without manifests."""
    folders = [write_study(tmp_path / f"piece-{at}", table) for at, table in enumerate(tables)]
    return load_results(combine_results(folders, tmp_path / "whole"))


def manifest_of(tmp_path: Path, *manifests: dict[str, Any] | None, cells: tuple[str, ...] = ("a b", "b c")) -> Any:
    """The manifest that is combined from those of pieces. cells: the keys in the table of each piece."""
    folders = [
        write_study(tmp_path / f"piece-{at}", frame(SPACE | {"cell": key} for key in keys.split()), manifest)
        for at, (manifest, keys) in enumerate(zip(manifests, cells, strict=True))
    ]
    combine_results(folders, tmp_path / "whole")
    return read_manifest(tmp_path / "whole")


def points(task: str, seed: int = 0, encoder: str = "bert", shown: int = 3) -> StoredExplorer:
    return StoredExplorer(encoder, task, task, seed, [2], 9, 9, shown, "packed")


# ---- the table ----


def test_pieces_with_different_seeds_make_the_table_of_the_whole_study(tmp_path: Path) -> None:
    whole = write_study(tmp_path / "at once", made_up(seeds=(0, 1)))
    table = combined(tmp_path, made_up(seeds=(0,)), made_up(seeds=(1,)))
    names = [name for name in COLUMNS if name not in {"value", "ci_low", "ci_high", "n"}]
    expected = load_results(whole).sort_values(names, kind="stable", ignore_index=True)
    pd.testing.assert_frame_equal(table, expected)


def test_a_measurement_of_several_pieces_is_taken_from_the_first(tmp_path: Path) -> None:
    pieces = [frame([SPACE | {"value": value}, SPACE | {"layer": value, "value": value}]) for value in (3, 4)]
    table = combined(tmp_path, *pieces)
    assert table[["layer", "value"]].to_numpy().tolist() == [[2, 3], [3, 3], [4, 4]]


@pytest.mark.parametrize("name", ["tuned_on", "method", "split", "pool"])
def test_a_name_that_is_missing_means_the_same_as_an_empty_one(tmp_path: Path, name: str) -> None:
    assert len(combined(tmp_path, *(frame([SPACE | {name: value}]) for value in ("", None)))) == 1


@pytest.mark.parametrize(
    ("measure", "first", "second"),
    [
        ("accuracy", {"text": "32×32"}, {"text": "64×64"}),
        ("minimum_distance", {"label": "cat", "other": "dog"}, {"label": "cat", "other": "eel"}),
        ("blocked_merge", {"label": "cat", "other": "dog", "text": "{}"}, {"label": "eel", "other": "dog"}),
    ],
)
def test_a_result_that_names_another_label_or_probe_is_no_second_measurement(
    tmp_path: Path, measure: str, first: dict[str, str], second: dict[str, str]
) -> None:
    table = combined(tmp_path, *(frame([SPACE | {"measure": measure} | one]) for one in (first, second)))
    assert table["label"].fillna("").tolist() == [first.get("label", "")]
    assert table["text"].fillna("").tolist() == [first.get("text", "")]


@pytest.mark.parametrize(
    ("measure", "first", "second"),
    [
        ("label_distance", {"label": "cat", "other": "dog"}, {"label": "cat", "other": "eel"}),
        ("similarity_encoder", {"other": "bert-tiny"}, {"other": "bert-mini"}),
        ("clusters_at_tau", {"text": "1e-06"}, {"text": "1e-04"}),
        ("of a later version", {"text": "one"}, {"text": "another"}),
    ],
)
def test_measurements_of_other_labels_encoders_or_settings_are_all_taken(
    tmp_path: Path, measure: str, first: dict[str, str], second: dict[str, str]
) -> None:
    assert len(combined(tmp_path, *(frame([SPACE | {"measure": measure} | one]) for one in (first, second)))) == 2


def test_rows_that_one_piece_repeats_are_all_kept(tmp_path: Path) -> None:
    merges = frame([SPACE | {"measure": "blocked_merge", "label": "cat", "text": "{}"}] * 2)
    assert len(combined(tmp_path, merges, merges)) == 2


def test_archives_with_numbers_of_32_bits_are_combined_in_the_types_of_a_table(tmp_path: Path) -> None:
    whole = write_study(tmp_path / "seed-0", made_up(seeds=(0,)))
    archive(write_study(tmp_path / "all-1", made_up(seeds=(1,))), tmp_path / "seed-1")
    table = load_results(combine_results([whole, tmp_path / "seed-1"], tmp_path / "whole"))
    stored = pd.read_parquet(tmp_path / "whole" / "results.parquet")
    assert stored["value"].dtype == "float64"
    assert {name: str(kind) for name, kind in table.dtypes.items()} == COLUMNS
    assert sorted(table["seed"].unique()) == [0, 1]


def test_the_csv_file_has_the_same_table(tmp_path: Path) -> None:
    table = combined(tmp_path, made_up(seeds=(0,)), made_up(seeds=(1,)))
    pd.testing.assert_frame_equal(load_results(tmp_path / "whole" / "results.csv"), table, check_exact=True)


def test_the_page_of_combined_results_can_be_written(tmp_path: Path) -> None:
    manifests = [{"study": "golden", "plan": {"seeds": [seed]}, "seconds": 1.5} for seed in (0, 1)]
    folders = [
        write_study(tmp_path / f"{seed}", made_up(seeds=(seed,)), manifest) for seed, manifest in enumerate(manifests)
    ]
    combine_results(folders, tmp_path / "whole")
    assert write_report(tmp_path / "whole", figures=False).exists()
    assert {run.seed for run in load_study(tmp_path / "whole").all_runs} == {0, 1}


# ---- different trainings ----


def test_a_training_with_different_weights_is_left_out_at_all_steps_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = frame([RUN | {"value": 1, "weights": "a"}])
    start = RUN | {"step": 0, "is_final": False, "weights": "start"}
    second = frame([start, RUN | {"value": 2, "layer": 1, "weights": "b"}, RUN | {"seed": 1, "value": 3}])
    with caplog.at_level(logging.WARNING):
        table = combined(tmp_path, first, second)
    assert table["value"].tolist() == [1, 3]
    (message,) = caplog.messages
    assert message == (
        f"{tmp_path / 'piece-1'}: an earlier folder has different weights, so these are left out: "
        "bert on animals (full, seed 0)"
    )


def test_the_cells_of_a_training_that_is_left_out_do_not_count(tmp_path: Path) -> None:
    plan = {"plan": {"seeds": [0, 1]}, "cells": {"done": 3, "total": 5}}
    first = write_study(tmp_path / "first", frame([RUN | {"weights": "a", "cell": "1"}]), plan)
    rows = [RUN | {"weights": "b", "cell": cell, "layer": layer} for layer, cell in enumerate("22")]
    second = write_study(tmp_path / "second", frame([*rows, RUN | {"seed": 1, "cell": "3"}]), plan)
    combine_results([first, second], tmp_path / "whole")
    assert read_manifest(tmp_path / "whole")["cells"] == {"done": 5, "total": 5, "computed": 0}


def test_comparisons_with_a_training_that_is_left_out_are_left_out(tmp_path: Path) -> None:
    compared = RUN | {"seed": 2, "measure": "similarity_seed", "weights": "2"}
    second = [RUN | {"weights": "b"}, compared | {"other": "0"}, compared | {"other": "1"}]
    table = combined(tmp_path, frame([RUN | {"weights": "a"}]), frame(second))
    assert table["other"].dropna().tolist() == ["1"]


def test_weights_are_compared_with_those_of_trainings_that_were_taken(tmp_path: Path) -> None:
    pieces = [frame([RUN | {"value": value, "layer": value, "weights": one}]) for value, one in enumerate("abba")]
    assert combined(tmp_path, *pieces)["value"].tolist() == [0, 3]


@pytest.mark.parametrize("unknown", ["", None])
def test_unknown_weights_do_not_count_as_different(tmp_path: Path, unknown: str | None) -> None:
    rows = [(RUN, "a"), (SPACE, "b"), (RUN | {"layer": 1}, unknown), (SPACE | {"layer": 1}, unknown)]
    pieces = [frame([row | {"weights": weights}]) for row, weights in rows]
    assert len(combined(tmp_path, *pieces)) == 4


def test_a_pretrained_encoder_with_different_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="encoder bert has different weights in .*piece-0 and in .*piece-2; expected"):
        combined(tmp_path, *(frame([SPACE | {"weights": one}]) for one in "aab"))
    assert not (tmp_path / "whole").exists()


# ---- the manifest ----


def test_lists_of_the_plan_are_those_of_all_pieces_and_other_entries_those_of_the_first(tmp_path: Path) -> None:
    pairs = [{"tuned": "t", "probed": task} for task in "uv"]
    first = {"encoders": ["b"], "tasks": ["t"], "seeds": [1], "cross": pairs[:1], "measures": ["panel"], "pool": "cls"}
    second = {"encoders": ["a", "b"], "tasks": ["t", "u"], "seeds": [0], "cross": pairs, "measures": [], "pool": "mean"}
    plan = manifest_of(tmp_path, {"plan": first}, {"plan": second})["plan"]
    lists = {"encoders": ["b", "a"], "tasks": ["t", "u"], "seeds": [1, 0], "cross": pairs, "measures": ["panel"]}
    assert plan == lists | {"pool": "cls"}


def test_all_cross_pairs_with_some_are_all(tmp_path: Path) -> None:
    pairs = [{"tuned": "t", "probed": "u"}]
    assert manifest_of(tmp_path, {"plan": {"cross": pairs}}, {"plan": {"cross": "all"}})["plan"] == {"cross": "all"}


def test_names_of_encoders_and_existing_runs_of_all_plans_are_kept(tmp_path: Path) -> None:
    plans = [{"encoder_names": {name: name.upper()}, "runs": [{"checkpoints": name}]} for name in "ab"]
    plan = manifest_of(tmp_path, *({"plan": plan} for plan in plans))["plan"]
    assert plan == {"encoder_names": {"a": "A", "b": "B"}, "runs": [{"checkpoints": "a"}, {"checkpoints": "b"}]}


@pytest.mark.parametrize("entry", ["encoders", "tasks", "settings", "runs"])
def test_facts_of_encoders_tasks_settings_and_runs_are_merged_and_the_first_wins(tmp_path: Path, entry: str) -> None:
    manifest = manifest_of(tmp_path, {entry: {"b": {"at": 0}}}, {entry: {"a": {"at": 1}, "b": {"at": 1}}})
    assert list(manifest[entry].items()) == [("b", {"at": 0}), ("a", {"at": 1})]


def test_a_cell_of_several_pieces_counts_once_for_each_other_piece(tmp_path: Path) -> None:
    pieces = [{"plan": {"seeds": [at]}, "cells": {"done": 5, "total": 7, "computed": 5}} for at in range(3)]
    manifest = manifest_of(tmp_path, *pieces, cells=("a b", "b c", "b c"))
    assert manifest["cells"] == {"done": 12, "total": 18, "computed": 0}
    assert manifest["blocked"] == 6


def test_the_total_is_that_of_the_whole_plan_if_a_piece_has_it(tmp_path: Path) -> None:
    pieces = [({"seeds": [0, 1], "tasks": ["t"]}, 4, 20), ({"seeds": [1], "tasks": ["t"]}, 5, 9)]
    manifest = manifest_of(
        tmp_path, *({"plan": plan, "cells": {"done": done, "total": total}} for plan, done, total in pieces)
    )
    assert manifest["cells"] == {"done": 8, "total": 20, "computed": 0}


def test_the_total_of_a_later_graph_replaces_a_larger_one_that_an_earlier_version_counted(tmp_path: Path) -> None:
    plan = {"seeds": [0], "tasks": ["t"]}
    earlier, later = {"done": 10, "total": 20}, {"done": 5, "total": 5, "whole": 15}
    manifest = manifest_of(tmp_path, {"plan": plan, "cells": earlier}, {"plan": plan, "cells": later})
    assert manifest["cells"]["total"] == 15


def test_no_more_cells_are_done_than_the_whole_plan_has(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path, *[{"plan": {"seeds": [0]}, "cells": {"done": 5, "total": 5}}] * 2)
    assert manifest["cells"] == {"done": 5, "total": 5, "computed": 0}
    assert manifest["blocked"] == 0


def test_a_piece_that_replaces_trainings_is_given_first_but_the_whole_plan_gives_order_and_machine(
    tmp_path: Path,
) -> None:
    part = {
        "plan": {"encoders": ["b"]},
        "encoders": {"b": {"at": 0}},
        "hardware": {"host": "lent"},
        "cells": {"done": 4, "total": 4},
    }
    whole = {
        "plan": {"encoders": ["a", "b"]},
        "encoders": {"a": {"at": 1}, "b": {"at": 1}},
        "hardware": {"host": "own"},
        "cells": {"done": 7, "total": 8},
    }
    manifest = manifest_of(tmp_path, part, whole)
    assert manifest["plan"]["encoders"] == ["a", "b"]
    assert list(manifest["encoders"].items()) == [("a", {"at": 1}), ("b", {"at": 0})]
    assert manifest["hardware"] == {"host": "own"}
    assert manifest["cells"] == {"done": 8, "total": 8, "computed": 0}


def test_times_are_summed_and_the_largest_memory_counts(tmp_path: Path) -> None:
    zero = {"cells": 1, "seconds": 1.0, "cpu_seconds": 2.0, "peak_bytes": 9}
    first = {"kinds": {"compare": zero, "tune": zero | {"peak_bytes": None}}, "seconds": 1.5}
    second = {"kinds": {"comparison": zero | {"peak_bytes": 4}, "tune": zero}, "seconds": 2.0}
    manifest = manifest_of(tmp_path, first, second)
    total = {"cells": 2, "seconds": 2.0, "cpu_seconds": 4.0, "peak_bytes": 9}
    assert manifest["kinds"] == {"comparison": total, "tune": total}
    assert manifest["seconds"] == 3.5


def test_the_twenty_slowest_cells_of_all_pieces_are_listed(tmp_path: Path) -> None:
    pieces = [{"slowest": [{"key": f"{at}", "seconds": float(at)} for at in range(start, 30, 2)]} for start in (0, 1)]
    slowest = manifest_of(tmp_path, *pieces)["slowest"]
    assert [cell["seconds"] for cell in slowest] == list(range(29, 9, -1))


def test_failed_cells_are_listed_once_unless_another_piece_has_their_results(tmp_path: Path) -> None:
    failures = {key: {"key": key, "title": "a cell", "error": "no memory"} for key in "cxy"}
    cells = {"done": 3, "total": 5}
    first = {"plan": {"seeds": [0]}, "cells": cells, "failed": [failures["c"], failures["x"]]}
    second = {"plan": {"seeds": [1]}, "cells": cells, "failed": [failures["x"], failures["y"]]}
    manifest = manifest_of(tmp_path, first, second)
    assert manifest["failed"] == [failures["x"], failures["y"]]
    assert manifest["cells"] == {"done": 5, "total": 9, "computed": 0}
    assert manifest["blocked"] == 2


def test_the_manifest_describes_each_piece_and_the_machine_of_the_first(tmp_path: Path) -> None:
    cells = {"done": 2, "total": 3, "computed": 1}
    facts = [{"hardware": {"cores": at}, "packages": {"numpy": f"{at}"}, "version": f"0.{at}"} for at in (1, 2)]
    manifest = manifest_of(tmp_path, *({"cells": cells} | one for one in facts))
    assert manifest["pieces"] == [{"name": f"piece-{at}", "cells": cells} | one for at, one in enumerate(facts)]
    assert {name: manifest[name] for name in facts[0]} == facts[0]


def test_the_pieces_of_combined_results_stay_described(tmp_path: Path) -> None:
    earlier = [{"name": "seed-0", "version": "0.1"}, {"name": "seed-1", "version": "0.2"}]
    manifest = manifest_of(tmp_path, {"pieces": earlier}, {"version": "0.3"})
    assert manifest["pieces"][:2] == earlier
    assert [piece["name"] for piece in manifest["pieces"]] == ["seed-0", "seed-1", "piece-1"]


def test_pieces_without_a_manifest_count_the_cells_of_their_tables(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path, None, None)
    assert manifest["study"] == "golden"
    assert manifest["cells"] == {"done": 3, "total": 3, "computed": 0}
    unknown = {"cells": {"done": 2, "total": 2}, "hardware": {}, "packages": {}, "version": None}
    assert manifest["pieces"] == [{"name": f"piece-{at}"} | unknown for at in (0, 1)]


def test_without_a_first_manifest_the_next_one_has_the_settings(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path, None, {"version": "0.2.0", "plan": {"pool": "cls"}})
    assert (manifest["version"], manifest["plan"]) == ("0.2.0", {"pool": "cls"})


def test_the_manifest_has_a_checksum_of_each_table(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path, {"tables": {"results.csv": "of a piece"}}, None)
    assert set(manifest["tables"]) == {"results.parquet", "results.csv"}
    assert "of a piece" not in manifest["tables"].values()


# ---- points ----


def test_the_points_of_an_encoder_and_task_are_those_of_the_first_piece_that_has_them(tmp_path: Path) -> None:
    folders = [write_study(tmp_path / name, frame([SPACE])) for name in "abc"]
    write_explorers(folders[1], [points("t"), points("u", encoder="other"), points("u")])
    write_explorers(folders[2], [points("t", seed=1, shown=4), points("v", encoder="other")])
    combine_results(folders, tmp_path / "whole")
    found = [(one.encoder, one.task, one.shown) for one in read_explorers(tmp_path / "whole")]
    assert found == [("bert", "t", 3), ("bert", "u", 3), ("other", "u", 3), ("other", "v", 3)]


def test_points_of_a_training_that_is_left_out_are_left_out(tmp_path: Path) -> None:
    folders = [write_study(tmp_path / one, frame([RUN | {"weights": one}])) for one in "ab"]
    write_explorers(folders[1], [points("animals"), points("colours")])
    combine_results(folders, tmp_path / "whole")
    assert [one.task for one in read_explorers(tmp_path / "whole")] == ["colours"]


def test_without_points_there_is_no_file_of_them(tmp_path: Path) -> None:
    combined(tmp_path, frame([SPACE]), frame([SPACE]))
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    assert names == {"results.parquet", "results.csv", "manifest.json"}


# ---- what is refused ----


def test_fewer_than_two_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 folder given to combine; expected at least two pieces of a study"):
        combined(tmp_path, frame([SPACE]))


def test_pieces_of_different_studies_are_refused(tmp_path: Path) -> None:
    folders = [write_study(tmp_path / name, frame([SPACE]), {"study": name}) for name in ("one", "two")]
    with pytest.raises(InputError, match=r"two has results of the study 'two', and .*one of 'one'; expected pieces of"):
        combine_results(folders, tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


def test_without_a_manifest_the_table_names_the_study(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="of the study 'other', and .*piece-0 of 'golden'"):
        combined(tmp_path, frame([SPACE]), frame([SPACE | {"study": "other"}]))


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty/results\.parquet does not exist; expected the folder of a finished"):
        combine_results([write_study(tmp_path / "a", frame([SPACE])), tmp_path / "empty"], tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


def test_a_piece_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "a", frame([SPACE]))
    with pytest.raises(InputError, match=r"results\.parquet is given twice; expected a different folder for each"):
        combine_results([folder, folder / "results.parquet"], tmp_path / "whole")


def test_a_piece_as_the_folder_to_write_is_refused(tmp_path: Path) -> None:
    folders = [write_study(tmp_path / name, frame([SPACE])) for name in "ab"]
    before = (folders[1] / "results.parquet").read_bytes()
    with pytest.raises(InputError, match="b is one of the pieces; expected a new folder for the combined results"):
        combine_results(folders, tmp_path / "a" / ".." / "b")
    assert (folders[1] / "results.parquet").read_bytes() == before


@pytest.mark.parametrize("name", ["results.parquet", "results.csv"])
def test_a_folder_that_already_has_results_is_refused(tmp_path: Path, name: str) -> None:
    folders = [write_study(tmp_path / one, frame([SPACE])) for one in "ab"]
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / name).write_text("mine")
    with pytest.raises(InputError, match="whole already has results; expected a new folder"):
        combine_results(folders, tmp_path / "whole")
    assert (tmp_path / "whole" / name).read_text() == "mine"


def test_a_manifest_with_an_entry_of_the_wrong_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"piece-1/manifest\.json: kinds\.tune\.cells: Input should be .* expected the"
    ):
        manifest_of(tmp_path, None, {"kinds": {"tune": {"cells": "1"}}})


def test_results_appear_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("closerlook.study.combining.write_explorers", broken)
    with pytest.raises(KeyboardInterrupt):
        combined(tmp_path, frame([SPACE]), frame([SPACE]))
    assert list((tmp_path / "whole").iterdir()) == []


def test_the_files_of_pieces_stay_as_they_are(tmp_path: Path) -> None:
    folders = [write_study(tmp_path / one, frame([SPACE]), {"study": "s"}) for one in "ab"]
    before = {path: path.read_bytes() for folder in folders for path in folder.iterdir()}
    combine_results(folders, tmp_path / "whole")
    assert {path: path.read_bytes() for folder in folders for path in folder.iterdir()} == before
    assert json.loads((folders[0] / "manifest.json").read_text()) == {"study": "s"}


def test_tasks_of_the_same_name_with_different_data_are_not_combined(tmp_path: Path) -> None:
    manifests = [{"study": "s", "tasks": {"animals": {"hash": digest}}} for digest in ("one", "two")]
    with pytest.raises(InputError, match="the task animals has different examples or labels in"):
        manifest_of(tmp_path, *manifests)
    assert not (tmp_path / "whole").exists()
