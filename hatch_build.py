"""Compile the C kernels of `closerlook.geometry` into one library, on installation or with `python hatch_build.py`."""

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
LIBRARIES = ["-lm", "-lpthread"]
COMPILERS = ["cc", "gcc", "clang"]
ZIG = [
    sys.executable,
    "-m",
    "ziglang",
    "cc",
    "-mcpu=baseline",
]  # zig would compile for this processor only


class KernelBuild(BuildHookInterface[Any]):
    """Adds the library to the wheel; an editable installation gets it in the folder of its sources."""

    def dependencies(self) -> list[str]:
        """A C compiler from PyPI if the machine has none."""
        return [] if installed_compiler() else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tag the wheel for any Python 3 (ctypes loads the library) and for this platform only."""
        library = compile_library()
        build_data["artifacts"].append("/" + library.relative_to(ROOT).as_posix())
        build_data["pure_python"] = False
        # A plain linux tag: manylinux would promise that the wheel works with an older libc than this machine has.
        platform = next(tag.platform for tag in sys_tags() if not tag.platform.startswith(("manylinux", "musllinux")))
        build_data["tag"] = f"py3-none-{platform}"


def compile_library(native: Path = NATIVE) -> Path:
    """The path of the library of all C files in a folder; compiles it if a source is newer than the library."""
    library = native / NAME
    sources = sorted(native.glob("*.c"))
    changed = max(file.stat().st_mtime_ns for file in [*sources, *native.glob("*.h"), Path(__file__)])
    if library.exists() and library.stat().st_mtime_ns >= changed:
        return library
    if sys.platform == "win32":
        raise SystemExit("closerlook: the C kernels build on Linux and macOS; on Windows install inside WSL")
    with TemporaryDirectory(dir=native, prefix=NAME) as folder:  # a process that uses the old library keeps it
        started = Path(folder).stat().st_mtime_ns
        draft = Path(folder, NAME)
        command = [*find_compiler(), *FLAGS, "-o", str(draft), *map(str, sources), *LIBRARIES]
        if code := subprocess.run(command, check=False).returncode:
            raise SystemExit(f"closerlook: compiling the C kernels failed (exit code {code}): {shlex.join(command)}")
        os.utime(draft, ns=(started, started))  # so that a source saved during the compilation is newer
        draft.replace(library)
    return library


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
    compile_library()
