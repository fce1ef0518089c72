"""The shape of the spaces: collapse, dimension, isotropy, label fit and overlap, before and after; and what is kept."""

from __future__ import annotations

from dataclasses import dataclass

from closerlook.report.chance import BESIDE
from closerlook.report.ends import ends
from closerlook.report.tables import MISSING, Column, Measured, Table, Term, Value, over_seeds, show_number
from closerlook.study.readings import Results


@dataclass(frozen=True)
class Shape:
    """A measure of the panel: its group, name in the table, title, what it says in one line, and digits."""

    group: str
    measure: str
    title: str
    meaning: str
    digits: int = 2


PANEL = (
    Shape("collapse", "nc1", "NC1", "spread within labels over spread between them; 0: each label is a point"),
    Shape("collapse", "cdnv", "CDNV", "variance within two labels over their squared distance; 0: far apart and tight"),
    Shape("collapse", "nc2_norm", "NC2, lengths", "how unequally far label means lie from the middle; 0: equally"),
    Shape("collapse", "nc2_angle", "NC2, angles", "how unequal the angles between label means are; 0: equal"),
    Shape("collapse", "nc3", "NC3", "distance of label means from a linear classifier's weights; 0: the same"),
    Shape("collapse", "nc4", "NC4", "how often that classifier says what the nearest mean says; 1: always", 3),
    Shape("dimension", "participation_ratio", "participation ratio", "dimensions that the variance is spread over", 1),
    Shape("dimension", "two_nn", "TwoNN", "dimensions that the points fill locally, from two neighbours' distances", 1),
    Shape("isotropy", "iso_score", "IsoScore", "1: the same variance in all directions; 0: all in one"),
    Shape("isotropy", "mean_cosine", "mean cosine", "of two points, seen from the origin; 1: all in one direction"),
    Shape("isotropy", "outlier_dimensions", "outlying dimensions", "share of dimensions whose mean stands far out", 3),
    Shape("label fit", "logme", "LogME", "evidence that labels are linear in the vectors; higher fits better"),
    Shape("label fit", "gdv", "GDV", "distance within labels less distance between; −1: apart, 0: labels say nothing"),
    Shape("label fit", "silhouette", "silhouette", "own label nearer than the next one; 1: much, below 0: farther"),
    Shape("overlap", "n_overlapping_pairs", "overlapping pairs", "pairs of labels that no hyperplane separates", 0),
    Shape(
        "overlap",
        "largest_overlap_share",
        "share to remove",
        "largest share of two labels' points in the other's way",
        3,
    ),
    Shape(
        "overlap",
        "mean_largest_cluster_share",
        "largest cluster",
        "share of a label's points in its largest cluster",
        3,
    ),
    Shape("overlap", "n_over_2d", "n / 2d", "points of two labels over twice the dimensions; below 1 chance separates"),
    Shape("overlap", "cover_probability", "Cover", "probability that as many points separate whatever their labels"),
)

MARK = "nc1"
"""What only the panel measures: without it there is no table."""


def shape_table(results: Results) -> Table:
    """Each measure of the panel before → after, encoder × task, with what it says."""
    rows: list[tuple[Value, ...]] = []
    pairs = set(results.pairs()) if len(results.of(MARK)) else set()
    for one in PANEL if pairs else ():
        for encoder in results.encoders:
            cells = [
                _arrow(results, one, encoder, task) if (encoder, task) in pairs else None for task in results.tasks
            ]
            if any(cells):
                rows.append((one.group, Term(one.title, one.meaning), encoder, *cells))
    columns = (
        *(Column(title, left=True) for title in ("", "measure", "encoder")),
        *(Column(task) for task in results.tasks),
    )
    note = "Train, last layer: as it came → at the end of fine-tuning on that task, the mean over seeds."
    if len(results.encoders) == 1:  # whose name would stand in every row
        columns, rows = (*columns[:2], *columns[3:]), [(*row[:2], *row[3:]) for row in rows]
    return Table("shape", "The shape before → after fine-tuning", note, columns, tuple(rows))


def _arrow(results: Results, one: Shape, encoder: str, task: str) -> str | None:
    column = Column("", digits=one.digits)
    before, after = ends(results, one.measure, encoder, task)
    if before is None and after is None:
        return None
    shown = [MISSING if value is None else show_number(value.value, column) for value in (before, after)]
    return shown[0] if after is None else " → ".join(shown)


# ---- what is kept, point by point ----

ALIKE = {"cka": "CKA", "rsa": "RSA", "procrustes": "Procrustes", "shared_neighbours": "shared neighbours"}
"""Measures of two spaces of the same rows; each is 1 for a rotated and scaled copy."""


def alike_table(results: Results) -> Table:
    """How alike train is, point by point, to train of the original, of other seeds, weights and encoders."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        for measure, title in ALIKE.items():
            values = [_alike(results, f"{measure}_{what}", encoder, task, tuned) for what, tuned in _ALIKE_AT]
            if any(values):
                rows.append((encoder, task, title, *values))
    columns = (
        *(Column(title, left=True) for title in ("encoder", "task", "measure")),
        *(Column(BESIDE[what], "at the end, to" if tuned else "as it came, to") for what, tuned in _ALIKE_AT),
    )
    return Table("alike", "How alike spaces are, point by point", ALIKE_NOTE, columns, tuple(rows)).without_empty()


_ALIKE_AT = (("original", True), ("seed", True), ("random", True), ("random", False), ("encoder", False))
ALIKE_NOTE = (
    "Train, last layer, the same examples in both spaces; of several seeds or encoders the mean ± standard deviation. "
    "Each is 1 for a rotated and scaled copy. CKA: linear, debiased, 0 in the mean for unrelated spaces. RSA: rank "
    "correlation of the distances of all pairs of points. Procrustes: how far one space can be turned into the other. "
    "Shared neighbours: the share of nearest points that are the same."
)


def _alike(results: Results, measure: str, encoder: str, task: str, tuned: bool) -> Measured | None:
    return over_seeds(results.beside(measure, encoder, task, tuned=tuned))
