"""The interface to the compiled code: threads, missing libraries, certificates, instruction sets."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from closerlook.errors import InputError, WorkError
from closerlook.geometry import kernels, separate


@pytest.mark.parametrize("threads", [0, -1])
def test_fewer_threads_than_one_are_refused(threads: int) -> None:
    with pytest.raises(InputError, match=f"threads is {threads}; expected at least 1"):
        kernels.count_threads(threads)


@pytest.mark.parametrize("threads", [1, 3, 64])
def test_the_requested_number_of_threads_is_used(threads: int) -> None:
    assert kernels.count_threads(threads) == threads


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not pin processes to cores")
def test_by_default_there_is_a_thread_for_each_core_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 5})
    assert kernels.count_threads(None) == 3


def test_where_cores_cannot_be_pinned_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert kernels.count_threads(None) == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert kernels.count_threads(None) == 1


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Load the library again in the test and after it."""
    kernels.library.cache_clear()
    yield
    kernels.library.cache_clear()


@pytest.mark.usefixtures("forgotten")
def test_a_missing_library_raises_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernels, "LIBRARY", tmp_path / "kernels.so")
    text = r"the compiled part of closerlook cannot be loaded \(.*kernels.so.*\); install the package again, with a C"
    with pytest.raises(WorkError, match=text):
        separate([[0.0]], [[1.0]])


@pytest.mark.usefixtures("forgotten")
def test_a_damaged_library_raises_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "kernels.so").write_bytes(b"no library")
    monkeypatch.setattr(kernels, "LIBRARY", tmp_path / "kernels.so")
    with pytest.raises(WorkError, match="the compiled part of closerlook cannot be loaded"):
        kernels.library()


@pytest.mark.usefixtures("forgotten")
def test_the_library_is_loaded_once() -> None:
    assert kernels.library() is kernels.library()


def pairs_of_points() -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    Z = np.random.default_rng(0).standard_normal((200, 3))
    groups = [np.arange(at, at + 4) for at in range(0, 200, 4)]
    return Z, groups, np.array([(a, b) for a in range(50) for b in range(a + 1, 50)])


def test_verdicts_do_not_depend_on_threads_or_on_other_pairs() -> None:
    Z, groups, pairs = pairs_of_points()
    one, three = (kernels.solve_pairs(Z, groups, pairs, tau=1e-6, slack=1e-14, threads=t) for t in (1, 3))
    assert one.verdict.tolist() == three.verdict.tolist()
    alone = [kernels.solve_pairs(Z, groups, pair[None], tau=1e-6, slack=1e-14).verdict[0] for pair in pairs[:100]]
    assert one.verdict[:100].tolist() == alone
    assert {kernels.SEPARABLE, kernels.OVERLAPPING} == set(one.verdict.tolist())


def test_the_progress_of_pairs_ends_at_their_number() -> None:
    Z, groups, pairs = pairs_of_points()
    seen: list[tuple[int, int]] = []
    kernels.solve_pairs(Z, groups, pairs, tau=1e-6, slack=1e-14, progress=lambda *report: seen.append(report))
    assert seen == sorted(seen)
    assert {total for _, total in seen} == {len(pairs)}
    assert seen[-1] == (len(pairs), len(pairs))


def test_bounds_are_the_same_in_one_call_as_in_the_blocks_that_progress_needs() -> None:
    Z, groups, pairs = pairs_of_points()
    seen: list[int] = []
    settings = {"tau": 1e-6, "slack": 1e-14, "gap": 1e-6}
    whole = kernels.solve_pairs(Z, groups, pairs, **settings)
    blocks = kernels.solve_pairs(Z, groups, pairs, **settings, progress=lambda done, _: seen.append(done))
    assert len(seen) > 2
    assert (whole.lower > 1e-6).any()
    for name in ("verdict", "lower", "upper", "steps"):
        assert getattr(whole, name).tolist() == getattr(blocks, name).tolist()


def test_no_pairs_have_no_verdicts() -> None:
    Z, groups, _ = pairs_of_points()
    assert len(kernels.solve_pairs(Z, groups, np.zeros((0, 2), int), tau=1e-6, slack=1e-14).verdict) == 0


def test_certificates_exist_only_if_requested() -> None:
    Z, groups, pairs = pairs_of_points()
    with pytest.raises(ValueError, match="certificates were not requested"):
        kernels.solve_pairs(Z, groups, pairs[:1], tau=1e-6, slack=1e-14).certificate(0)
    result = kernels.solve_pairs(Z, groups, pairs[:1], tau=1e-6, slack=1e-14, certificates=True)
    assert np.linalg.norm(result.certificate(0)[3]) == pytest.approx(1)


CLUSTER_EVERY_SET = """
import json
from closerlook.geometry import cluster
from tests.geometry.sets import small_sets
results = {name: cluster(X, y) for name, X, y in small_sets()}
history = lambda merges: [merges["first"].tolist(), merges["second"].tolist()]
print(json.dumps({name: [c.assignments.tolist(), history(c.merges)] for name, c in results.items()}))
"""


def test_clusters_are_the_same_with_baseline_and_with_wide_instructions() -> None:
    """The environment variable takes effect when the library is loaded, so each choice needs a separate process."""
    results = []
    for choice in ("", "baseline"):
        environment = os.environ | {"CLOSERLOOK_KERNELS": choice}
        command = [sys.executable, "-c", CLUSTER_EVERY_SET]
        results.append(json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout))
    assert results[0] == results[1]
    assert len(results[0]) > 100


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has a second set of instructions")
def test_the_baseline_instructions_can_be_chosen() -> None:
    """A fused multiply-add rounds once: a sum of products then has other last digits on some random vectors."""
    if "fma" not in Path("/proc/cpuinfo").read_text(encoding="utf-8").split():
        pytest.skip("this processor has the baseline instructions alone")
    results = {distance_digits(choice) for choice in ("", "baseline")}
    assert len(results) == 2


def distance_digits(choice: str) -> bytes:
    program = (
        "import numpy as np; from closerlook.geometry import separate; r = np.random.default_rng(0);"
        "print([separate(r.normal(size=(9, 40)), r.normal(size=(9, 40))).normal.tolist() for _ in range(5)])"
    )
    environment = os.environ | {"CLOSERLOOK_KERNELS": choice}
    return subprocess.run([sys.executable, "-c", program], env=environment, check=True, stdout=subprocess.PIPE).stdout
