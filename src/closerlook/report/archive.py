"""The archive of a study: its page, and a small table from which page, figures and similarities can be computed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.report.explorers import fit_explorers
from closerlook.report.writing import write_report
from closerlook.study.cells import PRETRAINED
from closerlook.study.explored import read_explorers, write_explorers
from closerlook.study.layers import last_layers
from closerlook.study.parquet import write_parquet
from closerlook.study.registry import find
from closerlook.study.results import MANIFEST, TABLE, load_results

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

NUMBERS = ("value", "ci_low", "ci_high")

ROUNDED = ("label_distance", "random_label_distance")
"""Measures with so many rows that their values are rounded to SIGNIFICANT_BITS."""

SIGNIFICANT_BITS = 12
"""The relative error of a rounded value is at most 2^-12, about 0.0002."""

PAGE_BYTES = 1 << 26
"""Large pages of the Parquet file: a pattern of labels that is repeated for every space is compressed well."""


def archive(folder: str | Path, to: str | Path) -> Path:
    """Write the page of a study to another folder, with a table and a manifest to make it from; return its path.

    Numbers are rounded to 32 bits, distances between labels to SIGNIFICANT_BITS. Rows that neither the page shows nor
    `recompute_similarities` needs are excluded, and so are points that the page does not show.
    """
    import pyarrow as pa

    source, target = Path(folder).expanduser(), Path(to).expanduser()
    if target.resolve() == (source if source.is_dir() else source.parent).resolve():
        raise InputError(f"{target} is the study itself; expected another folder, since the archive has fewer rows")
    table = pa.Table.from_pandas(shown_rows(load_results(source)), preserve_index=False)
    target.mkdir(parents=True, exist_ok=True)
    write_parquet(
        table,
        target / TABLE,
        compression="zstd",
        compression_level=19,
        data_page_size=PAGE_BYTES,
        use_dictionary=[name for name in table.column_names if name not in NUMBERS],
        use_byte_stream_split=NUMBERS,
    )
    manifest = (source if source.is_dir() else source.parent) / MANIFEST
    if manifest.exists():
        shutil.copyfile(manifest, target / MANIFEST)
    write_explorers(target, fit_explorers(read_explorers(manifest.parent)).shown)
    return write_report(target, figures=False)


def shown_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a study's table that an archive keeps; the registry of measures says which."""
    measures = {name: find(name) for name in table["measure"].unique()}
    rules = {name: "all" if measure is None else measure.archive for name, measure in measures.items()}
    rule = table["measure"].map(rules)
    last = table["layer"] == table["encoder"].map(last_layers(table))
    end = last & (table["is_final"] | (table["tuned_on"] == PRETRAINED) | (table["step"] == 0))
    kept = table[
        (rule == "all")
        | ((rule == "last layer") & last)
        | ((rule == "ends of last layer") & end & (table["split"] == "train"))
    ]
    rounded = {name: kept[name].to_numpy(np.float32).astype(np.float64) for name in NUMBERS}
    is_many = kept["measure"].isin(ROUNDED).to_numpy(bool)
    rounded["value"] = np.where(is_many, significant(rounded["value"]), rounded["value"])
    return kept.assign(**rounded).reset_index(drop=True)


def significant(values: Floats, bits: int = SIGNIFICANT_BITS) -> Floats:
    """The values rounded to a number of significant bits.

    >>> significant(np.array([1.0, 3.14159, 1000.7]), 6).tolist()
    [1.0, 3.125, 1008.0]
    """
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits))
