"""Any bytes in: a Task or our own error, in one line; never another exception."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from closerlook.errors import CloserLookError
from closerlook.tasks.readers import FORMATS, read_task
from closerlook.tasks.task import Task

LABELS = {
    "conllu": ["upos", "xpos", "deprel", "feats:Case", "misc:Role", "comment:mood"],
    "conllulex": ["role", "function"],
    "conll": [None, "0", "-2", "9", "x"],
    "trec": ["fine", "coarse"],
    "jsonl": [None, "label", "role", "targets"],
    "json": [None, "label", "role", "targets"],
    "parquet": [None],
    "csv": [None, "label", "tags"],
    "tsv": [None, "label", "tags"],
}
CELL = st.sampled_from(
    ["_", "", "a", "NOUN", "1", "2", "0", "-1", "²", "1.1", "1-2", "p.X", "Case=Nom|", "9" * 30, "\0"]
)
JUNK = st.text(st.sampled_from("\t\n\r#=|:_.-,\"'[]{}\\ \0\x0b\x85\u2028²1aé"), max_size=8)
SCALAR = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from([2**31, 2**63, 10**40]), st.text(max_size=3)
)
KEY = st.sampled_from(
    [
        *("words", "tokens", "text", "text_a", "text_b", "targets", "spans", "label", "role", "token", "start", "stop"),
        *("end", "head", "dependent", "data", "annotations", "result", "value", "choices"),
    ]
)
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "train"


def read_or_refuse(path: Path, data: bytes, format: str, **options: Any) -> None:
    path.write_bytes(data)
    for label in LABELS[format]:
        try:
            assert isinstance(read_task(path, format=format, label=label, **options), Task)
        except CloserLookError as error:
            assert str(error).count("\n") == 0  # noqa: PT017 - either outcome is right


def rows(columns: int) -> st.SearchStrategy[str]:
    """Sentences whose ids count on, mostly, with cells that are nearly right and now and then junk."""
    row = st.lists(CELL, min_size=columns - 1, max_size=columns - 1)
    sentence = st.lists(row, min_size=1, max_size=4).map(
        lambda found: "".join("\t".join([str(i), *cells]) + "\n" for i, cells in enumerate(found, start=1))
    )
    line = sentence | st.just("# mood = x\n") | st.just("\n") | JUNK | CELL
    return st.lists(line, max_size=5).map("".join)


def tables(delimiter: str) -> st.SearchStrategy[str]:
    header = st.sampled_from(["words,tags", "text,label", "text,label,split", "tokens,targets", "a,b", "text,text"])
    row = st.lists(CELL | JUNK | VALUE.map(json.dumps), min_size=1, max_size=3).map(delimiter.join)
    lines = st.lists(row, max_size=4).map("\n".join)
    return st.tuples(header.map(lambda h: h.replace(",", delimiter)), lines).map("\n".join)


NEARLY_VALID: dict[str, st.SearchStrategy[str]] = {
    "conllu": rows(10),
    "conllulex": rows(19),
    "conll": st.lists(st.sampled_from(["a X", "a\tX", "-DOCSTART- O", "", " ", "a", "b Y Z"]) | JUNK, max_size=5).map(
        "\n".join
    ),
    "trec": st.lists(st.sampled_from(["A:b c", "A: b", ":", "A:b", "", " "]) | JUNK, max_size=4).map("\n".join),
    "jsonl": st.lists(st.dictionaries(KEY, VALUE, max_size=4).map(json.dumps) | JUNK, max_size=4).map("\n".join),
    "json": st.lists(st.dictionaries(KEY, VALUE, max_size=4), max_size=4).map(json.dumps),
    "parquet": JUNK,
    "csv": tables(","),
    "tsv": tables("\t"),
}
quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("format", list(FORMATS))
@quick
@given(data=st.binary(max_size=60))
@example(data=b"\xff\xfe")
@example(data=b"\0")
@example(data=b"[" * 100_000)
@example(data=b'{"text": "\\ud800", "label": 1e999}')
@example(data=b'{"words": ["a"], "targets": [{"token": 1' + b"0" * 5000 + b', "label": 0}]}')
@example(data=b"text,label\n" + b"a" * 200_000 + b",b")
def test_any_bytes(path: Path, format: str, data: bytes) -> None:
    read_or_refuse(path, data, format)


@pytest.mark.parametrize("format", list(FORMATS))
@quick
@given(data=st.data())
def test_nearly_valid_text(path: Path, format: str, data: st.DataObject) -> None:
    text = data.draw(NEARLY_VALID[format])
    options = {}
    if "empty_nodes" in FORMATS[format].options:
        options["empty_nodes"] = data.draw(st.booleans())
    if "unit" in FORMATS[format].options:
        options["unit"] = data.draw(st.sampled_from([None, "token", "sentence"]))
        options["split_column"] = data.draw(st.sampled_from([None, "split"]))
    read_or_refuse(path, text.encode("utf-8", "surrogatepass"), format, **options)


@quick
@given(data=st.data())
def test_targets_of_json_lines(path: Path, data: st.DataObject) -> None:
    """Records that are right but for their targets, where most of the reader's work is."""
    places = st.dictionaries(KEY, SCALAR, min_size=1)
    records = data.draw(st.lists(st.lists(places | SCALAR, max_size=3), min_size=1, max_size=3))
    lines = [json.dumps({"words": ["a", "b"], "targets": targets}) for targets in records]
    read_or_refuse(path, "\n".join(lines).encode(), "jsonl")


def test_fuzzed_texts_are_sometimes_tasks(path: Path) -> None:
    """The strategies above would prove little if nothing they make could be read."""
    tasks = 0

    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(text=rows(10))
    def attempt(text: str) -> None:
        nonlocal tasks
        path.write_text(text, encoding="utf-8", newline="")
        with contextlib.suppress(CloserLookError):
            read_task(path, format="conllu")
            tasks += 1

    attempt()
    assert tasks > 10
