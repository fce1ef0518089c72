"""Progress of long work: where a bar is shown, and where it is not."""

import io
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import closerlook
from closerlook import progress
from closerlook.cli import main
from closerlook.progress import bars_off, progress_bar, show_progress
from closerlook.representations.store import Store

Patch = pytest.MonkeyPatch


class Terminal(io.StringIO):
    """A standard error that says it is a terminal, and keeps what is written."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def setting() -> Iterator[None]:
    yield
    progress._Setting.on = None


def open_terminal(monkeypatch: Patch) -> Terminal:
    """A terminal on which bars appear at once; not a fixture, since pytest sets standard error before each test."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CLOSERLOOK_PROGRESS", raising=False)
    return stream


class Shown(list[str]):
    """What a notebook shows: the list of all states of its only output."""


@pytest.fixture
def notebook(monkeypatch: Patch) -> Shown:
    """A notebook: IPython with the shell of a kernel, of which only `display` is replaced."""
    shown = Shown()
    handle = SimpleNamespace(update=lambda part: shown.append(part.data))

    def display(part: Any, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        shown.append(part.data)
        return handle

    ipython, displays = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    displays.HTML = lambda data: SimpleNamespace(data=data)  # type: ignore[attr-defined]
    displays.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    monkeypatch.setattr(progress, "UPDATE", 0.0)
    monkeypatch.delenv("CLOSERLOOK_PROGRESS", raising=False)
    return shown


def work(name: str = "examples", given: Any = None) -> bool:
    """Three steps of work that report; whether anything shows them."""
    with progress_bar(name, given) as show:
        for at in range(3):
            if show:
                show(at + 1, 3)
    return show is not None


def test_a_terminal_shows_a_bar_and_removes_it(monkeypatch: Patch) -> None:
    terminal = open_terminal(monkeypatch)
    assert work()
    assert "examples" in terminal.getvalue()
    assert "3/3" in terminal.getvalue()


def test_short_work_shows_nothing(monkeypatch: Patch) -> None:
    terminal = open_terminal(monkeypatch)
    monkeypatch.setattr(progress, "AFTER", 1000.0)
    assert work()
    assert terminal.getvalue() == ""


def test_a_notebook_shows_a_bar_below_its_cell_and_removes_it(notebook: Shown) -> None:
    assert work("<b>")
    assert len(notebook) == 4
    assert notebook[0].startswith('<progress value="1" max="3"></progress> &lt;b&gt;: 1 of 3, about ')
    assert notebook[2].startswith('<progress value="3" max="3"></progress> &lt;b&gt;: 3 of 3')
    assert notebook[-1] == ""


def test_short_work_in_a_notebook_shows_nothing(notebook: Shown, monkeypatch: Patch) -> None:
    monkeypatch.setattr(progress, "AFTER", 1000.0)
    assert work()
    assert notebook == []


def test_a_bar_is_removed_when_the_work_fails(notebook: Shown) -> None:
    with pytest.raises(RuntimeError), progress_bar("examples", None) as show:
        assert show is not None
        show(1, 3)
        raise RuntimeError("the work failed")
    assert notebook[-1] == ""
    assert work()


def test_a_file_gets_no_bar(monkeypatch: Patch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not work()
    monkeypatch.setattr(sys, "stderr", None)
    assert not work()


def test_bars_are_off_by_one_call(monkeypatch: Patch) -> None:
    open_terminal(monkeypatch)
    show_progress(False)
    assert not work()
    show_progress()
    assert work()


@pytest.mark.parametrize("value", ["0", "false", "No", " off "])
def test_bars_are_off_by_an_environment_variable(value: str, monkeypatch: Patch) -> None:
    terminal = open_terminal(monkeypatch)
    monkeypatch.setenv("CLOSERLOOK_PROGRESS", value)
    assert not work()
    assert terminal.getvalue() == ""
    monkeypatch.setenv("CLOSERLOOK_PROGRESS", "1")
    assert work()


def test_the_function_of_the_caller_is_used_instead_of_a_bar(monkeypatch: Patch) -> None:
    terminal = open_terminal(monkeypatch)
    calls: list[tuple[int, int]] = []
    assert work(given=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 3), (2, 3), (3, 3)]
    assert terminal.getvalue() == ""


def test_work_that_is_a_part_of_other_work_has_no_bar(monkeypatch: Patch) -> None:
    open_terminal(monkeypatch)
    with progress_bar("whole", None) as show:
        assert show is not None
        assert not work()
    with bars_off():
        assert not work()
    with progress_bar("whole", lambda done, total: None):
        assert not work()
    assert work()


# ---- the functions that show progress ----


def test_extract_shows_how_many_examples_are_done(notebook: Shown, tmp_path: Any) -> None:
    closerlook.extract("bert-tiny", "toy-question", splits="test", layers="last", store=Store(tmp_path), device="cpu")
    assert "examples: 86 of 86" in notebook[-2]
    notebook.clear()
    closerlook.extract("bert-tiny", "toy-question", splits="test", layers="last", store=Store(tmp_path), device="cpu")
    assert notebook == []


def test_probes_show_progress(notebook: Shown, monkeypatch: Patch) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(400, 3)), random.integers(0, 3, size=400)
    probe = closerlook.DirectProbe(n_jobs=1).fit(X, y)
    assert any("rows clustered" in shown for shown in notebook)
    notebook.clear()
    assert probe.distances_ is not None
    assert any("distances between clusters" in shown for shown in notebook)
    notebook.clear()
    closerlook.ClassifierProbe(sizes=[()], seeds=2, max_rounds=2, device="cpu", n_jobs=1).fit(X, y)
    assert any("networks: 2 of 2" in shown for shown in notebook)
    notebook.clear()
    training = closerlook.probes.ProbeTraining(max_rounds=2)
    closerlook.probe_grid((X, y), (X, y), sizes=[()], seeds=2, training=training, device="cpu", threads=1)
    assert any("networks: 2 of 2" in shown for shown in notebook)


PLAN = {
    "encoders": ["bert-tiny"],
    "tasks": ["toy-question"],
    "layers": "last",
    "tuning": None,
    "measures": ["clusters"],
}


def test_a_study_shows_its_cells_and_no_other_bar(notebook: Shown, tmp_path: Any) -> None:
    closerlook.run_study(PLAN, tmp_path / "study", engine="here")
    bars = [shown for shown in notebook if shown]
    assert bars
    assert all(" cells: " in bar for bar in bars)


def test_a_study_whose_state_is_watched_shows_no_bar(notebook: Shown, tmp_path: Any) -> None:
    states: list[int] = []
    closerlook.run_study(PLAN, tmp_path / "study", engine="here", watch=lambda state: states.append(len(state.done)))
    assert states
    assert notebook == []


def test_commands_show_only_their_own_bar(monkeypatch: Patch, tmp_path: Any) -> None:
    terminal = open_terminal(monkeypatch)
    folder = str(tmp_path / "store")
    arguments = ["extract", "--encoder", "bert-tiny", "--task", "toy-question", "--split", "test", "--layers", "last"]
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--store", folder, "--device", "cpu"])
    assert end.value.code == 0, terminal.getvalue()
    assert "extracting examples" in terminal.getvalue()
