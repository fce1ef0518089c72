"""A study in little: the rows that its page and figures are made of, small enough to be kept with a paper."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from closerlook.errors import InputError
from closerlook.report.writing import write_report
from closerlook.representations.atomic import atomic_write
from closerlook.study.cells import PRETRAINED
from closerlook.study.readings import measured_layers
from closerlook.study.results import MANIFEST, TABLE, load_results

if TYPE_CHECKING:
    import pandas as pd

UNSHOWN = (
    "minimum_distance_change",
    "largest_cluster_share",
    "label_overlap",
    "grid_accuracy",
    "grid_held_out_accuracy",
    "head_loss",
    "label_accuracy",
)
"""Measures in many rows that the page does not show."""

AT_THE_TOP = (
    *(
        "label_distance",
        "minimum_distance",
        "relative_minimum_distance",
        "label_clusters",
        "blocked_merge",
        "few_points",
    ),
    "minimum_distance_change_p_value",
)
"""Measures of single labels that the page shows of each encoder's last layer only."""

AT_THE_ENDS = ("label_distance", "label_clusters", "blocked_merge", "few_points")
"""Of these, those that it shows of the start and the end only, on train."""

NUMBERS = ("value", "ci_low", "ci_high")


def archive(folder: str | Path, to: str | Path) -> Path:
    """The page of a study in a folder of its own, with the table and manifest that it can be made from again.

    Numbers are rounded to 32 bits, and rows that the page does not show are left out.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    source, target = Path(folder).expanduser(), Path(to).expanduser()
    if target.resolve() == (source if source.is_dir() else source.parent).resolve():
        raise InputError(f"{target} is the study itself; expected another folder, since the archive holds less")
    table = pa.Table.from_pandas(shown(load_results(source)), preserve_index=False)
    target.mkdir(parents=True, exist_ok=True)
    with atomic_write(target / TABLE) as stream:
        texts = [name for name in table.column_names if name not in NUMBERS]
        pq.write_table(
            table, stream, compression="zstd", compression_level=19, use_dictionary=texts, use_byte_stream_split=NUMBERS
        )
    beside = (source if source.is_dir() else source.parent) / MANIFEST
    if beside.exists():
        shutil.copyfile(beside, target / MANIFEST)
    return write_report(target, figures=False)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a study's table that its page is made of."""
    last = {encoder: layers[-1] for encoder, layers in measured_layers(table).items()}
    top = table.layer == table.encoder.map(last)
    end = (table.split == "train") & (table["is_final"] | (table.tuned_on == PRETRAINED) | (table.step == 0))
    kept = table[
        ~table.measure.isin(UNSHOWN)
        & (top | ~table.measure.isin(AT_THE_TOP))
        & (end | ~table.measure.isin(AT_THE_ENDS))
    ]
    rounded = {name: kept[name].astype(np.float32).astype(np.float64) for name in NUMBERS}
    return kept.assign(**rounded).reset_index(drop=True)
