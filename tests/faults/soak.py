"""Kill a study at random moments until the time is up: `python -m tests.faults.soak --minutes 30`.

Each round starts a new study with fine-tuning in processes of its own, kills all of them, one worker, or only the
parent at random moments, continues it with the same command, and compares its table with that of an undisturbed run.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pandas as pd

from closerlook.study.results import load_results
from tests.study.processes import Run, alive, finish, start
from tests.study.small import until, values, write_plan, write_tasks

KINDS = ("all processes", "one worker", "the parent")
LONGEST = 12.0
"""Seconds after its start within which a study is killed."""

KILLS = 4
"""Kills in one round, at most."""


def kill(run: Run, kind: str, rng: random.Random) -> None:
    """Kill processes of a study, without warning."""
    workers = run.workers() if run.process.poll() is None else []
    if kind == "one worker" and workers:
        os.kill(rng.choice(workers).pid, signal.SIGKILL)
        run.wait()
    elif kind == "the parent":
        os.kill(run.process.pid, signal.SIGKILL)
        run.wait()
        until(lambda: not alive(run.process.pid), 30)
    else:
        run.kill()


def soak(folder: Path, minutes: float, seed: int) -> Counter[str]:
    """Run rounds until the time is up, and return how often each kind of kill was survived."""
    rng = random.Random(seed)  # noqa: S311 - moments, not secrets
    plan = write_plan(write_tasks(folder / "tasks"))
    finish(plan, folder / "undisturbed", "--workers", "2", "--no-report")
    expected = values(load_results(folder / "undisturbed"))
    survived: Counter[str] = Counter()
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        out = folder / f"round-{survived['rounds']}"
        kinds: Counter[str] = Counter()
        for _ in range(rng.randint(1, KILLS)):
            run = start(plan, out, "--workers", rng.choice(["1", "2", "3"]), "--no-report")
            time.sleep(rng.uniform(0.5, LONGEST))
            if run.process.poll() is None:
                kinds[kind := rng.choice(KINDS)] += 1
                kill(run, kind, rng)
            elif run.process.returncode != 0:
                raise AssertionError(run.told())
        finish(plan, out, "--workers", "2", "--no-report")
        pd.testing.assert_frame_equal(values(load_results(out)), expected, check_exact=True)
        if left := [path for path in out.rglob("*.part") if "store" not in path.parts]:
            raise AssertionError(f"unfinished files remain: {left}")
        survived += kinds + Counter(rounds=1)
        print(f"{sum(kinds.values())} kills survived; so far {dict(survived)}", flush=True)
    return survived


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=None, help="the seed of the moments; by default a new one")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        survived = soak(Path(folder), options.minutes, seed)
    kills = sum(survived[kind] for kind in KINDS)
    print(f"{kills} of {kills} kills survived in {survived['rounds']} studies: {dict(survived)}")


if __name__ == "__main__":
    sys.exit(main())
