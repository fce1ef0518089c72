"""`closerlook classify`: the paper's classifier probes on any vectors, all networks of the grid at once."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from closerlook.cli.measure import TestPoints, Threads, TrainPoints, load_points, stage, unseen_labels
from closerlook.errors import InputError
from closerlook.version import __version__

if TYPE_CHECKING:
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
        Option(help="Widths of hidden layers, such as '32,64;128;linear'; grid is the paper's 16 pairs of 32 to 256."),
    ] = "grid",
    seeds: Annotated[int, Option(min=1, help="Networks of each of the sizes; their seeds count from 0.")] = 5,
    control: Annotated[
        bool, Option("--control", help="Train on random labels of word types, too: selectivity. Needs the words.")
    ] = False,
    description_length: Annotated[
        bool, Option("--description-length", help="Measure how many bits the training labels take: the online code.")
    ] = False,
    learning_rate: Annotated[float, Option(help="Of AdamW.", rich_help_panel=TRAINING)] = 4e-3,
    batch_size: Annotated[int, Option(min=1, help="Rows in a step.", rich_help_panel=TRAINING)] = 128,
    max_rounds: Annotated[
        int, Option(min=0, help="Rounds at most, of a pass over train or 30 steps.", rich_help_panel=TRAINING)
    ] = 12,
    patience: Annotated[
        int,
        Option(min=1, help="Rounds without a gain on held-out rows before a network stops.", rich_help_panel=TRAINING),
    ] = 3,
    weight_decay: Annotated[float, Option(help="Of AdamW.", rich_help_panel=TRAINING)] = 0.1,
    held_out: Annotated[
        float, Option(help="Share of train on which networks are judged and sizes chosen.", rich_help_panel=TRAINING)
    ] = 0.1,
    device: Annotated[str, Option(help="auto, cpu, cuda, cuda:N or mps.")] = "auto",
    threads: Threads = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Train the paper's grid of classifier probes on labelled vectors, and see what they get right on others."""
    from closerlook.cli.console import note, print_json
    from closerlook.probes import ProbeTraining

    training = ProbeTraining(learning_rate, batch_size, max_rounds, patience, weight_decay, held_out)
    settings = Settings(parse_sizes(sizes), seeds, training, device, threads)
    points, tested = _read(file, test, control=control)
    findings = _find(points, tested, settings, control=control, description_length=description_length)
    if as_json:
        print_json(_as_dict(findings))
    else:
        _print(findings)
    note(f"done in {sum(findings.seconds.values()):.1f} s")


@dataclass(frozen=True)
class Settings:
    """What is trained, how, and on what; refused at once where it cannot be done."""

    sizes: tuple[Sizes, ...]
    seeds: int
    training: ProbeTraining
    device: str
    threads: int | None

    def __post_init__(self) -> None:
        from closerlook.encoders.loading import choose_device

        choose_device(self.device)

    @property
    def options(self) -> dict[str, Any]:
        """How every call is made."""
        return {"seeds": self.seeds, "device": self.device, "threads": self.threads}


@dataclass(frozen=True, eq=False)
class Findings:
    """All that was found, before anything is shown."""

    points: Points
    tested: Points
    unseen: dict[str, int]
    settings: Settings
    result: ProbeResult
    selectivity: Selectivity | None
    code: CodeLength | None
    seconds: dict[str, float] = field(default_factory=dict)


def parse_sizes(text: str) -> tuple[Sizes, ...]:
    """The sizes that a user has written.

    >>> parse_sizes("32,64; 128; linear")
    ((32, 64), (128,), ())
    """
    from closerlook.probes.grid import GRID, check_sizes

    found: list[Sizes] = []
    try:
        for part in (part.strip() for part in text.split(";")):
            found += GRID if part == "grid" else [() if part == "linear" else tuple(map(int, part.split(",")))]
    except ValueError:
        raise InputError(f"sizes {text!r} arrived; expected grid, or such as '32,64;128;linear'") from None
    return check_sizes(found)


def sizes_text(sizes: Sizes) -> str:
    """Sizes for people.

    >>> sizes_text((32, 64)), sizes_text(())
    ('32 × 64', 'linear')
    """
    return " × ".join(map(str, sizes)) or "linear"


# ---- the work ----


def _read(file: Any, test: Any, *, control: bool) -> tuple[Points, Points]:
    points, tested = load_points(file, test)
    if tested is None:
        raise InputError(f"{file} has no points to predict; add --test FILE, or X_test and y_test to it")
    for name, given in ((file, points), (test or f"X_test of {file}", tested)):
        if control and given.words is None:
            raise InputError(
                f"{name} does not say which word each row is; --control needs an array of strings `words` (and, for "
                "X_test, `words_test`), as closerlook extract writes for all but sentence tasks"
            )
    return points, tested


def _find(points: Points, tested: Points, settings: Settings, *, control: bool, description_length: bool) -> Findings:
    from closerlook.probes import probe_grid

    train, test = (points.X, points.y), (tested.X, tested.y)
    (n, d), labels = points.X.shape, len(points.labels)
    seconds: dict[str, float] = {}
    unseen = unseen_labels(points, tested)
    what = f"of {len(settings.sizes)} sizes × {settings.seeds} seeds on {n:,} points × {d} of {labels} labels"
    with stage("training", f"{what}: {points.title}", seconds) as show:
        result = probe_grid(
            train, test, sizes=settings.sizes, training=settings.training, progress=show, **settings.options
        )
    selectivity = _selectivity(points, tested, result, settings, seconds) if control else None
    code = _code(points, settings, seconds) if description_length else None
    return Findings(points, tested, unseen, settings, result, selectivity, code, seconds)


def _selectivity(
    points: Points, tested: Points, result: ProbeResult, settings: Settings, seconds: dict[str, float]
) -> Selectivity:
    from closerlook.probes import measure_selectivity

    words = points.words or (), tested.words or ()
    what = f"tasks: random labels of {len({*words[0], *words[1]}):,} word types, {settings.seeds} times"
    with stage("control", what, seconds) as show:
        return measure_selectivity(
            (points.X, points.y), (tested.X, tested.y), words, result=result, threads=settings.threads, progress=show
        )


def _code(points: Points, settings: Settings, seconds: dict[str, float]) -> CodeLength:
    from dataclasses import replace

    from closerlook.probes import online_code

    training = replace(settings.training, criterion="loss")
    with stage("code", f"of the labels of {len(points.X):,} points, block by block", seconds) as show:
        return online_code((points.X, points.y), training=training, progress=show, **settings.options)


# ---- what is shown ----


def _print(findings: Findings) -> None:
    from closerlook.cli.console import print_table

    result = findings.result
    print_table(findings.points.title, ["", ""], _summary(findings))
    columns = ["hidden layers", "test accuracy", "held-out accuracy", "rounds", ""]
    rows = [
        [
            sizes_text(one["sizes"]),
            _with_deviation(one["accuracy"], one["sd"]),
            f"{one['held_out']:.4f}",
            f"{one['rounds']:.1f}",
            "chosen" if one["chosen"] else "",
        ]
        for one in result.table()
    ]
    print_table(f"Sizes, mean over {len(result.seeds)} seeds", columns, rows, numbers=columns[1:4])
    columns = ["label", "train points", "test points", "accuracy"]
    rows = [
        [
            one["label"],
            f"{one['train']:,}",
            f"{one['test']:,}",
            "" if one["accuracy"] is None else f"{one['accuracy']:.4f}",
        ]
        for one in _labels(findings)
    ]
    print_table(f"Labels, by networks of {sizes_text(result.chosen_sizes)}", columns, rows, numbers=columns[1:])
    confused = _confusions(result)
    if confused:
        columns = ["label", "taken for", "test points", "share of the label"]
        rows = [[one["label"], one["taken_for"], f"{one['points']:.1f}", f"{one['share']:.4f}"] for one in confused]
        print_table("The largest confusions, mean over seeds", columns, rows, numbers=columns[2:])


def _summary(findings: Findings) -> list[tuple[str, str]]:
    result, training = findings.result, findings.settings.training
    rows = [
        ("train", f"{result.n_train:,} × {result.d}, {len(result.labels)} labels"),
        ("test", f"{result.n_test:,}: {findings.tested.title}"),
        ("chosen", f"{sizes_text(result.chosen_sizes)}, on a part of train held out"),
        ("test accuracy", f"{_with_deviation(result.mean, result.deviation)} over {len(result.seeds)} seeds"),
        ("macro-F1", _with_deviation(*(result.to_dict()[key] for key in ("macro_f1", "macro_f1_sd")))),
        ("majority", f"{result.majority:.4f}, by always saying train's commonest label"),
    ]
    if findings.selectivity is not None:
        told = findings.selectivity.to_dict()
        parts = f"task {told['task_accuracy']:.4f}, control {told['control_accuracy']:.4f}"
        known = f"{told['known_types']:.1%} of test points have a word that train has"
        rows.append(("selectivity", f"{_with_deviation(told['selectivity'], told['sd'])}: {parts}; {known}"))
    if findings.code is not None:
        told = findings.code.to_dict()
        bits = f"{told['bits']:,.0f} ± {told['bits_sd']:,.0f} of {told['uniform_bits']:,.0f} bits"
        compression = _with_deviation(told["compression"], told["compression_sd"], digits=2)
        rows.append(("description length", f"{bits}: compression {compression}, {sizes_text(findings.code.sizes)}"))
    listed = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in asdict(training).items())
    rows.append(("settings", f"{listed}; inputs standardised on train"))
    rows.append(("device", result.device))
    rows.append(("seconds", ", ".join(f"{name} {value:.2f}" for name, value in findings.seconds.items())))
    return rows


def _with_deviation(mean: float, deviation: float, digits: int = 4) -> str:
    return f"{mean:.{digits}f}" + ("" if math.isnan(deviation) else f" ± {deviation:.{digits}f}")


def _labels(findings: Findings) -> list[dict[str, Any]]:
    """What there is to say of each label, in train or in test."""
    result = findings.result
    return [
        {
            "label": label,
            "train": int((findings.points.y == label).sum()),
            "test": int((findings.tested.y == label).sum()),
            "accuracy": None if math.isnan(accuracy) else accuracy,
        }
        for label, accuracy in zip(result.test_labels, result.by_label.tolist(), strict=True)
    ]


def _confusions(result: ProbeResult) -> list[dict[str, Any]]:
    """Which labels are most often taken for which others, by test points, mean over seeds."""
    wrong = result.confusion.copy()
    rows = wrong.sum(axis=1)
    wrong.ravel()[:: len(wrong) + 1] = 0
    order = (-wrong.ravel()).argsort(kind="stable")[:SHOWN_CONFUSIONS]
    pairs = [divmod(int(place), len(wrong)) for place in order]
    return [
        {
            "label": result.test_labels[true],
            "taken_for": result.test_labels[said],
            "points": float(wrong[true, said] / len(result.seeds)),
            "share": float(wrong[true, said] / rows[true]),
        }
        for true, said in pairs
        if wrong[true, said]
    ]


def _as_dict(findings: Findings) -> dict[str, Any]:
    points, tested, settings = findings.points, findings.tested, findings.settings
    provenance = None if points.provenance is None else points.provenance.to_dict()
    return findings.result.to_dict() | {
        "title": points.title,
        "test_title": tested.title,
        "unseen": findings.unseen,
        "by_label": _labels(findings),
        "confusions": _confusions(findings.result),
        "control": None if findings.selectivity is None else findings.selectivity.to_dict(),
        "description_length": None if findings.code is None else findings.code.to_dict(),
        "settings": asdict(settings),
        "seconds": sum(findings.seconds.values()),
        "seconds_by_stage": findings.seconds,
        "provenance": provenance,
        "version": __version__,
    }
