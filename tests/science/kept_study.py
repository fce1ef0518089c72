"""Adds to the table in docs/results what later versions measure and what follows from the table itself.

`python -m tests.science.kept_study` adds the similarity to the pretrained encoder with label sizes removed, from the
stored label distances, and the similarity of noise with the same label sizes. It replaces rows that it added before.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from closerlook.geometry.label_sizes import noise_similarity, size_adjusted_similarity
from closerlook.study.readings import Results, index_results
from closerlook.study.results import TABLE, load_results
from closerlook.study.runs import Pair, Run

FOLDER = Path(__file__).parents[2] / "docs" / "results"
ADDED = ("similarity_size_adjusted_original", "similarity_size_adjusted_p_value_original", "noise_similarity")
EMPTY = {"label": None, "other": None, "text": None, "ci_low": np.nan, "ci_high": np.nan}


def label_table(results: Results, pair: Pair, run: Run | None) -> tuple[list[str], np.ndarray]:
    """The label distances of train at the last layer: of the pretrained encoder, or at the end of a run."""
    rows = results.at("label_distance", pair.encoder, pair.task)
    if run is None:
        rows = rows[rows.tuned_on == ""]
    else:
        rows = rows[(rows.tuned_on == run.tuned_on) & (rows.seed == run.seed) & rows["is_final"]]
    names = sorted({*rows.label, *rows.other})
    at = {name: number for number, name in enumerate(names)}
    values = np.zeros((len(names), len(names)))
    for label, other, value in rows[["label", "other", "value"]].to_numpy():
        values[at[label], at[other]] = values[at[other], at[label]] = value
    return names, values


def sizes_of(results: Results, pair: Pair) -> dict[str, int]:
    """The number of train points of each label."""
    rows = results.at("label_clusters", pair.encoder, pair.task)
    rows = rows[rows.tuned_on == ""]
    return {str(label): int(n) for label, n in rows[["label", "n"]].to_numpy()}


def added_rows(results: Results) -> list[dict[str, object]]:
    """The new rows, placed like the number of clusters of the same space."""
    rows: list[dict[str, object]] = []
    for encoder in results.encoders:
        for task in results.tasks:
            own = Pair(encoder, task, task)
            sizes = sizes_of(results, own)
            dimension = results.before("n_dimensions", encoder, task)
            if not sizes or dimension is None:
                continue
            noise = noise_similarity([*sizes.values()], [*sizes.values()], int(dimension.value), threads=1)
            places = results.at("n_clusters", encoder, task)
            places = places[(places.tuned_on == "") | (places["is_final"] & (places.tuned_on == task))]
            for place in places.to_dict("records"):
                new = [("noise_similarity", noise.mean, noise.points)]
                if place["tuned_on"]:
                    run = Run(encoder, task, int(place["seed"]), task)
                    found = size_adjusted_similarity(
                        label_table(results, own, None), label_table(results, own, run), sizes, sizes
                    )
                    new += [(ADDED[0], found.pearson, found.n_labels), (ADDED[1], found.p_value, found.permutations)]
                rows += [{**place, **EMPTY, "measure": name, "value": value, "n": n} for name, value, n in new]
    return rows


if __name__ == "__main__":
    table = load_results(FOLDER)
    table = table[~table.measure.isin(ADDED)]
    added = pd.DataFrame(added_rows(index_results(table)))[table.columns].astype(table.dtypes.to_dict())
    whole = pa.Table.from_pandas(pd.concat([table, added], ignore_index=True), preserve_index=False)
    numbers = ("value", "ci_low", "ci_high")
    texts = [name for name in whole.column_names if name not in numbers]
    pq.write_table(
        whole,
        FOLDER / TABLE,
        compression="zstd",
        compression_level=19,
        use_dictionary=texts,
        use_byte_stream_split=numbers,
    )
