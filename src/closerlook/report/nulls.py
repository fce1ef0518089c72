"""Similarity and separability compared with baselines: shuffled labels, random weights, other seeds, other encoders."""

from __future__ import annotations

import statistics
from dataclasses import replace

from closerlook.geometry.p_values import SIGNIFICANCE, why_no_p_value
from closerlook.report.before_after import STATES, before_after, highest_p, mean_of, nulls_of, over_seeds, runs_of
from closerlook.report.tables import Column, Table, Value, count_of, show_number, text_columns
from closerlook.study.readings import Measurement, Results

COMPARED_WITH = {
    "original": "the pretrained encoder",
    "seed": "another seed",
    "random": "random weights",
    "encoder": "other encoders",
}
"""What a train space is compared with: the suffix of measure names -> the text on the page."""


SIZES_REMOVED, NOISE = "label sizes removed", "noise of the same sizes"
ORIGINAL_WITHOUT_SIZES = "the pretrained encoder, label sizes removed"


def similarity_table(results: Results) -> Table:
    """Train–test similarity with true and shuffled labels, and the similarity to the spaces in COMPARED_WITH."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs() if _has_baselines(results) else ():
        name = f"similarity_{results.train_test}"
        similarity, null = before_after(results, name, encoder, task), nulls_of(results, name, encoder, task)
        p = highest_p(results, f"similarity_p_value_{results.train_test}", encoder, task)
        adjusted = before_after(results, f"similarity_size_adjusted_{results.train_test}", encoder, task)
        adjusted_p = highest_p(results, f"similarity_size_adjusted_p_value_{results.train_test}", encoder, task)
        noise = before_after(results, "noise_similarity", encoder, task)
        for at, state in enumerate(STATES):
            others = [similarity_to(results, other, encoder, task, tuned=bool(at)) for other in COMPARED_WITH]
            others.append(similarity_to(results, "size_adjusted_original", encoder, task, tuned=bool(at)))
            if any((similarity[at], *others)):
                about_sizes = (adjusted[at], adjusted_p[at], noise[at])
                rows.append((encoder, task, state, similarity[at], null[at], p[at], *about_sizes, *others))
    group = f"train and {results.test_split}"
    columns = (
        *text_columns("encoder", "task", "state"),
        *(Column("similarity", group), Column("shuffled labels", group), Column("p", group, 4, p_value=True)),
        *(Column(SIZES_REMOVED, group), Column("p without sizes", group, 4, p_value=True), Column(NOISE, group)),
        *(Column(title, "train split, compared with") for title in COMPARED_WITH.values()),
        Column(ORIGINAL_WITHOUT_SIZES, "train split, compared with"),
    )
    title = "Similarity with true and shuffled labels, values"
    table = Table("nulls", title, "", columns, tuple(rows)).without_empty()
    return replace(table, note=_similarity_note(table, results.test_split))


def _similarity_note(table: Table, test_split: str) -> str:
    """What the columns of the table mean; columns that the table does not have are not mentioned."""
    titles = {column.title for column in table.columns}
    sentences = ["Spatial similarity at the last layer, with its 95% bootstrap interval over labels."]
    if "shuffled labels" in titles:
        sentences.append(
            "Shuffled labels: mean ± standard deviation of the similarity when the labels of one space are permuted."
        )
    if "p" in titles:
        sentences.append(
            "p: the share of permutations (the unpermuted labels count as one) whose similarity is at least as high "
            f"as the similarity of train and {test_split}; with several seeds, the highest p-value."
        )
    if titles & {SIZES_REMOVED, ORIGINAL_WITHOUT_SIZES}:
        sentences.append(
            "Label sizes removed: the correlation after the effects of single labels and of label sizes are removed "
            "from the distances. Its p-value is that of a Freedman–Lane permutation test."
        )
    if NOISE in titles:
        sentences.append(
            "Noise: the similarity of two spaces of pure noise with the label sizes and dimensions of train; a "
            "similarity that is not above it may be an effect of label sizes."
        )
    others = [meaning for other, meaning in TRAIN_SPLITS.items() if COMPARED_WITH[other] in titles]
    if others:
        sentences.append(
            f"On the right: the similarity of the train split to the train split of {' or of '.join(others)}. With "
            "several seeds, a value is their mean, and ± is their standard deviation."
        )
    if COMPARED_WITH["encoder"] in titles:
        sentences.append(f"Column “{COMPARED_WITH['encoder']}”: mean ± standard deviation over these encoders.")
    return " ".join(sentences)


TRAIN_SPLITS = {
    "original": "the pretrained encoder",
    "seed": "the encoder fine-tuned with another seed",
    "random": "the same encoder with random weights",
    "encoder": "other pretrained encoders",
}
"""The spaces in COMPARED_WITH, as the note of a table explains them: each is the train split of one of these."""


def _has_baselines(results: Results) -> bool:
    names = (f"null_mean_{results.train_test}", "seed", "random", "encoder")
    return any(results.has(f"similarity_{name}") for name in names)


def similarity_to(results: Results, other: str, encoder: str, task: str, *, tuned: bool) -> Measurement | None:
    """The similarity of a train space to another one (see COMPARED_WITH), before or after fine-tuning."""
    return over_seeds(results.compared_with(f"similarity_{other}", encoder, task, tuned=tuned))


def separability_table(results: Results) -> Table:
    """Separable pairs of labels and clusters, with true and with shuffled labels; n / 2d and Cover's probability."""
    rows: list[tuple[Value, ...]] = []
    for encoder, task in results.pairs():
        pairs, clusters = (
            _compared_with_null(results, name, encoder, task) for name in ("separable_pairs", "subsampled_clusters")
        )
        ratio, cover = (
            before_after(results, f"separable_pairs_{name}", encoder, task)
            for name in ("n_over_2d", "cover_probability")
        )
        points = results.before("subsampled_clusters", encoder, task)
        for at, state in enumerate(STATES):
            if not any((*pairs[at], *clusters[at])):
                continue
            true, shuffled, _, p = pairs[at]
            n = None if points is None or clusters[at][0] is None else points.n
            percent = [value and value.scaled(100) for value in (true, shuffled, cover[at])]
            rows.append((encoder, task, state, *percent[:2], p, ratio[at], percent[2], n, *clusters[at]))
    columns = (
        *text_columns("encoder", "task", "state"),
        *(Column(f"{labels} labels, %", "separable pairs", 1) for labels in ("true", "shuffled")),
        Column("p", "separable pairs", 3, p_value=True),
        *(Column("n / 2d", "Cover probability"), Column("probability, %", "Cover probability", 1)),
        Column("points", "clusters"),
        *(Column(f"{labels} labels", "clusters", 1) for labels in ("true", "shuffled")),
        *(Column("z", "clusters", 1), Column("p", "clusters", 2, p_value=True)),
    )
    title = "Separability compared with shuffled labels"
    reasons = {name: _no_p_value(results, name) for name in ("separable_pairs", "subsampled_clusters")}
    left_out = [f" No p of {SHUFFLED[name]}: {reason}." for name, reason in reasons.items() if reason]
    note = SEPARABILITY_NOTE + "".join(left_out)
    return Table("separability", title, note, columns, tuple(rows)).without_empty()


SHUFFLED = {"separable_pairs": "separable pairs", "subsampled_clusters": "clusters"}


SEPARABILITY_NOTE = (
    "Train, last layer. Separable pairs: the share of pairs of labels that a hyperplane separates, with the true and "
    "with shuffled labels. Cover probability: the probability that a random labelling of the n points of two labels in "
    "d dimensions is separable, by Cover's theorem; it is one half at n = 2d + 2, that is, where n / 2d is about 1. "
    "n / 2d and the Cover probability are means over pairs of labels. Clusters: the number of clusters on a subsample; "
    "the column “points” gives its size. Rare labels may be missing from it. Shuffled labels: mean ± standard "
    "deviation over shuffles. z: the value of the true labels minus the mean of the shuffled labels, divided by that "
    "standard deviation; – if it is 0. p: the share of labellings (the shuffled ones and the true one) whose value is "
    "at least as extreme as that of the true labels; with k shuffles, p is at least 1 / (k + 1)."
)

NullComparison = tuple[Measurement | None, Measurement | None, float | None, float | None]
"""The value with true labels, the value with shuffled labels, z and p."""


def _compared_with_null(
    results: Results, measure: str, encoder: str, task: str
) -> tuple[NullComparison, NullComparison]:
    """A measure with true and shuffled labels, before and after. With several seeds: the mean z and the highest p."""
    value, null = before_after(results, measure, encoder, task), nulls_of(results, measure, encoder, task)
    runs = runs_of(results, encoder, task)
    z = (
        mean_of([results.before(f"{measure}_z", encoder, task)]),
        mean_of([results.after(f"{measure}_z", run) for run in runs]),
    )
    p = highest_p(results, f"{measure}_p_value", encoder, task) if not _no_p_value(results, measure) else (None, None)
    return (value[0], null[0], z[0], p[0]), (value[1], null[1], z[1], p[1])


def _no_p_value(results: Results, measure: str) -> str:
    """Why a p-value is not given: too few shuffles; older tables have such p-values. Empty if that is unknown."""
    settings = results.manifest.get("plan", {}).get("nulls", {})
    shuffles = settings.get("shuffles" if measure == "separable_pairs" else "cluster_shuffles")
    return why_no_p_value(int(shuffles)) if shuffles and results.has(measure) else ""


# ---- in sentences ----


def similarity_text(results: Results) -> str:
    """How many train–test similarities are significant, and the similarity with shuffled labels; empty if unknown."""
    name = f"similarity_{results.train_test}"
    by_state = list(zip(*(nulls_of(results, name, *pair) for pair in results.pairs()), strict=True))
    nulls = [null for state in by_state for null in state if null is not None]
    together = "" if any(not any(state) for state in by_state) else ", before and after together,"
    p = [highest_p(results, f"similarity_p_value_{results.train_test}", *pair) for pair in results.pairs()]
    counts: list[str] = []
    for at, state in enumerate(STATES):
        known = [value for pair in p if (value := pair[at]) is not None]
        if known:
            significant = sum(value <= SIGNIFICANCE for value in known)
            first = f"{count_of(len(known), 'pair')} of encoder and task {state} fine-tuning"
            pairs = f"{len(known)} {state} it" if counts else first
            counts.append(f"for {significant} of {pairs}")
    if not nulls or not counts:
        return ""
    plain = Column("")
    mean, sd = _mean([null.value for null in nulls]), _mean([null.sd for null in nulls])
    return (
        f"Train and {results.test_split} are significantly more similar than with shuffled labels (p ≤ {SIGNIFICANCE}) "
        f"{' and '.join(counts)}; with shuffled labels, the similarity{together} is "
        f"{show_number(mean, plain)} ± {show_number(sd, plain)} (mean ± standard deviation)."
    )


KINDS_OF_ENCODER = {"before": "pretrained", "after": "fine-tuned"}
"""What an encoder is called in each state."""


def weights_text(results: Results) -> str:
    """The mean similarity to random weights and between seeds; empty if neither was measured."""

    def values(other: str, *, tuned: bool) -> list[float]:
        similarities = (similarity_to(results, other, *pair, tuned=tuned) for pair in results.pairs())
        return [similarity.value for similarity in similarities if similarity is not None]

    random = {state: values("random", tuned=state == "after") for state in STATES}
    means = [f"{statistics.fmean(known):.2f} {state}" for state, known in random.items() if known]
    means = [f"{mean} {'it' if at else 'fine-tuning'}" for at, mean in enumerate(means)]
    seeds = values("seed", tuned=True)
    sentences = []
    if means:
        sentences.append(
            "On train, the mean similarity of the encoder to the same encoder with random weights is "
            f"{' and '.join(means)}."
        )
        shuffled = [*values("null_mean_random", tuned=False), *values("null_mean_random", tuned=True)]
        if shuffled and statistics.fmean(shuffled) < min(statistics.fmean(known) for known in random.values() if known):
            kinds = " or ".join(KINDS_OF_ENCODER[state] for state, known in random.items() if known)
            mean = f"{round(statistics.fmean(shuffled), 2) + 0.0:.2f}".replace("-", "−")  # no negative zero
            sentences.append(
                f"So even an encoder with random weights is this similar to the {kinds} encoder, whereas shuffled "
                f"labels give a similarity of {mean}: random weights are the stricter baseline."
            )
    if seeds:
        sentences.append(
            "The mean similarity of two encoders that were fine-tuned on the same task with different seeds is "
            f"{statistics.fmean(seeds):.2f}."
        )
    return " ".join(sentences)


MOSTLY_SEPARABLE = 0.9
"""If at least this share of pairs is separable with shuffled labels, separability says little about the labels."""


def separability_text(results: Results) -> str:
    """Whether separability says anything about the labels; empty if it was not compared with shuffled labels."""
    compared = {
        (pair, state): (true.value, null.value)
        for pair in results.pairs()
        for state, (true, null, *_) in zip(STATES, _compared_with_null(results, "separable_pairs", *pair), strict=True)
        if true is not None and null is not None
    }
    if not compared:
        return ""
    known = list(compared.values())
    true, shuffled = (statistics.fmean(values) for values in zip(*known, strict=True))
    uninformative = sum(null == 1 for _, null in known)
    text = (
        f"On train{_spaces_clause(results, list(compared))}, {true:.1%} of the pairs of labels can be separated by a "
        f"hyperplane; after shuffling the labels among the points, {shuffled:.1%} still can"
    )
    if uninformative:
        return (
            f"{text}. In {uninformative} of {len(known)} spaces, all pairs are separable with shuffled labels too: "
            "there, separability says nothing about the labels."
        )
    doubt = ", but separability says little about the labels" if shuffled >= MOSTLY_SEPARABLE else ""
    return f"{text}. In no space are all pairs separable with shuffled labels{doubt}."


def _spaces_clause(results: Results, spaces: list[tuple[tuple[str, str], str]]) -> str:
    """Which spaces a mean is over: ', on average over 10 spaces (…)'; empty for one space. spaces: pair and state."""
    if len(spaces) == 1:
        return ""
    n_pairs = len({pair for pair, _ in spaces})
    one_encoder = len(results.encoders) == 1
    pairs = count_of(n_pairs, "task") if one_encoder else f"{count_of(n_pairs, 'pair')} of encoder and task"
    when = " and ".join(state for state in STATES if any(state == found for _, found in spaces))
    return f", on average over {len(spaces)} spaces ({pairs}, {when} fine-tuning)"


def _mean(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else 0.0
