"""The same results wherever cells are worked on: in this process, in others, on a cluster."""

from pathlib import Path

import pandas as pd
import pytest

from closerlook.errors import WorkError
from closerlook.study.engines import open_engine
from closerlook.study.files import read_result
from closerlook.study.results import load_results
from closerlook.study.study import CompletedStudy, run_study
from tests.study.processes import dask_cluster, finish
from tests.study.small import begun, small_plan, values, write_plan

pytestmark = pytest.mark.slow  # torch is loaded in every worker


def same(first: Path, second: Path) -> None:
    pd.testing.assert_frame_equal(values(load_results(first)), values(load_results(second)), check_exact=True)


def test_processes_give_the_same_bits(single: CompletedStudy, tasks: Path, tmp_path: Path) -> None:
    done = run_study(small_plan(tasks), tmp_path / "out", workers=2)
    assert done.state.computed == done.state.total
    assert len(list((done.out / "journal").glob("*.log"))) == 2
    same(done.out, single.out)


def test_a_script_without_a_guard_can_start_a_study(single: CompletedStudy, tasks: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    script = tmp_path / "script.py"
    plan = write_plan(tasks)
    script.write_text(
        "print('once')\n"
        "import closerlook\n"
        f"done = closerlook.run_study({str(plan)!r}, {str(tmp_path / 'out')!r}, workers=2)\n"
        "print(done.state.computed)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["once", str(single.state.total)]
    same(tmp_path / "out", single.out)


def test_a_cluster_gives_the_same_bits_and_gpu_cells_go_where_one_is_declared(
    single: CompletedStudy, tasks: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(write_plan(tasks).read_text().replace(str(tasks / "words"), "words"))  # relative to the study
    workers = (("--nthreads", "1", "--resources", "GPU=1"), ("--nthreads", "2"))
    with dask_cluster(tmp_path, *workers) as cluster:
        told = finish(plan, tmp_path / "out", "--scheduler", cluster.address, cwd=tasks)
    assert told["computed"] == single.state.total
    same(tmp_path / "out", single.out)
    with_gpu = cluster.workers[0].pid
    journals = {path.stem.rsplit("-", 1)[1]: path.read_text() for path in (tmp_path / "out" / "journal").glob("*.log")}
    assert set(journals) == {str(worker.pid) for worker in cluster.workers}
    for key, cell in single.state.graph.cells.items():
        if cell.gpu:
            assert key in journals[str(with_gpu)]
        result = read_result(tmp_path / "out", key)
        assert result is not None
        assert result["threads"] == (1 if key in journals[str(with_gpu)] else 2)
    assert all(len(times) == 1 for times in begun(tmp_path / "out").values())


def test_a_scheduler_that_is_not_there_is_one_line() -> None:
    with pytest.raises(WorkError, match="no Dask scheduler answers at tcp://127.0.0.1:1: ") as caught:
        open_engine("dask", None, "tcp://127.0.0.1:1")
    assert "\n" not in str(caught.value)


def test_a_cluster_without_workers_is_one_line(tasks: Path, tmp_path: Path) -> None:
    with dask_cluster(tmp_path) as cluster:
        finish(write_plan(tasks), tmp_path / "out", "--scheduler", cluster.address, code=1)
    (line,) = [line for line in (tmp_path / "out.log").read_text().splitlines() if line.startswith("closerlook:")]
    assert "has no workers; start some, and run the same command again" in line
