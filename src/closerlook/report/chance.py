"""Against chance: what similarity and separability come to where labels, weights or seeds are others."""

from __future__ import annotations

from closerlook.report.ends import STATES, chances, ends, highest_p, mean_of, tuned
from closerlook.report.tables import Column, Measured, Table, Value, over_seeds
from closerlook.study.findings import SIGNIFICANCE
from closerlook.study.readings import Results

BESIDE = {
    "original": "the original",
    "seed": "another seed",
    "random": "random weights",
    "encoder": "other encoders",
}
"""What a space is compared with, as the table of a study calls it and as people do."""


def similarity_table(results: Results) -> Table:
    """Train–test similarity beside its null, and the similarity to the original, to other seeds, weights, encoders."""
    name = f"similarity_train_{results.compared}"
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs() if _has_baselines(results) else ():
        alike, null = ends(results, name, encoder, task), chances(results, name, encoder, task)
        p = highest_p(results, f"similarity_p_value_train_{results.compared}", encoder, task)
        for at, state in enumerate(STATES):
            others = [beside(results, what, encoder, task, tuned=bool(at)) for what in BESIDE]
            if any((alike[at], *others)):
                rows.append((encoder, task, state, alike[at], null[at], p[at], *others))
    columns = (
        *(Column(title, left=True) for title in ("encoder", "task", "state")),
        *(Column("similarity", "train with test"), Column("by chance", "train with test")),
        Column("p", "train with test", 4, level=True),
        *(Column(title, "train with train of") for title in BESIDE.values()),
    )
    return Table("chance", "Similarity against chance", SIMILARITY_NOTE, columns, tuple(rows)).without_empty()


SIMILARITY_NOTE = (
    "Spatial similarity at the last layer, with its 95% bootstrap interval over labels. By chance: mean ± standard "
    "deviation over random pairings of the labels of both sides; p: the share of pairings, this one among them, that "
    "reach the similarity (the highest of several seeds). To the right the same measure for train under other weights: "
    "of the original encoder, of the end of another seed, random ones in the same encoder, and those of other encoders "
    "as they came; of several the mean ± standard deviation."
)


def _has_baselines(results: Results) -> bool:
    names = (f"null_mean_train_{results.compared}", "seed", "random", "encoder")
    return any(len(results.of(f"similarity_{name}")) for name in names)


def beside(results: Results, what: str, encoder: str, task: str, *, tuned: bool) -> Measured | None:
    """How alike train is to train of something else: before, or at the end."""
    return over_seeds(results.beside(f"similarity_{what}", encoder, task, tuned=tuned))


def separability_table(results: Results) -> Table:
    """Separable pairs of labels and clusters, with true and with shuffled labels; n / 2d, and Cover's probability."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        apart, clusters = (
            _against(results, name, encoder, task) for name in ("separable_pairs", "subsampled_clusters")
        )
        facts = [
            ends(results, name, encoder, task)
            for name in ("separable_pairs_n_over_2d", "separable_pairs_cover_probability")
        ]
        points = results.before("subsampled_clusters", encoder, task)
        for at, state in enumerate(STATES):
            if not any((*apart[at], *clusters[at])):
                continue
            true, shuffled, _, p = apart[at]
            n = None if points is None or clusters[at][0] is None else points.n
            ratio, cover = (one[at] for one in facts)
            pairs = (true and true.scaled(100), shuffled and shuffled.scaled(100), p)
            rows.append((encoder, task, state, *pairs, ratio, cover and cover.scaled(100), n, *clusters[at]))
    columns = (
        *(Column(title, left=True) for title in ("encoder", "task", "state")),
        *(Column("true", "separable pairs, %", 1), Column("shuffled", "separable pairs, %", 1)),
        Column("p", "separable pairs, %", 3, level=True),
        *(Column("n / 2d", "any labels"), Column("separable, %", "any labels", 1)),
        *(Column("points", "clusters"), Column("true", "clusters", 1), Column("shuffled", "clusters", 1)),
        *(Column("z", "clusters", 1), Column("p", "clusters", 2, level=True)),
    )
    return Table("separability", "Separability against chance", SEPARABILITY_NOTE, columns, tuple(rows)).without_empty()


SEPARABILITY_NOTE = (
    "Train at the last layer. Separable pairs: the share of pairs of labels that a hyperplane separates, with the true "
    "labels and with shuffled ones (mean ± standard deviation). Any labels: n points of two labels in d dimensions "
    "separate with Cover's probability whatever their labels, half of the time at n / 2d = 1 (means over pairs). "
    "Clusters: of so many points at most, with true and with shuffled labels; z: their difference in standard "
    "deviations. p: the share of labellings, the true one among them, that do at least as well; a few shuffles cannot "
    "give a small one."
)

Against = tuple[Measured | None, Measured | None, float | None, float | None]


def _against(results: Results, measure: str, encoder: str, task: str) -> tuple[Against, Against]:
    """Before and after: the value, what shuffled labels give, z and p; of several seeds mean z and highest p."""
    value, null = ends(results, measure, encoder, task), chances(results, measure, encoder, task)
    runs = tuned(results, encoder, task)
    z = (
        mean_of([results.before(f"{measure}_z", encoder, task)]),
        mean_of([results.after(f"{measure}_z", run) for run in runs]),
    )
    p = highest_p(results, f"{measure}_p_value", encoder, task)
    return (value[0], null[0], z[0], p[0]), (value[1], null[1], z[1], p[1])


# ---- in words ----


def similarity_words(results: Results) -> str:
    """Whether the similarity of train and test is more than chance, in a sentence; nothing where chance is unknown."""
    name, told = f"similarity_train_{results.compared}", []
    nulls = [chances(results, name, *pair) for pair in results.pairs()]
    p = [highest_p(results, f"similarity_p_value_train_{results.compared}", *pair) for pair in results.pairs()]
    for at, state in enumerate(STATES):
        there = [found for one in p if (found := one[at]) is not None]
        if there:
            told.append(f"{sum(one <= SIGNIFICANCE for one in there)} of {len(there)} {state}")
    known = [one for both in nulls for one in both if one is not None]
    if not known or not told:
        return ""
    mean, sd = (_mean([getattr(one, part) for one in known]) for part in ("value", "sd"))
    return (
        f"Train and test are more alike than labels paired at random would make them (p ≤ {SIGNIFICANCE}) in "
        f"{' and '.join(told)} fine-tuning; random pairings give {mean:.2f} ± {sd:.2f}."
    )


def weights_words(results: Results) -> str:
    """How alike train is to train under random weights, and ends of other seeds, in a sentence; nothing without."""
    known = {
        state: [
            one.value for pair in results.pairs() if (one := beside(results, "random", *pair, tuned=tuned)) is not None
        ]
        for state, tuned in zip(STATES, (False, True), strict=True)
    }
    random = [f"{_mean([*values]):.2f} {state}" for state, values in known.items() if values]
    seeds = [one.value for pair in results.pairs() if (one := beside(results, "seed", *pair, tuned=True)) is not None]
    told = []
    if random:
        told.append(
            f"Random weights in the same encoder place the labels alike by {' and '.join(random)} fine-tuning, in the "
            "mean: so much of a similarity needs no training, and chance is the lower bar."
        )
    if seeds:
        told.append(f"Two seeds of the same fine-tuning end alike by {_mean([*seeds]):.2f}.")
    return " ".join(told)


LITTLE = 0.9
"""The share of pairs of shuffled labels that separate from which on the true ones' doing so says little."""


def separability_words(results: Results) -> str:
    """Whether being separable says anything, in a sentence; nothing where that was not measured."""
    both = [_against(results, "separable_pairs", *pair) for pair in results.pairs()]
    known = [(one[0].value, one[1].value) for pair in both for one in pair if one[0] is not None and one[1] is not None]
    if not known:
        return ""
    true, shuffled = (_mean([one[at] for one in known]) for at in (0, 1))
    empty = sum(one[1] == 1 for one in known)
    told = f"A hyperplane separates {true:.1%} of the pairs of true labels, and {shuffled:.1%} of shuffled ones"
    if not empty:
        little = ", though being separable says little" if shuffled >= LITTLE else ""
        return f"{told}; in no space do all pairs separate under shuffled labels{little}."
    where = f"in {empty} of {len(known)} spaces"
    return f"{told}; {where} all pairs separate under shuffled labels too, and being separable says nothing there."


def _mean(values: list[float | None]) -> float:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else 0.0
