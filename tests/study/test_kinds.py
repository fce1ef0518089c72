"""Each kind of cell has everything that a study needs of it, and its rows contain only its own measures."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from closerlook.cli import main
from closerlook.geometry import describe_space
from closerlook.study.files import read_result
from closerlook.study.kinds import KINDS, MEASURES, REQUESTS, _refuse_duplicates, kind_of, panel
from closerlook.study.kinds.panel import Scalar, panel_rows
from closerlook.study.measure import Measure
from closerlook.study.plan import Plan
from closerlook.study.study import CompletedStudy
from tests.study.test_panel_kinds import blobs


def test_the_rows_of_every_kind_are_registered_with_it(done: CompletedStudy) -> None:
    names = defaultdict(set)
    for key, cell in done.state.graph.cells.items():
        result = read_result(done.out, key)
        assert result is not None
        names[cell.kind] |= {row["measure"] for row in result["rows"]}
    elsewhere = {"checkpoint", "control", "description_length"}  # tested with existing trainings and with controls
    own = [kind for kind in KINDS if kind.name not in elsewhere]
    assert set(names) == {kind.name for kind in own}, "the study does not have every kind of cell"
    for kind in own:
        assert names[kind.name] <= {measure.name for measure in kind.measures}, kind.name


def test_rows_say_what_they_are_of(done: CompletedStudy) -> None:
    columns = {"space": set(), "label": {"label"}, "label pair": {"label", "other"}, "merge": {"label", "other"}}
    for key in done.state.graph.cells:
        result = read_result(done.out, key)
        assert result is not None
        for row in result["rows"]:
            expected = columns.get(MEASURES[row["measure"]].rows, set())
            assert expected <= set(row), row["measure"]
            assert ("label" in row) == ("label" in expected), row["measure"]


def test_a_name_that_is_defined_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="measure nc1 is defined twice; expected each once"):
        _refuse_duplicates("measure", ["nc1", "nc2", "nc1"])


def test_every_cell_has_the_kind_and_format_of_its_kind(done: CompletedStudy) -> None:
    for cell in done.state.graph.cells.values():
        assert (cell.kind, cell.format, cell.gpu) == (kind_of(cell).name, kind_of(cell).format, kind_of(cell).gpu)


def test_a_plan_requests_what_the_kinds_offer() -> None:
    assert set(REQUESTS) == {
        *("classifier", "clusters", "distances", "uncertainty", "similarity", "centroids", "panel", "nulls", "halves"),
        "explorer",
    }
    assert Plan(encoders=["bert-tiny"], tasks=["toy-pos"]).measures == list(REQUESTS)


def test_the_panel_has_all_scalars_of_the_geometry() -> None:
    space = blobs()
    names = set(describe_space(space.X, space.label_names, clusters=False).flat()) - {"largest_cluster_share"}
    assert names <= {scalar.measure.name for scalar in panel.SCALARS}


def test_a_new_scalar_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = Measure("mean_norm", "mean norm", "Euclidean length of a point, mean over points", group="dimension")
    scalar = Scalar(measure, lambda described: float(np.linalg.norm(described.X, axis=1).mean()))
    monkeypatch.setattr(panel, "SCALARS", [*panel.SCALARS, scalar])
    space = blobs()
    (row,) = [row for row in panel_rows(space, tau=1e-6) if row["measure"] == "mean_norm"]
    assert row["value"] == pytest.approx(np.linalg.norm(space.X, axis=1).mean())
    assert "mean_norm" in panel.content(Plan(encoders=["bert-tiny"], tasks=["toy-pos"]))["scalars"]


def test_describe_prints_a_new_scalar(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measure = Measure("mean_norm", "mean norm", "Euclidean length of a point, mean over points", group="dimension")
    monkeypatch.setattr(panel, "SCALARS", [*panel.SCALARS, Scalar(measure, lambda described: 7.0)])
    np.savez(tmp_path / "space.npz", X=blobs().X, y=blobs().label_names)
    with pytest.raises(SystemExit, match="0"):
        main(["describe", str(tmp_path / "space.npz"), "--json"])
    assert json.loads(capsys.readouterr().out)["panel"]["mean_norm"] == 7.0
