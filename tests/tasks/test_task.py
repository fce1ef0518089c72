"""Task and Split: frozen values with a content hash, built from annotated texts that are checked."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from closerlook.errors import InputError
from closerlook.tasks.task import Annotated, Task, Unit

RAIN: Annotated = (("light", "rain"), [((0,), "ADJ"), ((1,), "NOUN")])
PINNED = "774aa8684527fd0a2fe649af25d56837be6cdb4b5dba865ecbfd6c5f0933da9e"


def weather(name: str = "weather", **splits: list[Annotated]) -> Task:
    return Task.build(name, "token", splits or {"train": [RAIN]})


def test_examples_are_indices_into_texts_and_labels() -> None:
    task = weather(train=[(("so",), []), RAIN], test=[(("rain",), [((0,), "NOUN")])])
    assert task.labels == ("ADJ", "NOUN")
    train, test = task.splits
    assert train.texts == (("so",), ("light", "rain"))
    assert train.sentence.tolist() == [1, 1]
    assert train.positions.tolist() == [[0], [1]]
    assert train.y.tolist() == [0, 1]
    assert test.y.tolist() == [1]
    assert (len(train), len(test)) == (2, 1)


def test_labels_are_sorted_over_all_splits() -> None:
    assert weather(train=[(("a",), [((0,), "Z")])], test=[(("a",), [((0,), "A")])]).labels == ("A", "Z")


@pytest.mark.parametrize(
    ("unit", "text", "where", "columns"),
    [
        ("token", ("a", "b"), (1,), 1),
        ("pair", ("a", "b"), (1, 0), 2),
        ("span", ("a", "b"), (0, 2), 2),
        ("sentence", ("a", "b"), (), 0),
        ("sentence", "a b", (), 0),
    ],
)
def test_every_unit_has_its_columns_of_positions(unit: Unit, text: str, where: tuple[int, ...], columns: int) -> None:
    split = Task.build("t", unit, {"train": [(text, [(where, "L")])]}).split("train")
    assert split.positions.shape == (1, columns)
    assert split.positions.dtype == split.sentence.dtype == split.y.dtype == np.int32
    assert split.positions.tolist() == [list(where)]


def test_task_and_split_are_frozen() -> None:
    task = weather()
    with pytest.raises(FrozenInstanceError):
        task.name = "other"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        task.splits[0].name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("array", ["sentence", "positions", "y"])
def test_arrays_are_read_only(array: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(weather().splits[0], array)[0] = 1


def test_content_hash_is_the_same_on_every_machine() -> None:
    assert weather().content_hash == PINNED


def test_content_hash_does_not_depend_on_the_name() -> None:
    assert weather("other") == weather()
    assert hash(weather("other")) == hash(weather())


@pytest.mark.parametrize(
    "other",
    [
        Task.build("weather", "token", {"test": [RAIN]}),
        Task.build("weather", "token", {"train": [RAIN, RAIN]}),
        Task.build("weather", "token", {"train": [RAIN], "test": [RAIN]}),
        Task.build("weather", "token", {"train": [(("Light", "rain"), RAIN[1])]}),
        Task.build("weather", "token", {"train": [(("lightrain",), [((0,), "ADJ")]), (("x",), [((0,), "NOUN")])]}),
        Task.build("weather", "token", {"train": [(RAIN[0], [((0,), "ADJ"), ((0,), "NOUN")])]}),
        Task.build("weather", "token", {"train": [(RAIN[0], [((0,), "ADJ"), ((1,), "VERB")])]}),
        Task.build("weather", "token", {"train": [(RAIN[0], [((0,), "NOUN"), ((1,), "ADJ")])]}),
        Task.build("weather", "token", {"train": [(RAIN[0], [((1,), "NOUN"), ((0,), "ADJ")])]}),
        Task.build("weather", "token", {"train": [RAIN, (("so",), [])]}),
    ],
)
def test_content_hash_changes_with_any_content(other: Task) -> None:
    assert other.content_hash != weather().content_hash
    assert other != weather()


def test_pair_and_span_with_the_same_positions_differ() -> None:
    texts = {"train": [(("a", "b", "c"), [((0, 2), "L")])]}
    assert Task.build("t", "pair", texts) != Task.build("t", "span", texts)


def test_a_task_is_not_equal_to_something_else() -> None:
    assert weather() != "weather"


def test_pickle_keeps_the_name_and_the_content() -> None:
    again = pickle.loads(pickle.dumps(weather()))  # noqa: S301 - our own bytes
    assert again == weather()
    assert again.name == "weather"


def test_pickle_keeps_the_arrays_read_only() -> None:
    again = pickle.loads(pickle.dumps(weather()))  # noqa: S301 - our own bytes
    assert not again.splits[0].y.flags.writeable


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(InputError, match="split 'dev' requested; task weather has train, test"):
        weather(train=[RAIN], test=[RAIN]).split("dev")


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(InputError, match="task t: unit 'word' is unknown; expected one of token, pair, span, sentence"):
        Task.build("t", "word", {"train": [RAIN]})  # type: ignore[arg-type]


def test_no_split_is_refused() -> None:
    with pytest.raises(InputError, match="task t: no split was given; expected at least one, such as 'train'"):
        Task.build("t", "token", {})


def test_a_split_without_example_is_refused() -> None:
    with pytest.raises(InputError, match="task weather, test: no labelled example found; expected at least one"):
        weather(train=[RAIN], test=[(("so",), [])])


@pytest.mark.parametrize(
    ("unit", "text", "target", "message"),
    [
        ("token", "a b", ((0,), "L"), "the text of a token task is a plain string; expected a list of words"),
        ("token", (), ((0,), "L"), "empty word or text; expected at least one character"),
        ("token", ("a", " "), ((0,), "L"), "empty word or text; expected at least one character"),
        ("sentence", "", ((), "L"), "empty word or text; expected at least one character"),
        (
            "token",
            ("\ud800",),
            ((0,), "L"),
            r"invalid character '\\ud800', which is half a surrogate pair; expected valid Unicode",
        ),
        ("token", ("a",), ((0,), ""), "empty label; expected a name"),
        ("token", ("a",), ((0,), "\udc00"), r"label '\\udc00' contains half a surrogate pair; expected valid Unicode"),
        ("token", ("a",), ((0, 0), "L"), r"invalid positions \(0, 0\); expected \(word\) for a token"),
        ("pair", ("a",), ((0,), "L"), r"invalid positions \(0,\); expected \(head, dependent\) for a pair"),
        ("token", ("a", "b"), ((2,), "L"), r"invalid positions \(2,\); the sentence has words 0 to 1"),
        ("pair", ("a", "b"), ((-1, 0), "L"), r"invalid positions \(-1, 0\); the sentence has words 0 to 1"),
        ("span", ("a", "b"), ((0, 3), "L"), r"invalid positions \(0, 3\); the sentence has words 0 to 1"),
        ("span", ("a", "b"), ((1, 1), "L"), r"invalid span \(1, 1\); expected start before stop"),
        ("token", ("a",), ((2**40,), "L"), r"invalid positions \(1099511627776,\); the sentence has words 0 to 0"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_sentence(
    unit: Unit, text: str, target: tuple[tuple[int, ...], str], message: str
) -> None:
    good: Annotated = (("a", "b"), [])
    with pytest.raises(InputError, match=f"^task t, train, sentence 2: {message}$"):
        Task.build("t", unit, {"train": [good, (text, [target])]})


def test_an_empty_label_is_refused_after_good_ones() -> None:
    with pytest.raises(InputError, match="task weather, train, sentence 2: empty label"):
        weather(train=[RAIN, (("so",), [((0,), "")])])


def test_a_task_prints_in_one_short_line() -> None:
    assert repr(weather(train=[RAIN], test=[RAIN])) == "Task('weather', token, 2 labels, train 2, test 2)"
    assert repr(weather().splits[0]) == "Split('train', 1 texts, 2 examples)"


@pytest.mark.parametrize("split", ["", " ", "..", "../evil", "a/b", "a\\b", "a\0"])
def test_a_split_name_that_is_no_plain_word_is_refused(split: str) -> None:
    with pytest.raises(InputError, match="task t: invalid split name .*; expected a plain word"):
        Task.build("t", "token", {split: [RAIN]})
