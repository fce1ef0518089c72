"""`Spaces`: in order, by split, by split and layer."""

import pickle

import numpy as np
import pytest

from closerlook import extract
from closerlook.errors import InputError
from closerlook.representations.space import Provenance, Space
from closerlook.representations.spaces import Spaces


def space(split: str, layer: int, task: str = "t") -> Space:
    X = np.full((1, 2), layer, dtype=np.float32)
    return Space(X, np.zeros(1, dtype=np.int32), ("a",), Provenance(task=task, split=split, layer=layer))


def test_spaces_are_unpacked_in_order_and_found_by_name() -> None:
    train, test = spaces = Spaces([space("train", 2), space("test", 2)])
    assert (spaces["train"], spaces.test, spaces[1], spaces[-2]) == (train, test, test, train)
    assert spaces[:1] == (train,)
    assert {"train", "test", "select"} <= set(dir(spaces))
    copy = pickle.loads(pickle.dumps(spaces))  # noqa: S301 - our own
    assert copy.test.provenance == test.provenance


def test_other_names_of_dev_are_found() -> None:
    spaces = Spaces([space("dev", 0)])
    assert spaces["validation"] is spaces.val is spaces.dev


def test_one_of_several_layers_is_found_by_its_number() -> None:
    spaces = Spaces([space("train", 0), space("train", 1), space("test", 0), space("test", 1)])
    assert spaces["test", 1] is spaces[3]
    assert spaces.select(split="test") == spaces[2:]
    assert spaces.select(layer=0, split="train") == (spaces[0],)
    with pytest.raises(InputError, match=r"^split 'test' requested; it has layers 0, 1: .* spaces\['test', 1\]$"):
        spaces["test"]
    with pytest.raises(InputError, match=r"split 'test' at layer 7 requested; .* of train, test at layers 0, 1$"):
        spaces["test", 7]


def test_a_split_that_is_not_there_is_refused() -> None:
    spaces = Spaces([space("train", 0)])
    with pytest.raises(InputError, match=r"split 'test' requested; there are spaces of train at layers 0"):
        spaces["test"]
    with pytest.raises(AttributeError, match="no space of a split 'test'; the splits are train"):
        spaces.test  # noqa: B018 - it raises


def test_one_of_several_tasks_is_selected() -> None:
    spaces = Spaces([space("train", 0, "a"), space("train", 0, "b")])
    assert spaces.select(task="b")["train"] is spaces[1]
    with pytest.raises(InputError, match=r"several tasks have it \(a, b\): choose with select\(task=...\)"):
        spaces["train"]


def test_extract_returns_them() -> None:
    train, test = spaces = extract("bert-tiny", "toy-question", splits="all", layers=0)
    assert (spaces.train, spaces["test"]) == (train, test)
    assert (train.provenance.split, test.provenance.split) == ("train", "test")
