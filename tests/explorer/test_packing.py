"""Packed points: the same after unpacking, and consistent after cutting."""

import base64
from typing import Any

import numpy as np
import pytest

from closerlook import Space, explore
from closerlook.scatter.data import Json, scatter_data
from closerlook.scatter.layers import ViewSettings
from closerlook.scatter.packing import count_points, cut, pack, unpack
from closerlook.scatter.scatter import Scatter, make_scatter
from closerlook.scatter.series import Series, from_spaces, sample_rows
from tests.explorer.made import training


def decode(text: str, kind: str) -> Any:
    return np.frombuffer(base64.b64decode(text), kind)


@pytest.fixture(scope="module")
def scatter() -> Scatter:
    return explore(*training(), test=training(30, split="test"), threads=1).scatter


@pytest.fixture(scope="module")
def data(scatter: Scatter) -> Json:
    return scatter_data(scatter)


def test_packed_data_are_the_same_after_unpacking(data: Json) -> None:
    assert unpack(pack(data)) == {**data, "layers": [{**one, "pca": _plain(one["pca"])} for one in data["layers"]]}


def _plain(plane: Json) -> Json:
    return plane | {"explained": list(plane["explained"])}


def test_cutting_keeps_the_points_of_the_lowest_ranks_and_all_that_belongs_to_them(data: Json) -> None:
    cut_data = cut(data, 25)
    rows = np.flatnonzero(decode(data["rank"], "<u2") < 25)
    assert count_points(cut_data) == 25
    assert decode(cut_data["label"], "<u2").tolist() == decode(data["label"], "<u2")[rows].tolist()
    assert decode(cut_data["row"], "<u4").tolist() == decode(data["row"], "<u4")[rows].tolist()
    words = [one["word"]["texts"] for one in (data, cut_data)]
    ats = [decode(one["word"]["at"], "<u4") for one in (data, cut_data)]
    assert [words[1][at] for at in ats[1]] == [words[0][at] for at in ats[0][rows]]
    assert len(words[1]) <= 25
    for before, after in zip(data["layers"][0]["pca"]["xy"], cut_data["layers"][0]["pca"]["xy"], strict=True):
        assert (decode(after, "<u2").reshape(-1, 2) == decode(before, "<u2").reshape(-1, 2)[rows]).all()


def test_cutting_keeps_every_margin_point_at_its_place(data: Json) -> None:
    after = cut(data, 25)
    kept = decode(data["row"], "<u4"), decode(after["row"], "<u4")
    tests = decode(data["test"], "u1"), decode(after["test"], "u1")
    for old, new in zip(data["layers"][0]["margins"], after["layers"][0]["margins"], strict=True):
        places = []
        for at, margin in enumerate((old, new)):
            rows, xy = decode(margin["rows"], "<u4"), decode(margin["xy"][2], "<u2").reshape(-1, 2).tolist()
            points = zip(tests[at][rows].tolist(), kept[at][rows].tolist(), strict=True)
            places.append(dict(zip(points, xy, strict=True)))
        assert places[1].items() <= places[0].items()
        assert 0 < len(places[1]) < len(places[0])


def test_nothing_is_cut_where_all_points_fit(data: Json) -> None:
    assert cut(data, 90) is data


def test_points_of_rank_zero_to_k_are_those_that_a_smaller_choice_shows() -> None:
    spaces = training(200)
    large, small = (explore(*spaces, points=most, threads=1).scatter for most in (150, 40))
    assert set(large.rows[large.rank < 40].tolist()) == set(small.rows.tolist())


def test_rows_are_those_of_the_whole_split_if_the_space_was_sampled() -> None:
    words = [str(at) for at in range(300)]
    space = Space.from_arrays(np.random.default_rng(0).normal(size=(300, 3)), ["a", "b", "c"] * 100, words=words)
    table = explore(space, max_examples=50, threads=1).to_frame()
    assert table.row.tolist() == [int(word) for word in table.word]
    assert table.row.max() > 100


def test_points_that_must_be_shown_come_first_in_the_sample_and_in_the_choice() -> None:
    wanted = [7, 55, 101, 190]
    assert set(wanted) <= set(sample_rows(np.array(["a", "b"] * 100), 20, [0], wanted).tolist())
    scatter = make_scatter(_series(200), ViewSettings(points=30), first=wanted, threads=1)
    assert set(scatter.rows[scatter.rank < 4].tolist()) == set(wanted)


def _series(n: int) -> Series:
    return Series("made", ("one", "two", "three"), (2,), (tuple(map(from_spaces, training(n))),))
