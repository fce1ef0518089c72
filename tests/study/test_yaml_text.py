"""Hostile plans: bombs, deep nesting, odd numbers and dates are refused in one line, quickly and in little memory."""

import tracemalloc
from pathlib import Path

import pytest

from closerlook.errors import InputError
from closerlook.study.plan import read_plan
from closerlook.study.yaml_text import MOST_CHARACTERS, MOST_VALUES, parse_yaml

PLAN = "encoders: bert-tiny\ntasks: toy-pos\n"
LAUGHS = "\n".join(
    ["a0: &a0 [x,x,x,x,x,x,x,x,x]", *(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10))]
)
MERGED = "\n".join(["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 9))])


def refusal(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            read_plan(path)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 10_000
    return message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, f"it has more than {MOST_VALUES:,} values, with aliases (*) written out"),
        (MERGED, f"it has more than {MOST_VALUES:,} values, with aliases (*) written out"),
        ("a: &a [*a]", "*a contains itself"),
        ("a: " + "[" * 5000, "it has more than 20 lists within lists"),
        ("a: " + "{a: " * 5000, "it has more than 20 lists within lists"),
        ("- " * 3000, "it has more than 20 lists within lists"),
        ("name: " + "x" * MOST_CHARACTERS, "it has more than 200,000 characters"),
        (f"seeds: {'9' * 5000}", "it has a number of 5,000 digits; expected at most 40"),
        (f"seeds: 0x{'f' * 5000}", "digits; expected at most 40"),
        ("seeds: 0x_", "cannot be read"),
        ("seeds: 0b_", "cannot be read"),
        ("seeds: !!int x", "expected plain values without ! in front"),
        ("seeds: !!bool x", "expected plain values without ! in front"),
        ("seeds: !!timestamp x", "expected plain values without ! in front"),
        ("seeds: !!python/object/apply:os.getcwd []", "expected plain values without ! in front"),
        ('encoders: "a\\0"', "it contains the character '\\x00', which no name can have"),
        ('encoders: "\\ud800"', "it contains the character '\\ud800', which no name can have"),
        ("*a", "is not YAML"),
        ("? [a]\n: b", "is not YAML"),
        ("", "contains NoneType"),
    ],
)
def test_hostile_plans_are_refused(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(tmp_path / "plan.yaml", text)


def test_a_plan_with_thousands_of_problems_lists_thirty(tmp_path: Path) -> None:
    message = refusal(tmp_path / "plan.yaml", PLAN + "\n".join(f"unknown{n}: {'x' * 20}" for n in range(2000)))
    assert "unknown29 is unknown" in message
    assert "unknown30" not in message
    assert message.endswith("1970 more problems")


def test_a_long_value_is_shortened_in_the_message(tmp_path: Path) -> None:
    assert " … " in refusal(tmp_path / "plan.yaml", f"{PLAN}device: {'x' * 100_000}")


@pytest.mark.parametrize("date", ["2020-01-01", "2020-13-45", "2001-12-14t21:59:43.10-05:00"])
def test_a_date_is_a_plain_name(tmp_path: Path, date: str) -> None:
    (tmp_path / "plan.yaml").write_text(f"{PLAN}name: {date}")
    assert read_plan(tmp_path / "plan.yaml").name == date


def test_aliases_and_merged_sections_are_read() -> None:
    assert parse_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]") == {
        "a": {"x": 1},
        "b": {"x": 1, "y": 2},
        "c": [{"x": 1}, {"x": 1}],
    }
