"""What only a process of its own shows: imports, exit codes, signals, pipes, terminals; the rest is in tests/cli."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from closerlook import extract
from tests.cli.console import shown_on_a_terminal

RUN = [sys.executable, "-m", "closerlook"]
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "CLOSERLOOK_DATA"}


def closerlook(*arguments: str, store: Path, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """The finished command; its exit code is checked."""
    done = subprocess.run(
        [*RUN, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT | {"CLOSERLOOK_STORE": str(store), "COLUMNS": "200"} | environment,
    )
    assert done.returncode == code, done.stderr
    return done


def test_help_has_an_example(own_store: Path) -> None:
    assert "Example: closerlook" in closerlook("--help", store=own_store).stdout


def test_help_and_import_need_no_torch_and_no_numpy() -> None:
    code = (
        "import sys, closerlook\n"
        "from closerlook.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'transformers', 'numpy', 'datasets', 'pandas'} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_a_store_hit_needs_no_torch(own_store: Path) -> None:
    extract("bert-tiny", "toy-question", splits="test")
    code = (
        "import sys, closerlook\n"
        "closerlook.extract('bert-tiny', 'toy-question', splits='test')\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_version(own_store: Path) -> None:
    assert closerlook("--version", store=own_store).stdout == "closerlook 0.2.0\n"


def test_without_arguments_help_is_shown(own_store: Path) -> None:
    assert "Usage:" in closerlook(store=own_store).stdout


def test_extract_shows_a_table_and_says_how_it_computed(own_store: Path) -> None:
    done = closerlook("extract", "--task", "toy-question", "--splits", "test", store=own_store)
    assert "bert-tiny" in done.stdout
    assert "toy-question" in done.stdout
    assert "encoder bert-tiny: 2 layers × 128, 4.4 M parameters, " in done.stderr
    assert "float32, window 512" in done.stderr
    assert "0 of 3 spaces are in the store" in done.stderr
    again = closerlook("extract", "--task", "toy-question", "--splits", "test", store=own_store)
    assert again.stdout == done.stdout
    assert "3 of 3 spaces are in the store" in again.stderr


def test_bad_input_is_one_line_and_exit_code_two(own_store: Path) -> None:
    done = closerlook("extract", "-t", "tpy-pos", store=own_store, code=2)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("closerlook: task 'tpy-pos' is unknown; did you mean toy-pos")


def test_failed_work_is_one_line_and_exit_code_one(own_store: Path, tmp_path: Path) -> None:
    done = closerlook(
        "data", "get", "trec-50", "--data", str(tmp_path), "--mirror", "http://127.0.0.1:9", store=own_store, code=1
    )
    assert done.stderr.count("\n") == 1
    assert (
        f"save https://cogcomp.seas.upenn.edu/Data/QA/QC/train_5500.label as {tmp_path}/trec/train_5500.label"
        in done.stderr
    )
    assert list(tmp_path.iterdir()) == []


def test_an_unexpected_error_is_still_one_line(own_store: Path) -> None:
    code = (
        "from closerlook import cli; import closerlook.tasks as t\n"
        "def broken(*a, **k): raise ZeroDivisionError('boom')\n"
        "t.load_task = broken\n"
        "cli.main(['extract', '-t', 'toy-pos'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "closerlook: unexpected ZeroDivisionError: boom; run again with --debug to see where\n"


def test_interrupting_is_exit_code_130_and_one_line(own_store: Path, tmp_path: Path) -> None:
    listening = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a job in the background does not
    )
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", f"{listening}; from closerlook.cli import main; main()"),
            *("extract", "-t", "toy-pos", "-t", "toy-dep", "--batch-tokens", "1"),
        ],
        env=ENVIRONMENT | {"CLOSERLOOK_STORE": str(own_store)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(own_store.glob("work/*/*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == "closerlook: interrupted; run the same command again to continue where it stopped"
    assert "Traceback" not in stderr


def test_a_reader_that_stops_early_is_no_error(own_store: Path) -> None:
    command = f"{sys.executable} -m closerlook tasks | head -1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert "Error" not in done.stderr
    assert "closerlook:" not in done.stderr


def test_progress_is_a_bar_on_a_terminal(own_store: Path) -> None:
    command = [*RUN, "extract", "-t", "toy-pos", "--batch-tokens", "256"]
    shown = shown_on_a_terminal(command, ENVIRONMENT | {"CLOSERLOOK_STORE": str(own_store)})
    assert "extracting examples" in shown
    assert "left" in shown
