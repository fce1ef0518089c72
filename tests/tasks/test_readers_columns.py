"""Files of columns, as CoNLL-2003 has them."""

from pathlib import Path
from typing import Any

import pytest

from closerlook.errors import InputError
from closerlook.tasks.readers import read_task
from closerlook.tasks.task import Task

NEWS = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC

Peter NNP I-NP I-PER
"""


def columns(tmp_path: Path, content: str, **options: Any) -> Task:
    path = tmp_path / "news.conll"
    path.write_text(content, encoding="utf-8")
    return read_task(path, **options)


def tagged(task: Task) -> list[tuple[str, str]]:
    split = task.split("train")
    return list(zip(task.words(split) or (), (task.labels[y] for y in split.y), strict=True))


def test_the_first_column_is_the_word_and_the_last_its_label(tmp_path: Path) -> None:
    task = columns(tmp_path, NEWS)
    assert (task.unit, task.split("train").texts) == ("token", (("EU", "rejects", "German"), ("Peter",)))
    assert tagged(task) == [("EU", "I-ORG"), ("rejects", "O"), ("German", "I-MISC"), ("Peter", "I-PER")]


def test_any_column_can_be_either(tmp_path: Path) -> None:
    assert tagged(columns(tmp_path, NEWS, label="1"))[0] == ("EU", "NNP")
    assert tagged(columns(tmp_path, "D\tthe\t1\nN\tNew York\t2\n", words="1", label="0"))[1] == ("New York", "N")


def test_tabs_and_words_without_a_label(tmp_path: Path) -> None:
    assert tagged(columns(tmp_path, "a\tX\r\nb\t_\r\n\r\n\r\nc\tY\r\n")) == [("a", "X"), ("c", "Y")]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a X\nb\n", {}, "line 2: 'b' has 1 columns; expected 2, with the word in column 0 and its label in column -1"),
        ("a X\n", {"label": "4"}, "line 1: 'a X' has 2 columns; expected 2, .* its label in column 4"),
        ("a X\n", {"label": "ner"}, "invalid label 'ner'; expected the number of a column, such as 0 or -1"),
        ("a X\n", {"text": "a"}, "option text is unknown to format conll; its options are label, words"),
        ("\n\n", {}, "no labelled example found; expected at least one"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, content: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        columns(tmp_path, content, **options)
