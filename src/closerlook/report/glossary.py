"""The terms of the report page, with their meanings, and links from texts to them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

UNDECIDED = "undecided"
"""The term that is defined only on pages that use it."""


@dataclass(frozen=True)
class Entry:
    """A term and its meaning. forms: other forms of the term that texts use."""

    name: str
    meaning: str
    forms: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """The id of the term on the page."""
        return "term-" + re.sub(r"[^a-z]+", "-", self.name.lower()).strip("-")


def glossary(*, undecided: bool) -> list[Entry]:
    """The terms of a page, in the order of the page. undecided: whether the page counts undecided merges."""
    return [entry for entry in TERMS if undecided or entry.name != UNDECIDED]


def find_terms(text: str) -> list[tuple[str, str]]:
    """A text in parts, each with the anchor of the term that it names, or an empty string.

    Only the first occurrence of each term is a part of its own.

    >>> find_terms("few clusters: clusters")
    [('few ', ''), ('clusters', 'term-cluster'), (': clusters', '')]
    """
    parts: list[tuple[str, str]] = []
    at, seen = 0, {UNDECIDED}
    for found in _pattern().finditer(text):
        entry = _by_form()[found[0].lower()]
        if entry.name not in seen:
            seen.add(entry.name)
            parts += [(text[at : found.start()], ""), (found[0], entry.anchor)]
            at = found.end()
    return [part for part in (*parts, (text[at:], "")) if part[0]]


def link_terms(text: str) -> Markup:
    """A text as HTML in which the first occurrence of each term is a link to its meaning.

    >>> str(link_terms("clusters & clusters"))
    '<a class="defined" href="#term-cluster">clusters</a> &amp; clusters'
    """
    from markupsafe import Markup, escape

    link = Markup('<a class="defined" href="#{}">{}</a>')
    return Markup().join(link.format(anchor, part) if anchor else escape(part) for part, anchor in find_terms(text))


@cache
def _by_form() -> dict[str, Entry]:
    return {form.lower(): entry for entry in TERMS for form in (entry.name, *entry.forms)}


@cache
def _pattern() -> re.Pattern[str]:
    """Any form of any term as a whole word; longer forms win."""
    forms = sorted(_by_form(), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, forms))})(?![\w-])", re.IGNORECASE)


TERMS = (
    Entry(
        "space",
        "the vectors that one layer of one encoder gives to the examples of one split (train or test) of a "
        "task, with their labels",
        ("spaces",),
    ),
    Entry(
        "fine-tuning run",
        "the fine-tuning of one encoder on one task with one seed",
        ("fine-tuning runs",),
    ),
    Entry(
        "pair",
        "an encoder and a task, averaged over the seeds of its fine-tuning runs; the verdicts count pairs",
        (
            "pairs of encoder and task",
            "pair of encoder and task",
        ),
    ),
    Entry(
        "within noise",
        "of a change: not larger than its own uncertainty over examples, or not larger than its uncertainty "
        "over seeds; each finding says how this is measured",
        ("beyond noise",),
    ),
    Entry(
        "before, after",
        "before fine-tuning: the pretrained encoder; after fine-tuning: the encoder at the last step of a "
        "fine-tuning run",
        ("before fine-tuning", "after fine-tuning"),
    ),
    Entry(
        "snapshot",
        "the encoder at one step of a fine-tuning run; the first snapshot is before fine-tuning, the last one after",
        ("snapshots",),
    ),
    Entry(
        "probed on",
        "the task whose examples and labels are measured; it can differ from the task that the encoder was "
        "fine-tuned on",
    ),
    Entry(
        "related, opposed task",
        "of two different tasks, one for fine-tuning and one that is probed. Related: at least half of all "
        "label names of the two tasks occur in both. Opposed: fine-tuned on part-of-speech tagging (pos, "
        "toy-pos), which gives all prepositions one label, and probed on a task that distinguishes "
        "prepositions (ps-role, ps-fxn, toy-role, toy-fxn)",
        (
            "related task",
            "opposed task",
            "relation",
        ),
    ),
    Entry(
        "classifier probe",
        "a small neural network that is trained to predict the labels of train from their vectors; its "
        "accuracy is measured on test; the encoder itself is not changed",
        (
            "classifier probes",
            "probe accuracy",
        ),
    ),
    Entry(
        "control task",
        "the same examples with random labels, one for each word, the same in train and test; a probe can solve it "
        "only by memorising words",
        ("control tasks",),
    ),
    Entry(
        "selectivity",
        "the accuracy of a classifier probe minus its accuracy on control tasks",
    ),
    Entry(
        "description length",
        "the number of bits needed to send the labels of train, given the vectors: block by block, each with a probe "
        "that was trained on the blocks before it",
    ),
    Entry(
        "cell",
        "one unit of work of a study, such as one fine-tuning run or the clusters and distances of one "
        "space; the result of each cell is stored, so an interrupted study continues where it stopped",
        ("cells",),
    ),
    Entry(
        "cluster",
        "a set of points of one label whose convex hull does not overlap the convex hull of a cluster of "
        "another label; a point with the same vector as a point of another label (a conflict) is a cluster "
        "of its own. DirectProbe merges the clusters of a label until no further merge is possible",
        ("clusters",),
    ),
    Entry(
        "linearly separable",
        "of a space: there are as many clusters as labels, so that a hyperplane separates every pair of labels",
        ("linear separability",),
    ),
    Entry(
        "blocked merge",
        "two clusters of a label that cannot merge, because the convex hull of their union would overlap a "
        "cluster of another label (the blocking cluster)",
        (
            "blocked merges",
            "blocking cluster",
        ),
    ),
    Entry(
        "label distance",
        "the distance between the convex hulls of two labels; if a label has several clusters, the mean over "
        "the pairs of clusters of the two labels (or the minimum, with the setting geometry.statistic)",
        (
            "label distances",
            "distances between labels",
        ),
    ),
    Entry(
        "minimum distance",
        "of a label: its distance to the nearest other label",
        (
            "minimum distances",
            "distance to the nearest other label",
        ),
    ),
    Entry(
        "RMS radius",
        "the root mean square distance of the points of a space from their mean; a distance divided by the "
        "RMS radius does not change if all vectors are scaled",
        ("RMS radii",),
    ),
    Entry(
        "spatial similarity",
        "of two spaces with the same labels: the Pearson correlation of their label distances",
    ),
    Entry(
        "train–test similarity",
        "the spatial similarity of train and test in the same layer of the same encoder",
        ("similarity of train and test",),
    ),
    Entry(
        "point similarity",
        "of two spaces of the same examples: CKA, Procrustes, RSA or shared neighbours",
        ("point similarities",),
    ),
    Entry(
        "random weights",
        "an encoder of the same architecture whose weights are random, neither pretrained nor fine-tuned; a "
        "baseline for similarity",
    ),
    Entry(
        "shuffled labels",
        "labels without meaning, for comparison. For similarity, the label names of one space are permuted; "
        "for clusters, distances and separability, the labels are shuffled among the points",
        ("permuted labels",),
    ),
    Entry(
        "subsample",
        "a random part of the points of a space, on which clusters and distances with shuffled labels are "
        "computed, because shuffled labels on all points would take too long. Rare labels may be missing "
        "from it, so there can be fewer clusters than the space has labels. Compare values on a subsample "
        "only with values of the true labels on the same subsample",
    ),
    Entry(
        "interval over labels",
        "a 95% confidence interval of a similarity, from a bootstrap over the labels; it shows how much the "
        "value would vary with other labels",
        ("intervals over labels",),
    ),
    Entry(
        "interval over examples",
        "a 95% confidence interval from random halves of the examples; it shows how much the value would "
        "vary with another sample of examples",
        ("intervals over examples",),
    ),
    Entry(
        "p-value",
        "of a similarity, of separability or of clusters: the share of labellings (the shuffled labellings "
        "and the true one) whose result is at least as extreme as the result of the true labels. Of a change "
        "of a label's minimum distance: from a two-sided t-test whose standard deviation is estimated from "
        "random halves of the examples",
        ("p-values",),
    ),
    Entry(
        "significant",
        "p ≤ 0.05; the p-values of changes of labels are first corrected for the number of labels by Holm's method",
        ("significantly",),
    ),
    Entry(
        "split halves",
        "two random halves of the train examples, compared with each other",
    ),
    Entry(
        "conflict",
        "a point with the same vector as a point of another label",
        ("conflicts",),
    ),
    Entry(
        "undecided",
        "of two clusters: the distance of their convex hulls is so close to τ that neither could be proved, "
        "that they are separable or that they overlap; the merge that depends on this is not made",
    ),
)
