"""A Dask cluster: TLS with self-made certificates, and workers that disappear; a study never waits for ever."""

import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from closerlook.errors import InputError, WorkError
from closerlook.study import engines
from closerlook.study.cells import Cell
from closerlook.study.cluster import Cluster
from closerlook.study.engines import Dask, choose_engine
from closerlook.study.execution import Outcome
from closerlook.study.graph import expand
from closerlook.study.runner import study_lock, work_through
from closerlook.study.workers import WorkerLost
from tests.cli.console import assert_refused
from tests.study.processes import dask_cluster, finish, start
from tests.study.small import opened, small_plan, write_plan, write_tasks

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An authority and a certificate that it signed, for all members of the cluster; and another authority."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificates")
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*arguments: str) -> None:
        subprocess.run([str(shutil.which("openssl")), *arguments], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "rsa:2048", "-nodes")
    for name in ("ca", "other"):
        openssl("req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
    openssl("req", *key, "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=localhost")
    openssl("x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "own.pem")
    return {name: str(folder / name) for name in ("ca.pem", "other.pem", "own.pem", "own.key")}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tasks(tmp_path_factory.mktemp("tasks"))


# ---- options ----


@pytest.mark.parametrize(
    ("scheduler", "options", "message"),
    [
        ("tls://h:1", {}, "the scheduler tls://h:1 uses TLS; give --tls-ca and --tls-cert as well"),
        ("tls://h:1", {"tls_ca": __file__}, "give --tls-cert as well"),
        (
            "tcp://h:1",
            {"tls_ca": __file__},
            "--tls-ca given for the scheduler tcp://h:1; expected an address with tls://",
        ),
        ("tls://h:1", {"tls_ca": __file__, "tls_cert": "no.pem"}, "--tls-cert no.pem cannot be read"),
        ("tcp://h:1", {"worker_timeout": 0}, "--worker-timeout is 0; expected a number of seconds above 0"),
        ("tcp://h:1", {"worker_timeout": float("nan")}, "--worker-timeout is nan"),
    ],
)
def test_options_of_a_cluster_that_do_not_fit_are_refused(
    scheduler: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Cluster(scheduler, **options)


def test_options_of_a_cluster_without_a_cluster_are_refused(capsys: Capsys, tmp_path: Path) -> None:
    message = "--tls-cert given without --scheduler; give --scheduler tls://HOST:PORT"
    assert_refused(capsys, message, "study", "--out", tmp_path / "out", "--tls-cert", __file__)
    assert choose_engine(None, None, Cluster("tcp://h:1")) == "dask"


def test_a_certificate_that_is_none_is_one_line() -> None:
    with pytest.raises(WorkError, match="no Dask scheduler answers at tls://127.0.0.1:9"):
        Cluster("tls://127.0.0.1:9", tls_ca=__file__, tls_cert=__file__).connect()


# ---- workers that disappear ----


@pytest.fixture
def cell(tasks: Path, tmp_path: Path) -> Cell:
    """A cell that wants a GPU and fails as soon as a worker has it."""
    study = opened(small_plan(tasks, measures=["clusters"], tuning=None), tmp_path)
    (cell,) = [cell for cell in expand(study, lambda key: None).cells.values() if cell.kind == "extract"]
    assert cell.gpu
    return replace(cell, kind="unknown")


@contextmanager
def cluster_in_threads(*resources: dict[str, float]) -> Iterator[Any]:
    """A cluster in this process with a worker for each of these resources."""
    from distributed import LocalCluster
    from distributed.worker import Worker

    workers = {
        number: {"cls": Worker, "options": {"nthreads": 1, "resources": has}} for number, has in enumerate(resources)
    }
    with LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster:
        cluster.worker_spec = workers
        cluster.sync(cluster._correct_state)
        cluster.wait_for_workers(len(workers))
        yield cluster


@contextmanager
def engine_of(cluster: Any, timeout: float = 0.3) -> Iterator[Dask]:
    engine = Dask(Cluster(cluster.scheduler_address, worker_timeout=timeout))
    try:
        yield engine
    finally:
        engine.close(now=True)


def remove_worker(cluster: Any, number: int) -> None:
    del cluster.worker_spec[number]
    cluster.sync(cluster._correct_state)


@pytest.fixture(autouse=True)
def quick_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "WATCH_SECONDS", 0.05)


def test_other_workers_take_over_when_all_workers_with_a_gpu_are_gone(
    cell: Cell, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with cluster_in_threads({"GPU": 1}, {}) as cluster, engine_of(cluster) as engine:
        assert "KeyError" in engine.submit(cell, str(tmp_path)).result(30).error
        remove_worker(cluster, 0)
        with pytest.raises(WorkerLost, match="the workers with a GPU are gone") as caught:
            engine.submit(cell, str(tmp_path)).result(30)
        assert caught.value.attempts == 0  # the cell is not to blame
        assert "KeyError" in engine.submit(cell, str(tmp_path)).result(30).error
    assert "the Dask cluster has had no worker with a GPU for 0.3 s; others run its cells from now on" in caplog.text


def test_a_plan_that_requires_a_gpu_ends_when_all_workers_with_a_gpu_are_gone(cell: Cell, tmp_path: Path) -> None:
    needs_gpu = replace(cell, resources=cell.resources | {"device": "cuda"})
    with cluster_in_threads({"GPU": 1}, {}) as cluster, engine_of(cluster) as engine:
        remove_worker(cluster, 0)
        message = r"has had no worker with a GPU for 0.3 s \(--worker-timeout\); start some"
        with pytest.raises(WorkError, match=message) as caught:
            engine.submit(needs_gpu, str(tmp_path)).result(30)
        assert not isinstance(caught.value, WorkerLost)


def test_a_study_ends_when_all_workers_are_gone(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with cluster_in_threads({}) as cluster, engine_of(cluster) as engine:
        remove_worker(cluster, 0)
        plan = opened(small_plan(tasks, measures=["clusters"], tuning=None), out)
        with study_lock(out), pytest.raises(WorkError, match=r"^the Dask cluster at \S+ has had no worker for 0.3 s"):
            work_through(plan, out, engine)


def test_a_worker_that_comes_back_in_time_runs_the_waiting_cell(cell: Cell, tmp_path: Path) -> None:
    from distributed.worker import Worker

    with cluster_in_threads({"GPU": 1}, {}) as cluster, engine_of(cluster, timeout=60) as engine:
        remove_worker(cluster, 0)
        waiting: Future[Outcome] = engine.submit(cell, str(tmp_path))
        with pytest.raises(TimeoutError):
            waiting.result(0.5)
        cluster.worker_spec[2] = {"cls": Worker, "options": {"nthreads": 1, "resources": {"GPU": 1}}}
        cluster.sync(cluster._correct_state)
        assert "KeyError" in waiting.result(30).error


# ---- TLS ----


@pytest.mark.slow
def test_a_study_runs_on_a_cluster_with_tls_and_only_with_the_right_certificates(
    tasks: Path, tmp_path: Path, certificates: dict[str, str]
) -> None:
    plan = write_plan(tasks, measures=["clusters"], tuning=None)
    names = (("--tls-ca-file", "ca.pem"), ("--tls-cert", "own.pem"), ("--tls-key", "own.key"))
    files = [part for option, name in names for part in (option, certificates[name])]
    with dask_cluster(tmp_path, ("--nthreads", "1"), common=files) as cluster:
        assert cluster.address.startswith("tls://")
        right = ["--scheduler", cluster.address, "--tls-cert", certificates["own.pem"], "--tls-key"]
        right += [certificates["own.key"], "--tls-ca"]
        refused = start(plan, tmp_path / "refused", *right, certificates["other.pem"])
        assert refused.wait() == 1
        assert f"closerlook: no Dask scheduler answers at {cluster.address}" in refused.told()
        plain = start(plan, tmp_path / "plain", "--scheduler", cluster.address.replace("tls:", "tcp:"))
        assert plain.wait() == 1
        assert "closerlook: no Dask scheduler answers at tcp://" in plain.told()
        assert finish(plan, tmp_path / "out", *right, certificates["ca.pem"])["failed"] == {}
