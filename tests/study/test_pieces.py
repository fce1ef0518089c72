"""A study may be run in pieces, on several machines: their cells in one folder are the cells of the whole study."""

import json
import shutil
from pathlib import Path

import pandas as pd

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
