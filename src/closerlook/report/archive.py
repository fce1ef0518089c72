"""The archive of a study: its page, and a small table from which page, figures and similarities can be computed."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from closerlook.errors import InputError
from closerlook.report.explorers import MOST_BYTES, fit_explorers
from closerlook.report.writing import write_report
from closerlook.study.cells import PRETRAINED, SHORT_KEY
from closerlook.study.explored import read_explorers, write_explorers
from closerlook.study.layers import last_layers
from closerlook.study.measure import Archive
from closerlook.study.parquet import write_parquet
from closerlook.study.recomputing import PLACE
from closerlook.study.registry import find
from closerlook.study.results import MANIFEST, TABLE, load_results

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

NUMBERS = ("value", "ci_low", "ci_high")

SPACE = ["measure", *PLACE, "split"]
"""The columns that say which space a distance between labels is from."""

KeptDistances = Literal["all", "last", "ends"]
"""The distances between labels that an archive keeps: all, of the last layer, or of its ends.

The ends are before and after fine-tuning, without snapshots in between. Unlike other measures of ends, distances are
kept for test as well, so that the train–test similarity can be computed again.
"""

DISTANCE_RULES: dict[KeptDistances, Archive] = {"last": "last layer", "ends": "ends of last layer"}
"""The rule that takes the place of the registry's; with 'all', the registry decides."""

DISTANCES = ("label_distance", "random_label_distance")
"""The distances between the labels of a space."""

DISTANCE_BITS = ((500, 10), (100, 16))
"""To how many significant bits the distances of a task are rounded, by the least number that one of its spaces has.

The relative error of a distance is at most 2^-bits. A similarity is computed from the distances that two spaces share:
the more there are, the less their rounding matters. With fewer than 100, ties of rounded distances would move
Spearman's rank correlation, so they are not rounded. Test may have fewer labels than train, so the task decides.
"""

MEASURE_BITS = {
    10: ("centroid_x", "centroid_y", "shift_x", "shift_y"),
    12: ("shift_length",),
    16: ("minimum_distance", "relative_minimum_distance"),
}
"""Numbers of significant bits, each with the measures that are rounded to it.

Positions in a plane are only drawn: 10 bits are less than half a pixel. Distances of single labels have at most four
digits on the page, mean lengths of shifts three.
"""

log = logging.getLogger(__name__)

ARCHIVE_BYTES, REST_BYTES = 8_000_000, 2_300_000
"""An archive has at most ARCHIVE_BYTES if its table has at most 5.7 MB. REST_BYTES: for its page without points.

The points of the explorer are in the archive twice, on the page and in a file; they take what the table leaves.
"""

PAGE_BYTES = 1 << 26
"""Large pages of the Parquet file: a pattern of labels that is repeated for every space is compressed well."""


def archive(folder: str | Path, to: str | Path, *, distances: KeptDistances = "all") -> Path:
    """Write the page of a study to another folder, with a table and a manifest to make it from; return its path.

    Numbers are rounded to 32 bits, distances between labels by DISTANCE_BITS, other measures of single labels by
    MEASURE_BITS; keys of cells are shortened. Rows that neither the page shows nor `recompute_similarities` needs are
    excluded, and so are points that the page does not show. distances: with 'last' or 'ends', similarities of spaces
    whose distances are not kept are values that cannot be computed again.
    """
    import pyarrow as pa

    source, target = Path(folder).expanduser(), Path(to).expanduser()
    if target.resolve() == (source if source.is_dir() else source.parent).resolve():
        raise InputError(f"{target} is the study itself; expected another folder, since the archive has fewer rows")
    rows = shown_rows(load_results(source), distances).astype(dict.fromkeys(NUMBERS, "float32"))
    table = pa.Table.from_pandas(rows, preserve_index=False)
    target.mkdir(parents=True, exist_ok=True)
    write_parquet(
        table,
        target / TABLE,
        compression="zstd",
        compression_level=19,
        data_page_size=PAGE_BYTES,
        row_group_size=max(1, table.num_rows),
        use_dictionary=[name for name in table.column_names if name not in NUMBERS],
        use_byte_stream_split=NUMBERS,
    )
    manifest = (source if source.is_dir() else source.parent) / MANIFEST
    if manifest.exists():
        shutil.copyfile(manifest, target / MANIFEST)
    room = (ARCHIVE_BYTES - REST_BYTES - (target / TABLE).stat().st_size) // 2
    fitted = fit_explorers(read_explorers(manifest.parent), min(MOST_BYTES, max(0, room)))
    if fitted.left_out:
        names = ", ".join(f"{one.encoder} on {one.task}" for one in fitted.left_out)
        log.warning("the archive of %s has no room for the points of %s", source, names)
    write_explorers(target, fitted.shown)
    return write_report(target, figures=False)


def shown_rows(table: pd.DataFrame, distances: KeptDistances = "all") -> pd.DataFrame:
    """The rows of a study's table that an archive keeps, rounded; the registry of measures says which."""
    measures = {name: find(name) for name in table["measure"].unique()}
    rules = {name: "all" if measure is None else measure.archive for name, measure in measures.items()}
    if distances != "all":
        rules |= dict.fromkeys(DISTANCES, DISTANCE_RULES[distances])
    rule = table["measure"].map(rules)
    last = table["layer"] == table["encoder"].map(last_layers(table))
    end = last & (table["is_final"] | (table["tuned_on"] == PRETRAINED) | (table["step"] == 0))
    kept = table[
        (rule == "all")
        | ((rule == "last layer") & last)
        | ((rule == "ends of last layer") & end & ((table["split"] == "train") | table["measure"].isin(DISTANCES)))
    ]
    rounded = {name: kept[name].to_numpy(np.float32).astype(np.float64) for name in NUMBERS}
    for bits, is_rounded in _rounded_rows(kept):
        rounded["value"][is_rounded] = significant(rounded["value"][is_rounded], bits)
    cells = kept["cell"].str[:SHORT_KEY]
    return kept.assign(**rounded, cell=cells).iloc[_order(kept)].reset_index(drop=True)


def _order(table: pd.DataFrame) -> NDArray[np.intp]:
    """The order of the rows in an archive: by measure; distances between labels also by space, similar ones together.

    Values of one measure resemble each other, and spaces of the same weights have the same distances: zstd finds
    repetitions that are not far apart.
    """
    import pandas as pd

    is_distance = table["measure"].isin(DISTANCES).to_numpy(bool)
    keys = [np.where(is_distance, pd.factorize(table[name])[0], 0) for name in ("layer", "split", "encoder", "task")]
    return np.lexsort([*keys, pd.factorize(table["measure"])[0]])


def _rounded_rows(table: pd.DataFrame) -> list[tuple[int, NDArray[np.bool_]]]:
    """Numbers of significant bits, each with the rows whose values are rounded to it."""
    is_distance = table["measure"].isin(DISTANCES).to_numpy(bool)
    n = np.zeros(len(table), dtype=np.int64)
    sizes = table[is_distance].groupby(SPACE, dropna=False).size()
    n[is_distance] = table["task"][is_distance].map(sizes.groupby(level="task").min())
    masks = [(bits, table["measure"].isin(names).to_numpy(bool)) for bits, names in MEASURE_BITS.items()]
    most = np.inf
    for least, bits in DISTANCE_BITS:
        masks.append((bits, (n >= least) & (n < most)))
        most = least
    return masks


def significant(values: Floats, bits: int) -> Floats:
    """The values rounded to a number of significant bits.

    >>> significant(np.array([1.0, 3.14159, 1000.7]), 6).tolist()
    [1.0, 3.125, 1008.0]
    """
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits))
