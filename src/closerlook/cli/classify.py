"""`closerlook classify`: train classifier probes on any labelled vectors."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, TypedDict

from typer import Option

from closerlook.cli.measure import (
    InputNames,
    LabelFiles,
    MaxMemory,
    TestPoints,
    Threads,
    TrainPoints,
    XKey,
    YKey,
    load_points,
    stage,
    unseen_labels,
)
from closerlook.errors import InputError
from closerlook.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from closerlook.probes import CodeLength, ProbeResult, ProbeTraining, Selectivity
    from closerlook.probes.training import Sizes
    from closerlook.representations.points import Points

EXAMPLE = "Example: closerlook classify train.npz --test test.npz --control --description-length"
TRAINING = "Training"
SHOWN_CONFUSIONS = 10


def classify(
    file: TrainPoints,
    test: TestPoints = None,
    sizes: Annotated[
        str,
        Option(
            help="Widths of the hidden layers of each network, such as '32,64;128;linear' for three networks; grid: "
            "the 16 pairs of widths of Zhou and Srikumar 2022."
        ),
    ] = "grid",
    seeds: Annotated[
        int, Option(min=1, help="Number of seeds; each size is trained once with each of the seeds 0, 1, 2 …")
    ] = 5,
    control: Annotated[
        bool,
        Option(
            "--control",
            help="Also train on a control task, in which each word type has a random label (Hewitt and "
            "Liang 2019), to measure selectivity. Needs words in the file.",
        ),
    ] = False,
    description_length: Annotated[
        bool,
        Option(
            "--description-length",
            help="Also measure the description length of the training labels (online code, Voita and Titov 2020).",
        ),
    ] = False,
    learning_rate: Annotated[float, Option(help="Learning rate of AdamW.", rich_help_panel=TRAINING)] = 4e-3,
    batch_size: Annotated[int, Option(min=1, help="Number of vectors in a batch.", rich_help_panel=TRAINING)] = 128,
    max_rounds: Annotated[
        int,
        Option(
            min=0,
            help="Maximum number of rounds. A round is one pass over train (without the held-out part); if a "
            "pass has fewer than 30 steps, a round is the fewest passes with at least 30.",
            rich_help_panel=TRAINING,
        ),
    ] = 12,
    patience: Annotated[
        int,
        Option(
            min=1,
            help="Stop training a network after this many rounds without higher accuracy or lower loss on the held-out "
            "part.",
            rich_help_panel=TRAINING,
        ),
    ] = 3,
    weight_decay: Annotated[float, Option(help="Weight decay of AdamW.", rich_help_panel=TRAINING)] = 0.1,
    held_out: Annotated[
        float,
        Option(
            help="Share of train that is held out for early stopping and for choosing the size.",
            rich_help_panel=TRAINING,
        ),
    ] = 0.1,
    x_key: XKey = None,
    y_key: YKey = None,
    labels: LabelFiles = None,
    device: Annotated[str, Option(help="Device: auto, cpu, cuda, cuda:N or mps.")] = "auto",
    threads: Threads = None,
    max_memory: MaxMemory = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Train a grid of classifier probes on labelled vectors and measure their accuracy on test vectors."""
    from closerlook.cli.console import note, print_json
    from closerlook.probes import ProbeTraining

    training = ProbeTraining(learning_rate, batch_size, max_rounds, patience, weight_decay, held_out)
    settings = Settings(parse_sizes(sizes), seeds, training, device, threads)
    points, tested = _read(file, test, InputNames(x_key, y_key, labels, max_memory), control=control)
    outcome = _measure(points, tested, settings, control=control, description_length=description_length)
    if as_json:
        print_json(_as_dict(outcome))
    else:
        _print(outcome)
    note(f"done in {sum(outcome.seconds.values()):.1f} s")


class TrainingOptions(TypedDict):
    """Keyword arguments that all functions of `closerlook.probes` share."""

    seeds: int
    device: str
    threads: int | None


@dataclass(frozen=True)
class Settings:
    """What is trained and how; the device is checked when created."""

    sizes: tuple[Sizes, ...]
    seeds: int
    training: ProbeTraining
    device: str
    threads: int | None

    def __post_init__(self) -> None:
        from closerlook.encoders.loading import choose_device

        choose_device(self.device)

    @property
    def options(self) -> TrainingOptions:
        """Keyword arguments that all functions of `closerlook.probes` share."""
        return {"seeds": self.seeds, "device": self.device, "threads": self.threads}


@dataclass(frozen=True, eq=False)
class ClassifyOutcome:
    """Everything that one call of `closerlook classify` measured."""

    points: Points
    tested: Points
    unseen: dict[str, int]
    settings: Settings
    result: ProbeResult
    selectivity: Selectivity | None
    code: CodeLength | None
    seconds: dict[str, float] = field(default_factory=dict)


def parse_sizes(text: str) -> tuple[Sizes, ...]:
    """The sizes in the text of `--sizes`.

    >>> parse_sizes("32,64; 128; linear")
    ((32, 64), (128,), ())
    """
    from closerlook.probes.grid import GRID, check_sizes

    parsed: list[Sizes] = []
    try:
        for part in (part.strip() for part in text.split(";")):
            parsed += GRID if part == "grid" else [() if part == "linear" else tuple(map(int, part.split(",")))]
    except ValueError:
        raise InputError(f"invalid sizes {text!r}; expected grid, or widths such as '32,64;128;linear'") from None
    return check_sizes(parsed)


def sizes_text(sizes: Sizes) -> str:
    """A size as text.

    >>> sizes_text((32, 64)), sizes_text(())
    ('32 × 64', 'linear')
    """
    return " × ".join(map(str, sizes)) or "linear"


# ---- measuring ----


def _read(file: Path, test: Path | None, names: InputNames, *, control: bool) -> tuple[Points, Points]:
    points, tested = load_points(file, test, names)
    if tested is None:
        raise InputError(f"{file} has no test points; pass --test FILE, or add X_test and y_test to it")
    for name, vectors in ((file, points), (test or f"X_test of {file}", tested)):
        if control and vectors.words is None:
            raise InputError(
                f"{name} has no words for its rows; --control needs an array of strings `words` (and, for "
                "X_test, `words_test`), as closerlook extract writes them for all but sentence tasks"
            )
    return points, tested


def _measure(
    points: Points, tested: Points, settings: Settings, *, control: bool, description_length: bool
) -> ClassifyOutcome:
    from closerlook.probes import probe_grid

    train, test = (points.X, points.y), (tested.X, tested.y)
    (n, d), labels = points.X.shape, len(points.labels)
    seconds: dict[str, float] = {}
    unseen = unseen_labels(points, tested)
    networks = f"of {len(settings.sizes)} sizes × {settings.seeds} seeds on {n:,} points × {d} of {labels} labels"
    with stage("training", f"{networks}: {points.title}", seconds) as show:
        result = probe_grid(
            train, test, sizes=settings.sizes, training=settings.training, progress=show, **settings.options
        )
    selectivity = _selectivity(points, tested, result, settings, seconds) if control else None
    code = _code(points, settings, seconds) if description_length else None
    return ClassifyOutcome(points, tested, unseen, settings, result, selectivity, code, seconds)


def _selectivity(
    points: Points, tested: Points, result: ProbeResult, settings: Settings, seconds: dict[str, float]
) -> Selectivity:
    from closerlook.probes import measure_selectivity

    words = points.words or (), tested.words or ()
    tasks = f"tasks: random labels of {len({*words[0], *words[1]}):,} words, {settings.seeds} times"
    with stage("control", tasks, seconds) as show:
        return measure_selectivity(
            (points.X, points.y), (tested.X, tested.y), words, result=result, threads=settings.threads, progress=show
        )


def _code(points: Points, settings: Settings, seconds: dict[str, float]) -> CodeLength:
    from dataclasses import replace

    from closerlook.probes import online_code

    training = replace(settings.training, criterion="loss")
    with stage("description", f"length of the labels of {len(points.X):,} points, block by block", seconds) as show:
        return online_code((points.X, points.y), training=training, progress=show, **settings.options)


# ---- printing ----


def _print(outcome: ClassifyOutcome) -> None:
    from closerlook.cli.console import print_table

    result = outcome.result
    print_table(outcome.points.title, ["", ""], _summary(outcome))
    columns = ["hidden layers", "test accuracy", "held-out accuracy", "rounds", ""]
    rows = [
        [
            sizes_text(row["sizes"]),
            _with_deviation(row["accuracy"], row["sd"]),
            f"{row['held_out']:.4f}",
            f"{row['rounds']:.1f}",
            "chosen" if row["chosen"] else "",
        ]
        for row in result.table()
    ]
    print_table(f"Sizes: mean over {len(result.seeds)} seeds", columns, rows, numbers=columns[1:4])
    columns = ["label", "train points", "test points", "accuracy"]
    rows = [
        [
            str(row["label"]),
            f"{row['train']:,}",
            f"{row['test']:,}",
            "" if row["accuracy"] is None else f"{row['accuracy']:.4f}",
        ]
        for row in _labels(outcome)
    ]
    print_table(
        f"Labels: accuracy of the chosen size, {sizes_text(result.chosen_sizes)}", columns, rows, numbers=columns[1:]
    )
    confusions = _confusions(result)
    if confusions:
        columns = ["label", "predicted", "test points", "share of the label"]
        rows = [
            [str(row["label"]), str(row["predicted"]), f"{row['points']:.1f}", f"{row['share']:.4f}"]
            for row in confusions
        ]
        print_table("Largest confusions: mean over seeds", columns, rows, numbers=columns[2:])


def _summary(outcome: ClassifyOutcome) -> list[tuple[str, str]]:
    result, training = outcome.result, outcome.settings.training
    rows = [
        ("train", f"{result.n_train:,} × {result.d}, {len(result.labels)} labels"),
        ("test", f"{result.n_test:,}: {outcome.tested.title}"),
        ("chosen size", f"{sizes_text(result.chosen_sizes)}, by accuracy on a held-out part of train"),
        ("test accuracy", f"{_with_deviation(result.mean, result.deviation)} over {len(result.seeds)} seeds"),
        ("macro-F1", _with_deviation(*(result.to_dict()[key] for key in ("macro_f1", "macro_f1_sd")))),
        ("majority", f"{result.majority:.4f}, for always predicting the most frequent label of train"),
    ]
    if outcome.selectivity is not None:
        values = outcome.selectivity.to_dict()
        parts = f"task {values['task_accuracy']:.4f}, control {values['control_accuracy']:.4f}"
        known = f"{values['known_types']:.1%} of test points have a word that occurs in train"
        rows.append(("selectivity", f"{_with_deviation(values['selectivity'], values['sd'])}: {parts}; {known}"))
    if outcome.code is not None:
        values = outcome.code.to_dict()
        bits = f"{values['bits']:,.0f} ± {values['bits_sd']:,.0f} of {values['uniform_bits']:,.0f} bits"
        compression = _with_deviation(values["compression"], values["compression_sd"], digits=2)
        rows.append(("description length", f"{bits}: compression {compression}, {sizes_text(outcome.code.sizes)}"))
    listed = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in asdict(training).items())
    rows.append(("settings", f"{listed}; inputs standardised with the mean and variance of train"))
    rows.append(("device", result.device))
    rows.append(("seconds", ", ".join(f"{name} {value:.2f}" for name, value in outcome.seconds.items())))
    return rows


def _with_deviation(mean: float, deviation: float, digits: int = 4) -> str:
    return f"{mean:.{digits}f}" + ("" if math.isnan(deviation) else f" ± {deviation:.{digits}f}")


class LabelRow(TypedDict):
    """A label: its numbers of training and test points, and its accuracy (None without test points)."""

    label: str | int
    train: int
    test: int
    accuracy: float | None


class Confusion(TypedDict):
    """A label and a wrong prediction of it: test points, mean over seeds, and their share of the label."""

    label: str | int
    predicted: str | int
    points: float
    share: float


def _labels(outcome: ClassifyOutcome) -> list[LabelRow]:
    """A row for each label of train or test."""
    result = outcome.result
    return [
        {
            "label": label,
            "train": int((outcome.points.y == label).sum()),
            "test": int((outcome.tested.y == label).sum()),
            "accuracy": None if math.isnan(accuracy) else accuracy,
        }
        for label, accuracy in zip(result.test_labels, result.by_label.tolist(), strict=True)
    ]


def _confusions(result: ProbeResult) -> list[Confusion]:
    """The most frequent wrong predictions, by test points, mean over seeds."""
    wrong = result.confusion.copy()
    rows = wrong.sum(axis=1)
    wrong.ravel()[:: len(wrong) + 1] = 0
    order = (-wrong.ravel()).argsort(kind="stable")[:SHOWN_CONFUSIONS]
    pairs = [divmod(int(place), len(wrong)) for place in order]
    return [
        {
            "label": result.test_labels[true],
            "predicted": result.test_labels[predicted],
            "points": float(wrong[true, predicted] / len(result.seeds)),
            "share": float(wrong[true, predicted] / rows[true]),
        }
        for true, predicted in pairs
        if wrong[true, predicted]
    ]


def _as_dict(outcome: ClassifyOutcome) -> dict[str, object]:
    points, tested, settings = outcome.points, outcome.tested, outcome.settings
    provenance = None if points.provenance is None else points.provenance.to_dict()
    return outcome.result.to_dict() | {
        "title": points.title,
        "test_title": tested.title,
        "unseen": outcome.unseen,
        "by_label": _labels(outcome),
        "confusions": _confusions(outcome.result),
        "control": None if outcome.selectivity is None else outcome.selectivity.to_dict(),
        "description_length": None if outcome.code is None else outcome.code.to_dict(),
        "settings": asdict(settings),
        "seconds": sum(outcome.seconds.values()),
        "seconds_by_stage": outcome.seconds,
        "provenance": provenance,
        "version": __version__,
    }
