"""What every command does after Ctrl-C, and where `--debug` may be written."""

from pathlib import Path

import numpy as np
import pytest

from closerlook.cli import app
from closerlook.cli.registration import CONTINUE, NO_CHANGES, NO_RESULTS, START_OVER
from tests.cli.console import run, saved

Capsys = pytest.CaptureFixture[str]
POINTS = "points.npz"

INTERRUPTS = {
    ("extract", "-t", "toy-pos"): ("closerlook.representations.extract.extract", CONTINUE),
    ("study", "--out", "new"): ("closerlook.study.study.resolve_study", CONTINUE),
    ("tune", "--out", "new"): ("closerlook.tuning.tune", CONTINUE),
    ("report", "new"): ("closerlook.report.write_report", START_OVER),
    ("show", "new"): ("closerlook.report.writing.load_study", NO_CHANGES),
    ("combine", "new", "one", "other"): ("closerlook.study.combining.combine_results", START_OVER),
    ("compare-studies", "new", "other"): ("closerlook.report.write_comparison", START_OVER),
    ("probe", POINTS): ("closerlook.cli.probe.find_clusters", NO_RESULTS),
    ("classify", POINTS, "--test", POINTS): ("closerlook.probes.probe_grid", NO_RESULTS),
    ("compare", POINTS, POINTS): ("closerlook.cli.compare.find_clusters", NO_RESULTS),
    ("describe", POINTS): ("closerlook.cli.describe.find_clusters", NO_RESULTS),
    ("diff", "bert-tiny", "new", "-t", "toy-pos"): ("closerlook.differences.diff", NO_RESULTS),
    ("explore", POINTS): ("closerlook.explorer.explore", NO_RESULTS),
    ("rank", "-e", "bert-tiny", "-t", "toy-pos"): ("closerlook.ranking.rank", NO_RESULTS),
    ("tasks",): ("closerlook.tasks.catalogue.list_tasks", NO_CHANGES),
    ("measures", "nc1"): ("closerlook.study.registry.measure", NO_CHANGES),
    ("data", "get", "pos", "--data", "new"): (
        "closerlook.tasks.download.download_corpus",
        "complete files were kept; run the same command again to download the others",
    ),
    ("store", "ls"): ("closerlook.representations.store.Store.entries", NO_CHANGES),
    ("store", "verify"): ("closerlook.representations.store.Store.verify", NO_CHANGES),
    ("store", "gc"): (
        "closerlook.representations.store.Store.gc",
        "files removed so far stay removed; run the same command again to continue",
    ),
}
"""A call of each command; the function in which Ctrl-C arrives, and the message that must follow."""


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, own_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with a file of points, and an own store."""
    saved(tmp_path / POINTS, np.eye(3), ["a", "b", "c"])
    monkeypatch.chdir(tmp_path)


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("command", "expected"), INTERRUPTS.items(), ids=" ".join)
def test_after_an_interrupt_each_command_says_what_to_do_next(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], expected: tuple[str, str]
) -> None:
    function, message = expected
    monkeypatch.setattr(function, interrupt)
    out, err = run(capsys, *command, code=130)
    assert out == ""
    assert err.splitlines()[-1] == f"closerlook: interrupted; {message}"
    assert "Traceback" not in err


@pytest.mark.parametrize("value", ["probe", "tune", "describe"])
def test_the_value_of_an_option_does_not_change_the_message(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setattr("closerlook.study.study.resolve_study", interrupt)
    _, err = run(capsys, "study", "--out", value, code=130)
    assert err == f"closerlook: interrupted; {CONTINUE}\n"


def test_the_list_above_has_every_command() -> None:
    groups = {group.name: group.typer_instance for group in app.registered_groups}
    names = {(command.name,) for command in app.registered_commands}
    for name, group in groups.items():
        assert group is not None
        names |= {(name, command.name) for command in group.registered_commands}
    tested = {call[:2] if call[0] in groups else call[:1] for call in INTERRUPTS}
    assert tested == names


@pytest.mark.parametrize(
    "arguments",
    [
        ("--debug", "extract", "-t", "nope"),
        ("extract", "-t", "nope", "--debug"),
        ("extract", "--debug", "-t", "nope"),
        ("--debug", "tasks", "nope"),
        ("data", "--debug", "get", "nope"),
        ("data", "get", "--debug", "nope"),
    ],
)
def test_debug_shows_the_traceback_wherever_it_is_written(capsys: Capsys, arguments: tuple[str, ...]) -> None:
    _, err = run(capsys, *arguments, code=2)
    assert "Traceback (most recent call last)" in err
    assert err.splitlines()[-1].startswith("closerlook: task 'nope' is unknown")


@pytest.mark.parametrize(
    "arguments",
    [
        ("extract", "-t", "nope"),
        ("extract", "-t", "nope", "--out", "--debug"),
        ("extract", "-t", "nope", "--name=--debug"),
        ("tasks", "--", "--debug"),
    ],
)
def test_debug_as_the_value_of_an_option_is_a_value(capsys: Capsys, arguments: tuple[str, ...]) -> None:
    _, err = run(capsys, *arguments, code=2)
    assert err.count("\n") == 1
    assert err.startswith("closerlook: task '")
