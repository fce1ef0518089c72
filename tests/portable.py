"""Run the numerical tests as other processors would: with older vector instructions and other thread counts.

Such settings change the last digits of matrix products, sums and exponentials. A test that passes here and fails there
compares more digits than the mathematics promises. Each setting first proves that it has an effect.

    python -m tests.portable            # all settings that this machine supports
    python -m tests.portable oldest     # only one
"""

import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

FILES = [
    "tests/geometry",
    "tests/probes",
    "tests/representations",
    "tests/encoders",
    "tests/tuning",
    "tests/study/test_kinds.py",
    "tests/study/test_panel_kinds.py",
    "tests/study/test_rows.py",
    "tests/docs/test_tutorial.py",
]
"""Tests that compare computed numbers."""

PROBE = """
import numpy, scipy.linalg, torch
from threadpoolctl import threadpool_info
print(sorted({library["architecture"] for library in threadpool_info() if library["internal_api"] == "openblas"}))
print(torch.backends.cpu.get_cpu_capability(), torch.get_num_threads())
"""


@dataclass(frozen=True)
class Setting:
    """Environment variables that make libraries behave as on another processor, and what the libraries then report."""

    name: str
    flag: str | None
    """The processor flag that the instructions need; None if every processor has them."""

    variables: dict[str, str]
    reported: tuple[str, ...]
    """The two lines that PROBE prints."""


# MKL_CBWR rather than MKL_ENABLE_INSTRUCTIONS, which has no effect on processors that are not Intel's.
SETTINGS = [
    Setting(
        name="oldest",
        flag=None,
        variables={
            "OPENBLAS_CORETYPE": "Prescott",
            "ATEN_CPU_CAPABILITY": "default",
            "MKL_CBWR": "COMPATIBLE",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
            "OMP_NUM_THREADS": "1",
            "CLOSERLOOK_KERNELS": "baseline",  # tests/geometry/test_kernels.py proves its effect
        },
        reported=("['Katmai']", "DEFAULT 1"),  # OpenBLAS's name for its Prescott kernels
    ),
    Setting(
        name="avx2",
        flag="avx2",
        variables={
            "OPENBLAS_CORETYPE": "Haswell",
            "ATEN_CPU_CAPABILITY": "avx2",
            "MKL_CBWR": "AVX2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "OMP_NUM_THREADS": "2",
        },
        reported=("['Haswell']", "AVX2 2"),
    ),
]


def supported(setting: Setting) -> bool:
    """Whether this processor can run the setting's instructions."""
    if platform.machine() not in {"x86_64", "AMD64"}:
        return False
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text(encoding="utf-8").split() if cpuinfo.exists() else []
    return setting.flag is None or setting.flag in flags


def check_effect(setting: Setting) -> None:
    """Stop unless numpy, scipy and torch report the setting's instructions and thread count."""
    command = [sys.executable, "-c", PROBE]
    output = subprocess.run(command, env=os.environ | setting.variables, capture_output=True, text=True, check=True)
    lines = tuple(output.stdout.splitlines())
    if lines != setting.reported:
        raise SystemExit(f"setting {setting.name} has no effect: {lines} reported, {setting.reported} expected")


def run_tests(setting: Setting) -> int:
    """The exit code of pytest under a setting."""
    print(f"== {setting.name}: {' '.join(f'{name}={value}' for name, value in setting.variables.items())}", flush=True)
    command = [sys.executable, "-m", "pytest", "-n", "2", "-m", "not slow", *FILES]
    started = time.monotonic()
    code = subprocess.run(command, env=os.environ | setting.variables, check=False).returncode
    print(f"== {setting.name}: {time.monotonic() - started:.0f} s", flush=True)
    return code


def main(names: list[str]) -> int:
    """The number of settings under which tests fail."""
    chosen = [setting for setting in SETTINGS if not names or setting.name in names]
    failed = 0
    for setting in chosen:
        if not supported(setting):
            print(f"== {setting.name}: not supported by this processor, skipped")
            continue
        check_effect(setting)
        failed += run_tests(setting) != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
