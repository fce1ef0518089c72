"""The engine on other processors and systems, compiled here and run in emulators; and the wheels."""

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from hatch_build import NAME, NATIVE, PLATFORMS, ROOT, ZIG, compile_for, find_compiler, requested_platform

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
@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_library_of_each_platform_has_its_format(platform: str, tmp_path: Path) -> None:
    compile_for(platform, tmp_path / NAME)
    assert (tmp_path / NAME).read_bytes().startswith(MAGIC[platform.split("_", maxsplit=1)[0]])


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
    """As pip does it without isolation: hatchling is installed, and there is a compiler."""
    hatchling = [sys.executable, "-m", "hatchling", "build", "-d"]
    subprocess.run([*hatchling, str(tmp_path), "-t", "sdist"], cwd=ROOT, check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    nowhere = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    subprocess.run([*hatchling, str(tmp_path), "-t", "wheel"], cwd=source, env=os.environ | nowhere, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert f"closerlook/geometry/native/{NAME}" in zipfile.ZipFile(wheel).namelist()
