"""Ranking encoders and layers for a task."""

from collections.abc import Iterator

import pandas as pd
import pytest

from closerlook.errors import InputError
from closerlook.ranking import judge_scores, rank
from tests.threads import one_torch_thread


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    with one_torch_thread():
        yield


def test_a_pretrained_encoder_ranks_above_random_weights() -> None:
    result = rank(["random:bert-tiny", "bert-tiny"], "toy-pos", layers="last", max_examples=300, device="cpu")
    assert result.best == ("bert-tiny", 2)
    assert result.spaces.encoder.tolist() == ["bert-tiny", "random:bert-tiny"]
    assert (result.spaces.low <= result.spaces.accuracy).all()
    assert (result.spaces.high >= result.spaces.accuracy).all()
    assert "best bert-tiny layer 2" in repr(result)
    assert "<table" in result._repr_html_()


def test_scores_are_judged_by_their_order_and_by_what_choosing_costs() -> None:
    spaces = pd.DataFrame(
        {
            "encoder": ["a", "a", "b"],
            "layer": [0, 1, 0],
            "accuracy": [0.5, 0.9, 0.7],
            "nearest_mean": [0.1, 0.3, 0.2],  # the same order
            "logme": [3.0, 1.0, 2.0],  # the reverse order
            "hull_distance": [1.0, 1.0, 1.0],  # no order
            "clusters": [30, 10, 20],  # fewer is better: the same order
            "participation_ratio": [1.0, 3.0, 4.0],
        }
    )
    scores = judge_scores(spaces).set_index("score")
    assert scores.rank_correlation.loc["nearest_mean"] == pytest.approx(1.0)
    assert scores.rank_correlation.loc["logme"] == pytest.approx(-1.0)
    assert scores.rank_correlation.loc["clusters"] == pytest.approx(1.0)
    assert scores.rank_correlation.isna().loc["hull_distance"]
    assert scores.cost.loc["logme"] == pytest.approx(0.4)
    assert scores.cost.loc["participation_ratio"] == pytest.approx(0.2)
    assert (scores.encoder.loc["clusters"], scores.layer.loc["clusters"], scores.cost.loc["clusters"]) == ("a", 1, 0.0)


def test_the_same_encoder_twice_is_refused() -> None:
    with pytest.raises(InputError, match="expected one or more, each once"):
        rank(["bert-tiny", "bert-tiny"], "toy-pos")
