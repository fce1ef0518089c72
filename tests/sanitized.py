"""Run the engine's tests under gcc's sanitizers: addresses, leaks and undefined behaviour; then races between threads.

Each is run twice: with the normal sizes of caches and thresholds, and with small ones, so that rare branches run too.
First comes the engine without Python (tests/engine/partitions.c), in which leaks are found as well; it must print the
same partitions as without a sanitizer. Then come the tests of the geometry, on a copy of the package.

    python -m tests.sanitized           # everything
    python -m tests.sanitized --quick   # a selection that takes less than two minutes
"""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hatch_build import FLAGS, LIBRARIES, NAME, NATIVE, ROOT

PROGRAM = ROOT / "tests" / "engine" / "partitions.c"
QUICK = ["test_binding.py", "test_calls.py", "test_kernels.py"]
FULL = [
    *QUICK,
    "test_boundary.py",
    "test_clusters.py",
    "test_distances.py",
    "test_hulls.py",
    "test_merge_order.py",
    "test_nearest.py",
    "test_point_similarity.py",
    "test_proofs.py",
    "test_single_precision.py",
    "test_twin.py",
]
UNSUITED = "not signal and not takes_effect and not baseline"
"""Tests that measure time, or start several processes and test nothing more of the engine."""


@dataclass(frozen=True)
class Sanitizer:
    """A sanitizer of gcc: its flags, its library, its options, and a program in which it must find an error."""

    name: str
    flags: tuple[str, ...]
    library: str
    options: dict[str, str]
    wrong: str


SANITIZERS = [
    Sanitizer(
        name="addresses and undefined behaviour",
        flags=("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
        library="libasan.so",
        # Python itself leaves memory behind at its end; the program without Python looks for leaks.
        options={"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1"},
        wrong="#include <stdlib.h>\nint main(void) { volatile int *p = malloc(4); return p[1]; }\n",
    ),
    Sanitizer(
        name="races between threads",
        flags=("-fsanitize=thread",),
        library="libtsan.so",
        options={"TSAN_OPTIONS": "halt_on_error=1:exitcode=66:allocator_may_return_null=1"},
        wrong=(
            "#include <pthread.h>\nint n;\nstatic void *add(void *p) { n++; return p; }\n"
            "int main(void) { pthread_t t; pthread_create(&t, 0, add, 0); n++; pthread_join(t, 0); return 0; }\n"
        ),
    ),
]
SIZES = {"normal sizes": (), "small sizes": ("-DSMALL_SIZES",)}


def main(arguments: list[str]) -> int:
    """The number of combinations in which something fails."""
    quick = "--quick" in arguments
    failed = 0
    with TemporaryDirectory(prefix="sanitized") as name:
        folder = Path(name)
        expected = run_program(build_program(folder, ()), {})
        for sanitizer in SANITIZERS:
            if reason := unusable(sanitizer, folder):
                print(f"== {sanitizer.name}: skipped: {reason}", flush=True)
                continue
            for sizes, flags in SIZES.items():
                started = time.monotonic()
                failed += not passes(folder, sanitizer, flags, expected, quick=quick)
                print(f"== {sanitizer.name}, {sizes}: {time.monotonic() - started:.0f} s", flush=True)
    return failed


def unusable(sanitizer: Sanitizer, folder: Path) -> str:
    """Why this machine cannot run a sanitizer, or an empty string; a program with an error must fail under it."""
    if not shutil.which("gcc"):
        return "gcc is not installed"
    if not preloaded(sanitizer):
        return f"gcc has no {sanitizer.library}"
    source, program = folder / "wrong.c", folder / "wrong"
    source.write_text(sanitizer.wrong, encoding="utf-8")
    gcc([*sanitizer.flags, str(source), "-o", str(program), "-lpthread"])
    found = any(subprocess.run([program], capture_output=True, check=False).returncode for _ in range(20))
    return "" if found else "it finds no error in a program that has one"


def preloaded(sanitizer: Sanitizer) -> str:
    """The path of the sanitizer's library, which Python has to load before everything else; empty if missing."""
    command = ["gcc", f"-print-file-name={sanitizer.library}"]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return path if os.path.isabs(path) else ""


def gcc(arguments: list[str]) -> None:
    """Compile; the compiler's messages stay visible."""
    subprocess.run(["gcc", "-std=c11", "-g", "-O1", *arguments], check=True)


def build_program(folder: Path, flags: tuple[str, ...]) -> Path:
    """The engine without Python as a program."""
    program = folder / "partitions"
    sources = [str(PROGRAM), *map(str, sorted(NATIVE.glob("*.c")))]
    gcc([*flags, "-ffp-contract=fast", "-D_GNU_SOURCE", f"-I{NATIVE}", *sources, "-o", str(program), *LIBRARIES])
    return program


def run_program(program: Path, options: dict[str, str]) -> str:
    """What a program prints, with its exit code if that is not 0."""
    process = subprocess.run([program], env=os.environ | options, stdout=subprocess.PIPE, text=True, check=False)
    return process.stdout if process.returncode == 0 else f"{process.stdout}\nexit code {process.returncode}\n"


def passes(folder: Path, sanitizer: Sanitizer, flags: tuple[str, ...], expected: str, *, quick: bool) -> bool:
    """Whether the program prints what it should, and the tests pass on a library with the sanitizer.

    The quick selection runs the tests with small sizes alone.
    """
    leaks = {name: value.replace("detect_leaks=0", "detect_leaks=1") for name, value in sanitizer.options.items()}
    if run_program(build_program(folder, sanitizer.flags + flags), leaks) != expected:
        print(f"{PROGRAM.name} failed under the sanitizer for {sanitizer.name}, or printed something else")
        return False
    if quick and not flags:
        return True
    package = folder / "src" / "closerlook"
    shutil.copytree(NATIVE.parents[1], package, dirs_exist_ok=True, ignore=shutil.ignore_patterns(NAME, "__pycache__"))
    native = package / NATIVE.relative_to(NATIVE.parents[1])
    sources = map(str, sorted(native.glob("*.c")))
    options = [flag for flag in FLAGS if not flag.startswith("-O")]
    gcc([*options, *sanitizer.flags, *flags, *sources, "-o", str(native / NAME), *LIBRARIES])
    variables = sanitizer.options | {
        "LD_PRELOAD": preloaded(sanitizer),
        "PYTHONPATH": str(package.parent),
        "PYTHONMALLOC": "malloc",
        "OPENBLAS_NUM_THREADS": "1",
    }
    files = [str(ROOT / "tests" / "geometry" / name) for name in (QUICK if quick else FULL)]
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not slow"]
    tests = subprocess.run([*command, "-k", UNSUITED, *files], cwd=ROOT, env=os.environ | variables, check=False)
    return tests.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
