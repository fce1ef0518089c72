"""Explorers of a made-up study, as a study stores them."""

from typing import Any

from closerlook import explore
from closerlook.scatter.data import scatter_data
from closerlook.scatter.packing import pack
from closerlook.study.explored import StoredExplorer
from tests.explorer.made import training


def stored(encoder: str = "bert-tiny", task: str = "animals", n: int = 60, **changes: Any) -> StoredExplorer:
    """The points of a made-up training at layer 2, three snapshots, seed 0."""
    scatter = explore(*training(n), test=training(30, split="test"), threads=1).scatter
    facts = {
        "tuned_on": task,
        "seed": 0,
        "layers": [2],
        "examples": n + 30,
        "measured": n + 30,
        "shown": n + 30,
        "packed": pack(scatter_data(scatter)),
    }
    return StoredExplorer(encoder, task, **facts | changes)
