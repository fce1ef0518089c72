"""The expectations of the held-out study were written before it was run, and have not changed since."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from closerlook.study.rules import RULES, VERSION, rules_hash
from closerlook.study.verdicts import verdict_of

ROOT = Path(__file__).parents[2]
EXPECTED = ROOT / "docs" / "held-out.yaml"


def expected() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(EXPECTED.read_text())
    return loaded


def fingerprint() -> str:
    """A hash of the expectations, of the plan, and of the text of the rules."""
    parts = [EXPECTED.read_text(), (ROOT / expected()["plan"]).read_text(), rules_hash()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def answers() -> Iterator[tuple[int, str, dict[str, list[str]]]]:
    """Each finding with its expected verdict, and the encoders with each answer."""
    for number, entry in expected()["findings"].items():
        yield number, entry["verdict"], {key: names for key, names in entry.items() if key != "verdict"}


def test_expectations_plan_and_rules_are_those_that_were_written_down_first() -> None:
    written = re.search(r"`([0-9a-f]{64})`", (ROOT / "docs" / "held-out.md").read_text())
    assert written is not None
    assert written.group(1) == fingerprint()
    assert expected()["rules"] == {"version": VERSION, "hash": rules_hash()}


def test_every_encoder_of_the_plan_has_one_expected_answer_to_each_finding_that_can_be_asked() -> None:
    encoders = [
        path.removeprefix("models/") for path in yaml.safe_load((ROOT / expected()["plan"]).read_text())["encoders"]
    ]
    assert [number for number, _, _ in answers()] == list(RULES)
    for _, _, given in answers():
        named = [encoder for encoders in given.values() for encoder in encoders]
        assert not named or sorted(named) == sorted(encoders)


def test_the_expected_verdicts_follow_from_the_expected_answers() -> None:
    for number, verdict, given in answers():
        counts = [len(given.get(answer, [])) for answer in ("for", "against", "within noise")]
        assert verdict_of(*counts) == verdict, number
