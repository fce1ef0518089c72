"""The engine on other processors and systems, compiled here and run in emulators; and the wheels."""

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hatch_build import COMPILERS, NAME, NATIVE, PLATFORMS, ROOT, ZIG, compile_for, find_compiler, requested_platform

from closerlook.geometry import cluster

PROGRAM = ROOT / "tests" / "engine" / "partitions.c"
WINE = shutil.which("wine64") or shutil.which("wine64", path="/usr/lib/wine") or shutil.which("wine")
zig = pytest.mark.skipif(find_spec("ziglang") is None, reason="the package ziglang is not installed")


def build(compiler: list[str], program: Path, libraries: tuple[str, ...] = ()) -> Path:
    sources = [str(PROGRAM), *map(str, sorted(NATIVE.glob("*.c")))]
    flags = ["-O2", "-std=c11", "-ffp-contract=fast", "-D_GNU_SOURCE", f"-I{NATIVE}"]
    subprocess.run([*compiler, *flags, *sources, "-o", str(program), *libraries], check=True)
    return program


def partitions(command: list[str], variables: dict[str, str] | None = None) -> list[str]:
    process = subprocess.run(command, env=os.environ | (variables or {}), stdout=subprocess.PIPE, check=True)
    return process.stdout.decode().split()


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the program prints on this machine."""
    program = build(find_compiler(), tmp_path_factory.mktemp("native") / "partitions", ("-lm", "-lpthread"))
    printed = partitions([str(program)])
    assert printed[-3:] == ["all", "allocations", "checked"]
    assert printed == partitions([str(program)], {"CLOSERLOOK_KERNELS": "baseline"})
    return printed


@zig
@pytest.mark.slow
def test_zig_gives_the_same_partitions(native: list[str], tmp_path: Path) -> None:
    program = build(
        [*ZIG, "-target", PLATFORMS["manylinux_2_17_x86_64"]], tmp_path / "partitions", ("-lm", "-lpthread")
    )
    assert partitions([str(program)]) == native


@zig
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="no emulator of aarch64: apt install qemu-user")
def test_aarch64_gives_the_same_partitions(native: list[str], tmp_path: Path) -> None:
    program = build([*ZIG, "-target", "aarch64-linux-musl"], tmp_path / "partitions")
    assert partitions(["qemu-aarch64", str(program)]) == native


@zig
@pytest.mark.slow
@pytest.mark.skipif(not WINE, reason="no emulator of Windows: apt install wine64")
def test_windows_gives_the_same_partitions(native: list[str], tmp_path: Path) -> None:
    program = build([*ZIG, "-target", PLATFORMS["win_amd64"]], tmp_path / "partitions.exe")
    variables = {"WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all"}
    assert partitions([str(WINE), str(program)], variables) == native


def test_an_unknown_platform_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOSERLOOK_PLATFORM", "win32")
    with pytest.raises(SystemExit, match="CLOSERLOOK_PLATFORM is 'win32'; expected one of manylinux_2_17_x86_64, "):
        requested_platform()


MAGIC = {"manylinux": b"\x7fELF", "macosx": b"\xcf\xfa\xed\xfe", "win": b"MZ"}


@zig
@pytest.mark.slow
@pytest.mark.parametrize("tag", PLATFORMS)
def test_the_library_of_each_platform_has_its_format(tag: str, tmp_path: Path) -> None:
    compile_for(tag, tmp_path / NAME)
    assert (tmp_path / NAME).read_bytes().startswith(MAGIC[tag.split("_", maxsplit=1)[0]])


@zig
@pytest.mark.slow
def test_a_wheel_has_the_library_the_header_and_the_tag_of_its_platform(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"CLOSERLOOK_PLATFORM": "manylinux_2_17_aarch64"}, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-manylinux_2_17_aarch64.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"closerlook/geometry/native/{name}" for name in (NAME, "engine.h")} <= set(names)


@pytest.mark.slow
def test_the_source_archive_builds_without_network(tmp_path: Path) -> None:
    """As pip does it without an index and without isolation: hatchling is installed, and there is a compiler."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path), "-t", "sdist"], cwd=ROOT, check=True
    )
    (archive,) = tmp_path.glob("*.tar.gz")
    offline = ["--no-index", "--no-build-isolation", "--no-deps"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *offline, "-w", str(tmp_path), str(archive)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert f"closerlook/geometry/native/{NAME}" in zipfile.ZipFile(wheel).namelist()


linux = pytest.mark.skipif(sys.platform != "linux", reason="the wheel for Linux runs on Linux only")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel for Linux; its programs are the only ones on the PATH, so there is no compiler.

    The packages that closerlook needs are those of the environment of the tests.
    """
    folder = tmp_path_factory.mktemp("bare")
    hatchling = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    variables = {"CLOSERLOOK_PLATFORM": f"manylinux_2_17_{platform.machine()}"}
    subprocess.run(hatchling, cwd=ROOT, env=os.environ | variables, check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    (wheel,) = folder.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "venv" / "bin" / "python"), "install"]
    subprocess.run([*pip, "--no-index", "--no-deps", str(wheel)], check=True)
    (packages,) = (folder / "venv").glob("lib/python*/site-packages")
    (packages / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    assert not any(shutil.which(name, path=str(folder / "venv" / "bin")) for name in COMPILERS)
    return folder


def run_bare(bare: Path, *command: str) -> str:
    """What a program of the bare environment prints."""
    programs = bare / "venv" / "bin"
    variables = {"PATH": str(programs), "HOME": str(bare)}
    process = subprocess.run(
        [str(programs / command[0]), *command[1:]], cwd=bare, env=variables, stdout=subprocess.PIPE, check=True
    )
    return process.stdout.decode()


@zig
@linux
@pytest.mark.slow
def test_the_wheel_probes_without_a_compiler(bare: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 6)), rng.integers(0, 3, 200)
    np.savez(bare / "points.npz", X=X, y=y)
    code = "import closerlook.geometry.binding as b; print(b.LIBRARY)"
    assert Path(run_bare(bare, "python", "-c", code).strip()).is_relative_to(bare / "venv")
    found = json.loads(run_bare(bare, "closerlook", "probe", "points.npz", "--audit", "--json"))
    assert found["assignments"] == cluster(X, y).assignments.tolist()
    assert found["audit"]["clean"]


@zig
@linux
@pytest.mark.slow
def test_the_wheel_runs_the_default_study_without_a_compiler(bare: Path) -> None:
    run_bare(bare, "closerlook", "study", "default", "--out", "study")
    assert (bare / "study" / "report.html").stat().st_size > 100_000
