"""A study's archive: smaller, and the page made of it says the same."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from closerlook.errors import InputError
from closerlook.report.archive import archive, shown_rows
from closerlook.report.outline import draw_figures
from closerlook.report.writing import load_study
from closerlook.study.combining import combine_results
from closerlook.study.findings import judge_results
from closerlook.study.recomputing import recompute_similarities
from closerlook.study.results import load_results, read_manifest
from tests.report.studies import frame, golden_beyond, made_up, write_study


@pytest.mark.parametrize(
    "table",
    [golden_beyond(), made_up(tasks={"animals": ["cat", "dog", "eel"]}, seeds=(0, 1))],
    ids=["golden", "made up"],
)
def test_figures_and_verdicts_are_those_of_the_whole_table(table: pd.DataFrame, tmp_path: Path) -> None:
    whole = write_study(tmp_path / "whole", table, {"study": "kept"})
    page = archive(whole, tmp_path / "kept")
    assert page == tmp_path / "kept" / "report.html"
    before, after = load_study(whole), load_study(tmp_path / "kept")
    assert [(one.verdict, one.sentence) for one in judge_results(after)] == [
        (one.verdict, one.sentence) for one in judge_results(before)
    ]
    assert after.manifest == {"study": "kept"}
    for one, other in zip(draw_figures(before), draw_figures(after), strict=True):
        pd.testing.assert_frame_equal(one.data, other.data, rtol=2.0**-14, check_dtype=False)  # rounded distances


def test_rows_that_no_page_shows_are_excluded_and_numbers_are_rounded(tmp_path: Path) -> None:
    table = made_up()
    kept = shown_rows(table)
    assert 0 < len(kept) < len(table)
    assert (kept.value.dropna() == kept.value.dropna().astype(np.float32)).all()
    archive(write_study(tmp_path / "whole", table), tmp_path / "kept")
    pd.testing.assert_frame_equal(load_results(tmp_path / "kept"), kept, check_dtype=False)
    stored = parquet.read_schema(tmp_path / "kept" / "results.parquet")
    assert {str(stored.field(name).type) for name in ("value", "ci_low", "ci_high")} == {"float"}


def distances(labels: int, spaces: int, seed: int = 0) -> pd.DataFrame:
    """The rows of distances between labels of spaces at the last layer of a training, each less like the first."""
    rng = np.random.default_rng(seed)
    pairs = [(f"l{one}", f"l{other}") for one in range(labels) for other in range(one)]
    first = rng.lognormal(0, 0.3, len(pairs))
    place = {"encoder": "e", "tuned_on": "t", "task": "t", "layer": 2, "is_final": False, "measure": "label_distance"}
    return frame(
        place | {"step": step, "label": one, "other": other, "value": value}
        for step in range(spaces)
        for (one, other), value in zip(pairs, first * rng.lognormal(0, 0.1 * step, len(pairs)), strict=True)
    )


@pytest.mark.parametrize(("labels", "bits"), [(14, 24), (15, 16), (32, 16), (33, 10)])
def test_the_more_distances_the_spaces_of_a_task_have_the_more_they_are_rounded(labels: int, bits: int) -> None:
    """14 labels have 91 distances, 15 have 105, 32 have 496, 33 have 528."""
    whole = distances(labels, 2)
    error = np.abs(shown_rows(whole).value.to_numpy(float) / whole.value.to_numpy(float) - 1).max()
    assert 2.0 ** -(bits + 2) < error <= 2.0**-bits


@pytest.mark.parametrize(
    ("measure", "bits"), [("centroid_x", 10), ("shift_length", 12), ("minimum_distance", 16), ("accuracy", 24)]
)
def test_numbers_that_are_only_drawn_are_rounded_more(measure: str, bits: int) -> None:
    whole = distances(30, 1).assign(measure=measure)
    error = np.abs(shown_rows(whole).value.to_numpy(float) / whole.value.to_numpy(float) - 1).max()
    assert 2.0 ** -(bits + 2) < error <= 2.0**-bits


def test_the_keys_of_cells_are_shortened_and_cells_of_an_archive_and_its_study_count_once(tmp_path: Path) -> None:
    keys = [f"{'0123456789abcdef' * 3}{cell:016d}"[::-1] for cell in range(3)]
    table = distances(3, 1).assign(cell=keys)
    manifest = {"study": "s", "cells": {"done": 3, "total": 5}}
    whole = write_study(tmp_path / "whole", table, manifest)
    archive(whole, tmp_path / "kept")
    assert sorted(load_results(tmp_path / "kept").cell) == sorted(key[:10] for key in keys)
    combine_results([tmp_path / "kept", whole], tmp_path / "both")
    assert read_manifest(tmp_path / "both")["cells"] == {"done": 3, "total": 5, "computed": 0}


def test_the_split_with_the_fewest_labels_decides_how_distances_are_rounded() -> None:
    table = pd.concat([distances(33, 1), distances(5, 1).assign(split="test")], ignore_index=True)
    assert shown_rows(table).value.tolist() == table.value.astype(np.float32).tolist()


@pytest.mark.parametrize("labels", [5, 15, 33, 50])
def test_rounding_changes_similarities_by_less_than_a_thousandth(labels: int) -> None:
    whole = distances(labels, 9)
    rows = [
        whole.iloc[[0]].assign(measure=f"similarity{kind}_original", step=step, label=None, other=None)
        for kind in ("", "_spearman")
        for step in range(1, 9)
    ]
    table = pd.concat([whole, *rows], ignore_index=True)
    before, after = (recompute_similarities(one).recomputed for one in (table, shown_rows(table)))
    assert before.between(0.2, 0.99).sum() > 8
    np.testing.assert_allclose(after, before, atol=1e-3)


def test_rows_are_grouped_by_measure_and_distances_also_by_encoder_and_task() -> None:
    rows = [
        distances(4, 1).assign(encoder=encoder, step=step, measure=measure)
        for step in range(3)
        for encoder in ("b", "a")
        for measure in ("label_distance", "accuracy")
    ]
    kept = shown_rows(pd.concat(rows, ignore_index=True))
    runs = (kept[["measure", "encoder", "step"]].iloc[::6]).to_numpy().tolist()
    assert runs == [
        *(["label_distance", encoder, step] for encoder in ("b", "a") for step in range(3)),
        *(["accuracy", encoder, step] for step in range(3) for encoder in ("b", "a")),
    ]


def test_an_archive_with_the_distances_of_the_last_layer_says_the_same_on_fewer_rows(tmp_path: Path) -> None:
    table = made_up(layers=(0, 1, 2))
    whole = write_study(tmp_path / "whole", table)
    archive(whole, tmp_path / "all")
    archive(whole, tmp_path / "last", distances="last")
    both = [load_results(tmp_path / name) for name in ("all", "last")]
    kept = [one[one.measure == "label_distance"] for one in both]
    assert set(kept[0].layer) == {0, 1, 2}
    assert set(kept[1].layer) == {2}
    rest = [one[one.measure != "label_distance"].reset_index(drop=True) for one in both]
    pd.testing.assert_frame_equal(*rest)
    figures = [draw_figures(load_study(tmp_path / name)) for name in ("all", "last")]
    for one, other in zip(*figures, strict=True):
        pd.testing.assert_frame_equal(one.data, other.data)


def test_an_archive_with_the_distances_of_ends_has_those_before_and_after_fine_tuning_only() -> None:
    train = made_up(layers=(0, 1, 2), steps=(0, 1, 10))
    of_train = train[train.measure.isin(["label_distance", "blocked_merge"])]
    kept = shown_rows(pd.concat([train, of_train.assign(split="test")]), "ends")
    distances = kept[kept.measure == "label_distance"]
    assert set(zip(distances.layer, distances.step, strict=True)) == {(2, 0), (2, 10)}
    assert set(distances.split) == {"train", "test"}
    assert set(kept[kept.measure == "blocked_merge"].split) == {"train"}


def test_the_study_itself_is_not_overwritten(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "whole", golden_beyond())
    before = (folder / "results.parquet").read_bytes()
    with pytest.raises(InputError, match="is the study itself"):
        archive(folder, folder)
    assert (folder / "results.parquet").read_bytes() == before


def test_the_last_layer_is_the_highest_one_measured_not_the_depth_of_the_encoder(tmp_path: Path) -> None:
    """A study with `layers: [1]` of two: rows of the fine-tuning's own head are at layer 2."""
    table = made_up(layers=(1,))
    head = table[(table.measure == "accuracy") & table["is_final"]].assign(measure="head_accuracy", layer=2)
    table = pd.concat([table, head], ignore_index=True)
    kept = shown_rows(table)
    for measure in ("label_distance", "minimum_distance", "label_clusters", "blocked_merge"):
        assert len(kept[kept.measure == measure]) > 0, measure
    whole = write_study(tmp_path / "whole", table)
    archive(whole, tmp_path / "kept")
    names = [[figure.kind for figure in draw_figures(load_study(folder))] for folder in (whole, tmp_path / "kept")]
    assert names[0] == names[1]
    assert {"distances", "label-distances"} <= set(names[0])
