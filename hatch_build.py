"""Compile the C kernels of `closerlook.geometry` into one library, on installation or with `python hatch_build.py`.

`python hatch_build.py wheels` writes the source archive and one wheel for each of `PLATFORMS` to dist/. The compiler of
the PyPI package `ziglang` makes all of them on any machine. The variable CLOSERLOOK_PLATFORM selects one for hatchling.
"""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

ROOT = Path(__file__).resolve().parent
NATIVE = ROOT / "src" / "closerlook" / "geometry" / "native"
NAME = "kernels.so"  # also on macOS: ctypes loads a library with any suffix
# No -march=native: a build must run on every processor of its architecture. No -ffast-math: the error bounds assume
# IEEE arithmetic (a fused multiply-add only rounds less).
FLAGS = shlex.split("-O3 -std=c11 -fPIC -fvisibility=hidden -shared -ffp-contract=fast -D_GNU_SOURCE -Wall -Wextra")
LIBRARIES = ["-lm", "-lpthread"]  # not on Windows
COMPILERS = ["cc", "gcc", "clang"]
ZIG = [
    sys.executable,
    "-m",
    "ziglang",
    "cc",
    "-mcpu=baseline",
]  # zig would compile for this processor only
PLATFORMS = {  # the platform tag of a wheel, and zig's name for it; Linux: with the C library that the tag promises
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
}


class KernelBuild(BuildHookInterface[Any]):
    """Adds the library to the wheel; an editable installation gets it in the folder of its sources."""

    def dependencies(self) -> list[str]:
        """A C compiler from PyPI if the machine has none."""
        return [] if not requested_platform() and installed_compiler() else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tag the wheel for any Python 3 (ctypes loads the library) and for one platform."""
        build_data["pure_python"] = False
        if platform := requested_platform():
            self.folder = TemporaryDirectory()
            library = Path(self.folder.name, NAME)
            compile_for(platform, library)
            build_data["force_include"][str(library)] = (NATIVE / NAME).relative_to(ROOT / "src").as_posix()
        else:
            build_data["artifacts"].append("/" + compile_library().relative_to(ROOT).as_posix())
            # A plain linux tag: manylinux would promise that the wheel works with an older libc than this machine has.
            tags = (tag.platform for tag in sys_tags())
            platform = next(tag for tag in tags if not tag.startswith(("manylinux", "musllinux")))
        build_data["tag"] = f"py3-none-{platform}"


def requested_platform() -> str:
    """The platform in CLOSERLOOK_PLATFORM; empty for this machine's own."""
    platform = os.environ.get("CLOSERLOOK_PLATFORM", "")
    if platform and platform not in PLATFORMS:
        raise SystemExit(f"closerlook: CLOSERLOOK_PLATFORM is '{platform}'; expected one of {', '.join(PLATFORMS)}")
    return platform


def compile_library(native: Path = NATIVE) -> Path:
    """The path of the library of all C files in a folder; compiles it if a source is newer than the library."""
    library = native / NAME
    sources = sorted(native.glob("*.c"))
    changed = max(file.stat().st_mtime_ns for file in [*sources, *native.glob("*.h"), Path(__file__)])
    if library.exists() and library.stat().st_mtime_ns >= changed:
        return library
    with TemporaryDirectory(dir=native, prefix=NAME) as folder:  # a process that uses the old library keeps it
        started = Path(folder).stat().st_mtime_ns
        draft = Path(folder, NAME)
        run_compiler([*find_compiler(), *FLAGS, "-o", str(draft), *map(str, sources), *system_libraries(sys.platform)])
        os.utime(draft, ns=(started, started))  # so that a source saved during the compilation is newer
        draft.replace(library)
    return library


def compile_for(platform: str, library: Path) -> None:
    """Compile the library for one of `PLATFORMS`, without symbols for a debugger."""
    sources = map(str, sorted(NATIVE.glob("*.c")))
    command = [*ZIG, "-target", PLATFORMS[platform], "-s", *FLAGS, "-o", str(library), *sources]
    run_compiler([*command, *system_libraries(platform)])


def system_libraries(platform: str) -> list[str]:
    """The libraries that a platform needs besides its standard one."""
    return [] if platform.startswith("win") else LIBRARIES


def build_wheels() -> None:
    """Write the source archive and the wheels of all platforms to dist/."""
    hatchling = [sys.executable, "-m", "hatchling", "build", "-t"]
    subprocess.run([*hatchling, "sdist"], cwd=ROOT, check=True)
    for platform in PLATFORMS:
        environment = os.environ | {"CLOSERLOOK_PLATFORM": platform}
        subprocess.run([*hatchling, "wheel"], cwd=ROOT, env=environment, check=True)


def run_compiler(command: list[str]) -> None:
    """Run the compiler; SystemExit with the command if it fails."""
    if code := subprocess.run(command, check=False).returncode:
        raise SystemExit(f"closerlook: compiling the C kernels failed (exit code {code}): {shlex.join(command)}")


def find_compiler() -> list[str]:
    """The command that compiles C: the machine's compiler, otherwise the one in the PyPI package `ziglang`."""
    if command := installed_compiler():
        return command
    if importlib.util.find_spec("ziglang"):
        return ZIG
    raise SystemExit(
        f"closerlook: no C compiler: CC is not set, none of {', '.join(COMPILERS)} on the PATH works, and ziglang "
        "is not installed; run `apt install gcc libc6-dev` or `pip install ziglang`"
    )


def installed_compiler() -> list[str]:
    """$CC, which may have arguments, otherwise the first of `COMPILERS` that works; empty if none does."""
    if command := shlex.split(os.environ.get("CC", "")):
        if not shutil.which(command[0]):
            raise SystemExit(
                f"closerlook: CC is '{shlex.join(command)}', but no such program exists; correct or unset CC"
            )
        return command
    return next(([name] for name in COMPILERS if shutil.which(name) and can_compile(name)), [])


def can_compile(compiler: str) -> bool:
    """Whether it finds the headers of the C library; it needs libc6-dev on Debian, Xcode's tools on macOS."""
    process = subprocess.run([compiler, "-E", "-"], input=b"#include <stdlib.h>", capture_output=True, check=False)
    return process.returncode == 0


if __name__ == "__main__":
    build_wheels() if sys.argv[1:] == ["wheels"] else compile_library()
