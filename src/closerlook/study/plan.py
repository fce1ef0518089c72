"""The plan of a study: what to run and measure. It is read from YAML and checked before any work starts."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, model_validator

from closerlook.encoders.source import DTYPES
from closerlook.encoders.template import parse_template
from closerlook.errors import InputError
from closerlook.study.entries import Layers, PlanPart, as_list, as_value_error
from closerlook.study.kinds import REQUESTS
from closerlook.study.kinds.classifier import Classifier
from closerlook.study.kinds.comparison import Compare
from closerlook.study.kinds.explorer import Explorer
from closerlook.study.kinds.geometry import Geometry, Uncertainty
from closerlook.study.kinds.nulls import Nulls
from closerlook.study.kinds.panel import Panel
from closerlook.study.kinds.sensitivity import Sensitivity, read_sensitivity
from closerlook.study.kinds.split_halves import Halves
from closerlook.study.kinds.tune import Tuning
from closerlook.study.where import Seed, Seeds, Where, problems_of
from closerlook.study.yaml_text import MOST_CHARACTERS, parse_yaml
from closerlook.tasks.splitting import TEST_SHARE
from closerlook.tuning.schedule import read_snapshots

MOST_PROBLEMS = 30
"""Problems that an error message lists."""

PRESETS = ("default", "paper", "paper-small", "lora-vs-full")

log = logging.getLogger(__name__)


def _check_measure(value: str) -> str:
    if value not in REQUESTS:
        expected = f"{', '.join(map(repr, REQUESTS[:-1]))} or {REQUESTS[-1]!r}"
        raise ValueError(f"expected {expected} (got {value!r})")
    return value


def _check_template(value: str | None) -> str | None:
    as_value_error(parse_template, value)
    return value


def _check_dtype(value: str) -> str:
    if value not in ("auto", *DTYPES):
        raise ValueError(f"expected auto, {', '.join(DTYPES)} (got {value!r})")
    return value


def _schedule(value: Any) -> Any:
    if isinstance(value, dict) and list(value) == ["every"]:  # what YAML makes of `every: 10`
        value = f"every: {value['every']}"
    return as_value_error(read_snapshots, value)


Names = Annotated[list[str], BeforeValidator(as_list), Field(min_length=1)]
MeasureName = Annotated[str, AfterValidator(_check_measure)]
DEVICE = r"auto|cpu|mps|cuda(:\d+)?"


class Cross(PlanPart):
    """A pair of tasks: encoders that are fine-tuned on the first (tuned) are also measured on the second (probed)."""

    tuned: str
    probed: str


class ExistingRun(PlanPart):
    """A training that was done elsewhere: a base encoder and its checkpoints, see `tuning.existing.read_run`.

    name: in tables and figures; by default that of the folder. base: by default as the checkpoints name it. tuned_on:
    the task of the plan that it was trained on, if that is known. method, seed: by default as the files say.
    """

    name: str | None = Field(None, min_length=1)
    checkpoints: str | Annotated[list[str], Field(min_length=1)]
    base: str | None = None
    tuned_on: str | None = None
    method: str | None = Field(None, min_length=1)
    seed: Seed | None = None


class Plan(PlanPart):
    """Encoders × tasks × seeds, how encoders are fine-tuned, and what is measured.

    encoders: paths or ids, or {name: ..., path: ...}; encoder_names: for these, the name of each path. runs: trainings
    that were done elsewhere, measured like fine-tunings of the study. test_share: the share of the examples in train
    that becomes the test split of a task that has none. template: a text around every text, with {text} at its place.
    dtype: the precision of the encoders. device_map: "auto" spreads pretrained encoders over all devices, memory and
    disk.
    tuning: how encoders are fine-tuned; None: they are not. snapshots: the steps at which fine-tuned encoders are
    measured. layers: the layers measured before and after fine-tuning. snapshot_layers: the layers measured at the
    snapshots in between. cross_layers: those of `layers` that are measured on tasks that an encoder was not fine-tuned
    on; None: all of them. control: whether classifier probes are also trained on control tasks, and description lengths
    are measured. cross: pairs of tasks, the first to fine-tune on and the second to measure; "all": every pair.
    sensitivity: which other settings are tried; None: none are.
    where: other seeds or layers for some fine-tunings; of two entries for the same one, the later counts.
    threads: the number of torch threads for one cell (one unit of work of the study). It is set here and not derived
    from the number of workers, because the number of threads may change the last digits of the vectors.
    """

    name: str = Field("study", min_length=1)
    encoders: Annotated[list[str], BeforeValidator(as_list)] = Field([])
    encoder_names: dict[str, str] = Field({})
    tasks: Names
    runs: Annotated[list[ExistingRun], BeforeValidator(as_list)] = Field([])
    data: str | None = None
    test_share: float = Field(TEST_SHARE, gt=0, lt=1)
    seeds: Seeds = Field([0])
    tuning: Tuning | None = Tuning()
    snapshots: Annotated[str | int | list[int], BeforeValidator(_schedule)] = "log"
    layers: Layers = "all"
    snapshot_layers: Layers = "last"
    splits: Names = Field(["train", "test"])
    pool: str = "auto"
    template: Annotated[str | None, AfterValidator(_check_template)] = None
    measures: Annotated[list[MeasureName], BeforeValidator(as_list)] = Field(list(REQUESTS))
    classifier: Classifier = Classifier()
    control: bool = Field(default=False, strict=True)
    geometry: Geometry = Geometry()
    panel: Panel = Panel()
    nulls: Nulls = Nulls()
    uncertainty: Uncertainty = Uncertainty()
    halves: Halves = Halves()
    sensitivity: Annotated[Sensitivity | None, BeforeValidator(read_sensitivity)] = None
    explorer: Explorer = Explorer()
    cross: Literal["all"] | list[Cross] = Field([])
    cross_layers: Layers | None = None
    compare: Compare = Compare()
    where: list[Where] = Field([])
    device: str = Field("auto", pattern=f"^({DEVICE})$")
    device_map: Literal["auto"] | None = None
    dtype: Annotated[str, AfterValidator(_check_dtype)] = "auto"
    threads: int = Field(1, ge=1)
    save_weights: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = [f"{what} {name!r} is listed twice" for what, names in self._lists() for name in _duplicates(names)]
        if not self.encoders and not self.runs:
            problems.append("encoders is empty; expected one or more (--encoder), or runs (--run)")
        problems += [
            f"run {run.checkpoints} says tuned_on {run.tuned_on!r}, which is not among the tasks"
            for run in self.runs
            if run.tuned_on is not None and run.tuned_on not in self.tasks
        ]
        if "train" not in self.splits:
            problems.append(f"splits {self.splits} lacks train, the split that is clustered and used for fine-tuning")
        if "classifier" in self.measures and len(self.splits) < 2:
            problems.append("the classifier needs a split other than train, such as test, on which it is tested")
        if self.control and "classifier" not in self.measures:
            problems.append("control is about the classifier probes, but measures lacks classifier")
        if "uncertainty" in self.measures and not {"distances", "similarity"} & set(self.measures):
            problems.append("uncertainty gives intervals of distances and similarity, but measures has neither")
        problems += problems_of(self.where, self.encoders, self.tasks)
        if self.tuning is None and self.where:
            problems.append("where is about fine-tunings, but tuning is null")
        if self.geometry.attempts == "both" and "clusters" not in self.measures:
            problems.append("geometry.attempts: both counts clusters, but measures lacks clusters")
        if self.sensitivity is not None and not {"clusters", "distances", "similarity"} & set(self.measures):
            problems.append("sensitivity is about clusters, distances and similarity, but measures has none of them")
        problems += self._problems_of_cross()
        if problems:
            raise ValueError(*dict.fromkeys(problems))
        return self

    def _problems_of_cross(self) -> Iterator[str]:
        if self.tuning is None and self.cross:
            yield "cross needs fine-tuning, but tuning is null"
        if self.cross_layers is not None and not self.cross and not self.runs:
            yield "cross_layers is about other tasks than that of a fine-tuning, but cross names none"
        pairs = self.cross if self.cross != "all" else []
        for pair in pairs:
            yield from (f"cross names task {name!r}, which is not among the tasks" for name in _outside(pair, self))
            if pair.tuned == pair.probed:
                yield f"cross pairs {pair.tuned!r} with itself, which is measured anyway"
        shown = [f"{pair.tuned} → {pair.probed}" for pair in pairs]
        yield from (f"the cross pair {pair} is listed twice" for pair in _duplicates(shown))

    def _lists(self) -> list[tuple[str, list[Any]]]:
        return [
            ("encoder", self.encoders),
            ("the name of an encoder", list(self.encoder_names.values())),
            ("task", self.tasks),
            ("seed", self.seeds),
            ("split", self.splits),
            ("measure", list(self.measures)),
        ]

    @property
    def test_splits(self) -> list[str]:
        """All splits except train."""
        return [split for split in self.splits if split != "train"]

    def probed(self, task: str) -> list[str]:
        """The tasks on which an encoder that is fine-tuned on `task` is measured."""
        if self.cross == "all":
            return [task, *(other for other in self.tasks if other != task)]
        return [task, *(pair.probed for pair in self.cross if pair.tuned == task and pair.probed != task)]

    def seeds_for(self, encoder: str, task: str) -> list[int]:
        """The seeds with which an encoder is fine-tuned on a task."""
        given = [entry.seeds for entry in self.where if entry.seeds is not None and entry.applies(encoder, task)]
        return given[-1] if given else self.seeds

    def snapshot_layers_for(self, encoder: str, task: str) -> Layers:
        """The layers that are measured at the snapshots of the fine-tuning of an encoder on a task."""
        entries = [entry.snapshot_layers for entry in self.where if entry.applies(encoder, task)]
        given = [layers for layers in entries if layers is not None]
        return given[-1] if given else self.snapshot_layers

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values for JSON, with defaults filled in."""
        return self.model_dump(mode="json")


def _duplicates(values: list[Any]) -> list[Any]:
    return sorted({value for value in values if values.count(value) > 1})


def _outside(pair: Cross, plan: Plan) -> list[str]:
    return [name for name in (pair.tuned, pair.probed) if name not in plan.tasks]


def read_plan(source: str | Path, **changes: Any) -> Plan:
    """The plan in a YAML file, or a preset: see `PRESETS`. changes: entries to replace.

    If `tasks` replaces the tasks of a preset, the cross pairs of the preset that name other tasks are dropped, with a
    note in the log. The cross pairs of a YAML file are never dropped: they must name tasks of the plan.

    >>> plan = read_plan("default")
    >>> plan.encoders, len(plan.tasks)
    (['bert-tiny'], 5)
    """
    preset = str(source) in PRESETS and not Path(source).exists()
    text = resources.files(__package__).joinpath("plans", f"{source}.yaml").read_text() if preset else _read(source)
    try:
        values = parse_yaml(text)
    except ValueError as error:
        quoted = "; put names with ? or & in quotes" if "?" in text else ""
        raise InputError(f"plan {source} cannot be read: {error}{quoted}") from None
    if not isinstance(values, dict):
        raise InputError(f"plan {source} contains {type(values).__name__}; expected entries such as encoders and tasks")
    if preset and changes.get("tasks") is not None:
        values["cross"] = _cross_among(values["cross"], as_list(changes["tasks"]), str(source))
    if isinstance(values.get("where"), list):
        values["where"] = _where_among(values["where"], changes, str(source))
    return make_plan(values, str(source), **changes)


def _cross_among(pairs: list[dict[str, str]], tasks: list[str], preset: str) -> list[dict[str, str]]:
    """The cross pairs of a preset whose two tasks are among `tasks`; the log names the other pairs."""
    kept = [pair for pair in pairs if pair["tuned"] in tasks and pair["probed"] in tasks]
    dropped = [f"{pair['tuned']} → {pair['probed']}" for pair in pairs if pair not in kept]
    if dropped:
        log.warning("cross pairs of preset %s dropped, because the tasks were replaced: %s", preset, ", ".join(dropped))
    return kept


def _where_among(entries: list[Any], changes: dict[str, Any], source: str) -> list[Any]:
    """The entries of `where` without those for encoders or tasks that `changes` left out; the log names these."""
    kept = []
    for entry in entries:
        named = {
            name: [item for item in as_list(entry[name]) if item in as_list(changes[name])]
            for name in ("encoders", "tasks")
            if isinstance(entry, dict) and name in entry and changes.get(name) is not None
        }
        if all(named.values()):
            kept.append(entry | named if named else entry)
        else:
            log.warning("an entry of where in %s is dropped, because its encoders or tasks were replaced", source)
    return kept


class PlanError(InputError):
    """All problems of a plan, in one line. rest: a plan of the valid entries, which can be checked further.

    >>> try:
    ...     make_plan({"encoders": "bert-tiny", "tasks": "toy-pos", "pool": 3, "sedes": [0, 1]})
    ... except PlanError as error:
    ...     print(*error.problems, sep=" | ")
    pool: expected a valid string (got 3) | sedes is unknown; did you mean seeds?
    """

    def __init__(self, source: str, problems: Sequence[str], rest: Plan | None = None) -> None:
        many = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
        super().__init__(" ".join(f"{source} has {many}: {'; '.join(problems)}".split()))
        self.source, self.problems, self.rest = source, list(problems), rest


def make_plan(values: dict[str, Any], source: str = "plan", **changes: Any) -> Plan:
    """The plan with the given entries; one PlanError lists all problems. changes: entries to replace.

    >>> plan = make_plan({"encoders": "bert-tiny", "tasks": ["toy-pos", "toy-dep"], "seeds": [0, 1]}, layers="last")
    >>> plan.seeds, plan.layers, plan.snapshots
    ([0, 1], 'last', 'log')
    """
    values = _take_names(values | {key: value for key, value in changes.items() if value is not None})
    try:
        return Plan.model_validate(values)
    except ValidationError as error:
        found = [line for problem in error.errors()[:MOST_PROBLEMS] for line in _problems(problem)]
        more = error.error_count() - MOST_PROBLEMS
        problems = [_cut(line) for line in found] + [f"{more} more problems"] * (more > 0)
        wrong = {problem["loc"][0] for problem in error.errors() if problem["loc"]}
        raise PlanError(source, problems, _rest(values, wrong)) from None


def _take_names(values: dict[str, Any]) -> dict[str, Any]:
    """The entries with each encoder {name: ..., path: ...} replaced by its path; its name is in `encoder_names`."""
    listed = values.get("encoders")
    listed = [listed] if isinstance(listed, dict) else listed
    if not isinstance(listed, list):
        return values
    named = {item["path"]: item["name"] for item in listed if _is_named(item)}
    paths = [item["path"] if _is_named(item) else item for item in listed]
    return values | {"encoders": paths} | ({"encoder_names": named} if named else {})


def _is_named(item: Any) -> bool:
    return isinstance(item, dict) and set(item) == {"name", "path"} and all(isinstance(v, str) for v in item.values())


def _rest(values: dict[str, Any], wrong: set[Any]) -> Plan | None:
    """A plan of the valid entries that name encoders, tasks and layers, so that these can be checked as well."""
    checked = (
        "encoders",
        "runs",
        "tasks",
        "data",
        "test_share",
        "tuning",
        "snapshots",
        "layers",
        "snapshot_layers",
        "cross_layers",
        "splits",
        "pool",
        "template",
        "dtype",
        "device",
    )
    valid = {name: values[name] for name in checked if name in values and name not in wrong}
    for name in {"encoders", "tasks", "splits"} & set(valid):
        valid[name] = list(dict.fromkeys(as_list(valid[name])))
    valid["splits"] = list(dict.fromkeys(["train", *valid.get("splits", [])]))
    try:
        return Plan.model_validate(valid | {"measures": ["clusters"]})
    except ValidationError:
        return None


EXPECTED = {
    ("control",): "true or false",
    ("device",): "auto, cpu, mps, cuda or cuda:N",
    ("encoders",): "a path, a hub id, or {name: mine, path: out/checkpoint-500}",
}
"""For entries whose type says too little: what is expected."""


def _problems(error: Any) -> list[str]:
    """The messages of one pydantic error; several if `Plan._check` found several problems."""
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "value_error":
        messages = [str(message) for message in error["ctx"]["error"].args]
        return [f"{where}: {message}" if where else message for message in messages]
    if error["type"] == "extra_forbidden":
        near = get_close_matches(str(error["loc"][-1]), _entries(error["loc"][:-1]), n=1)
        return [f"{where} is unknown" + (f"; did you mean {near[0]}?" if near else "")]
    if error["type"] == "missing":
        return [f"{where} is missing"]
    if error["type"] == "too_short":
        return [f"{where} is empty; expected one or more{' (--encoder)' if where == 'encoders' else ''}"]
    if error["loc"][:1] in EXPECTED:
        return [f"{where}: expected {EXPECTED[error['loc'][:1]]} (got {error['input']!r})"]
    message = str(error["msg"]).replace("Input should be", "expected")
    return [f"{where}: {message[:1].lower()}{message[1:]} (got {error['input']!r})"]


def _cut(text: str) -> str:
    """The text, shortened to 300 characters."""
    return text if len(text) <= 300 else f"{text[:150]} … {text[-140:]}"


def _entries(where: Sequence[Any]) -> list[str]:
    """The names of the entries of the plan, or of a section of it."""
    part: type[BaseModel] = Plan
    for name in where:
        kinds = get_args(part.model_fields[name].annotation) if name in part.model_fields else ()
        kinds = kinds or ((part.model_fields[name].annotation,) if name in part.model_fields else ())
        parts = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if not parts:
            return []
        part = parts[0]
    return list(part.model_fields)


def _read(path: str | Path) -> str:
    try:
        with Path(path).open(encoding="utf-8") as stream:
            return stream.read(MOST_CHARACTERS + 1)
    except UnicodeDecodeError:
        raise InputError(f"plan {path} is not UTF-8 text; expected YAML") from None
    except OSError as error:
        near = get_close_matches(str(path), PRESETS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InputError(
            f"plan {path} cannot be read: {error.strerror}; {hint}expected a YAML file or one of {', '.join(PRESETS)}"
        ) from None
