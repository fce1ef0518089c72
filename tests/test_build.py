"""The C kernels are compiled with the compiler that the machine has, and only when their sources changed."""

import ctypes
import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest
from hatch_build import NAME, NATIVE, compile_library, find_compiler


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_the_library_loads() -> None:
    assert ctypes.CDLL(str(NATIVE / NAME))


def test_the_compiler_in_cc_has_priority_and_may_have_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"'{sys.executable}' -m 'my compiler'")
    assert find_compiler() == [sys.executable, "-m", "my compiler"]


def test_a_cc_that_does_not_exist_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-cc -m64")
    with pytest.raises(SystemExit, match="CC is 'no-such-cc -m64', but no such program exists; correct or unset"):
        find_compiler()


@pytest.mark.usefixtures("bare_machine")
def test_no_compiler_is_an_error_that_says_what_to_install() -> None:
    with pytest.raises(
        SystemExit, match="none of cc, gcc, clang .*; run `apt install gcc .*` or `pip install ziglang`"
    ):
        find_compiler()


@pytest.mark.usefixtures("bare_machine")
def test_a_compiler_that_does_not_work_is_skipped(tmp_path: Path) -> None:
    for name, program in {"cc": "false", "gcc": "true"}.items():
        (tmp_path / name).symlink_to(str(shutil.which(program, path=os.defpath)))
    assert find_compiler() == ["gcc"]


@pytest.mark.usefixtures("bare_machine")
def test_ziglang_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    assert find_compiler()[1:4] == ["-m", "ziglang", "cc"]


def test_a_library_is_compiled_again_only_after_a_change(tmp_path: Path) -> None:
    source = tmp_path / "answer.c"
    source.write_text('__attribute__((visibility("default"))) int answer(void) { return 42; }\n')
    library = compile_library(tmp_path)
    assert ctypes.CDLL(str(library)).answer() == 42
    assert sorted(tmp_path.iterdir()) == [source, library], "nothing else is left behind"
    first = library.stat().st_ino
    assert compile_library(tmp_path).stat().st_ino == first
    os.utime(source)
    assert compile_library(tmp_path).stat().st_ino != first
