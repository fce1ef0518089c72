"""The data of an explorer's page: small, escaped, and the same as the table."""

import base64
import json
import re
from html import unescape
from typing import Any

import numpy as np
import pytest

from closerlook import Space, explore
from closerlook.explorer.explorer import Explorer
from closerlook.explorer.page import make_page
from closerlook.scatter.data import _units, scatter_data
from tests.explorer.made import training
from tests.report.studies import data_of

HOSTILE = ["</script><script>alert(1)</script>", "=1+1", "rain\u202e", "a\0b", "\ud800", "😀 <b>"]


def decode(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind)


def positions(plane: dict[str, Any], snapshot: int) -> np.ndarray:
    steps = decode(plane["xy"][snapshot], "<u2").reshape(-1, 2)
    return np.array(plane["low"]) + steps / 65535 * np.array(plane["span"])


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return explore(*training(), test=training(30, split="test"), threads=1)


def test_positions_are_kept_to_a_part_in_65535(explorer: Explorer) -> None:
    data = scatter_data(explorer.scatter)
    for snapshot, xy in enumerate(explorer.layers[0].pca.xy):
        error = np.abs(positions(data["layers"][0]["pca"], snapshot) - xy)
        assert (error <= 0.51 / 65535 * np.array(data["layers"][0]["pca"]["span"])).all()


def test_the_data_are_those_of_the_table(explorer: Explorer) -> None:
    data, table = scatter_data(explorer.scatter), explorer.to_frame()
    layer = data["layers"][0]
    for at, snapshot in enumerate(data["snapshots"]):
        own = table[table.snapshot == snapshot]
        clusters = decode(layer["clusters"][at]["label"], "<u2")[decode(layer["nearest"][at], "<u4")]
        assert [data["labels"][label] for label in clusters] == own.cluster_label.tolist()
        assert ((decode(layer["flags"][at], "u1") & 4 > 0) == ~own.right).all()
        moved = decode(layer["moved"]["at"][at], "<u2") / 65535 * layer["moved"]["most"]
        np.testing.assert_allclose(moved, own.moved, atol=layer["moved"]["most"] / 65535)
        assert decode(data["row"], "<u4").tolist() == own.row.tolist()


def test_every_word_is_on_the_page_once() -> None:
    space = Space.from_arrays(np.random.default_rng(0).normal(size=(40, 3)), ["a", "b"] * 20, words=["sunshine"] * 40)
    assert json.dumps(data_of(make_page(explore(space, threads=1)))).count("sunshine") == 1


def test_two_thousand_points_at_nine_snapshots_take_less_than_a_megabyte_and_a_half() -> None:
    explorer = explore(*training(2000, 9), threads=1, pairs=[("ADJ", "NOUN")])
    assert len(json.dumps(scatter_data(explorer.scatter))) < 1_500_000


def test_hostile_words_and_labels_stay_text() -> None:
    n = len(HOSTILE)
    space = Space.from_arrays(np.eye(n), [f"label {word}" for word in HOSTILE], words=HOSTILE)
    page = make_page(explore(space, threads=1))
    assert "<script>alert" not in page
    assert page.encode()
    assert data_of(page)["points"]["word"]["texts"] == [
        HOSTILE[0],
        "=1+1",
        "rain\ufffd",
        "a\ufffdb",
        "\ufffd",
        "😀 <b>",
    ]


def test_the_policy_allows_the_scripts_of_the_page_and_nothing_else(explorer: Explorer) -> None:
    page = make_page(explorer)
    policy = unescape(re.search(r'Content-Security-Policy" content="(.*?)"', page)[1])  # type: ignore[index]
    assert "default-src 'none'" in policy
    assert policy.count("sha256-") == 3
    assert list(data_of(page)) == ["points"]  # without the chart library


def test_marks_are_counted_as_javascript_counts() -> None:
    text = "😀 rain"
    start, stop, *rest = _units(text, ((2, 6),))
    assert text.encode("utf-16-le")[2 * start : 2 * stop].decode("utf-16-le") == "rain"
    assert rest == [0, 0]
    assert _units("x" * 3000, ((2500, 2600),)) == [0, 0, 0, 0]


def test_a_notebook_shows_the_page_in_a_frame(explorer: Explorer) -> None:
    shown = explorer._repr_html_()
    source = re.fullmatch(r'<iframe srcdoc="([^"]*)" sandbox="allow-scripts allow-downloads"[^>]*></iframe>', shown)
    assert source is not None
    assert unescape(source[1]) == make_page(explorer)
