"""A study may be run in pieces, on several machines: their cells in one folder are the cells of the whole study."""

import json
import shutil
from pathlib import Path

import pandas as pd

from closerlook.report.study_facts import missing
from closerlook.report.writing import load_study
from closerlook.study.results import load_results
from closerlook.study.study import run_study
from tests.study.small import begun, small_plan, values


def test_cells_of_pieces_make_the_whole_study_without_their_vectors(tasks: Path, tmp_path: Path) -> None:
    names = [str(tasks / "words"), str(tasks / "questions")]
    measures = ["clusters", "distances", "similarity"]
    whole = run_study(small_plan(tasks, tasks=names, measures=measures), tmp_path / "whole", engine="here")
    joined = tmp_path / "joined"
    for number, name in enumerate(names):
        piece = run_study(small_plan(tasks, tasks=[name], measures=measures), tmp_path / f"{number}", engine="here")
        shutil.copytree(piece.out / "cells", joined / "cells", dirs_exist_ok=True)
    done = run_study(small_plan(tasks, tasks=names, measures=measures), joined, engine="here")
    pd.testing.assert_frame_equal(values(load_results(done.out)), values(load_results(whole.out)))
    kinds = {
        json.loads(file.read_text())["kind"] for key in begun(joined) for file in joined.glob(f"cells/*/{key}.json")
    }
    assert kinds <= {"extract"}  # one cell extracts all tasks of an encoder, so its key is new


def test_a_table_of_finished_cells_runs_only_what_needs_no_vectors(tasks: Path, tmp_path: Path) -> None:
    names = [str(tasks / "words"), str(tasks / "questions")]
    measures = ["clusters", "distances", "similarity", "centroids"]
    piece = run_study(small_plan(tasks, tasks=names[:1], measures=measures), tmp_path / "piece", engine="here")
    joined = tmp_path / "joined"
    shutil.copytree(piece.out / "cells", joined / "cells")
    removed = {"comparison": 0, "centroids": 0, "extract": 0}
    for file in joined.glob("cells/*/*.json"):
        kind = json.loads(file.read_text())["kind"]
        if kind in removed:
            removed[kind] += 1
            file.unlink()
    plan = small_plan(tasks, tasks=names, measures=measures)
    done = run_study(plan, joined, engine="here", finished_only=True)
    assert min(removed.values()) > 0
    assert len(begun(joined)) == done.state.computed == removed["comparison"] + removed["centroids"]
    pd.testing.assert_frame_equal(values(load_results(joined)), values(load_results(piece.out)))
    assert not done.state.failed
    notes = missing(load_study(joined))
    assert f"{done.state.blocked} cells have not run yet" in notes[0]
