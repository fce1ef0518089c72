"""`closerlook extract`: compute the vectors of every layer, and store them in the store and optionally in files."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from closerlook.cli.options import (
    HOW,
    AllowPickle,
    Data,
    EncoderName,
    Pool,
    Prompt,
    StoreFolder,
    TestShare,
    TrustRemoteCode,
    Window,
    prompt_template,
    split_names,
)
from closerlook.errors import InputError

if TYPE_CHECKING:
    from closerlook.representations.space import Space
    from closerlook.tasks.task import Task

EXAMPLE = "Example: closerlook extract --encoder ./bert-mini --task pos --data ./data --splits all --out vectors"
SUFFIXES = {"npz": ".npz", "safetensors": ".safetensors", "directprobe": ""}

OWN = "Reading your own task"


def extract(
    encoder: EncoderName = "bert-tiny",
    task: Annotated[
        list[str] | None,
        Option(
            "--task",
            "-t",
            help="Task: name of a predefined task (see `closerlook tasks`), file, folder, or hf:DATASET; may be "
            "repeated. (required)",
        ),
    ] = None,
    splits: Annotated[
        list[str] | None,
        Option("--splits", "--split", help="Splits: all, or names such as train,test. (default: train)"),
    ] = None,
    layers: Annotated[
        str, Option(help="Layers: all, last, or numbers such as 0,2-4; layer 0 is the embedding output.")
    ] = "all",
    pool: Pool = "auto",
    template: Prompt = None,
    out: Annotated[Path | None, Option(help="Also write each space to a file in this folder.")] = None,
    out_format: Annotated[str, Option(help=f"Format of the files in --out: {', '.join(SUFFIXES)}.")] = "npz",
    data: Data = None,
    store: StoreFolder = None,
    name: Annotated[
        str | None, Option(help="Name of the task. (default: name of the file)", rich_help_panel=OWN)
    ] = None,
    label: Annotated[
        str | None,
        Option(
            help="What is used as the label. CoNLL-U: upos, xpos, deprel, feats:KEY; STREUSLE: role, "
            "function; TREC: fine, coarse; CSV, TSV and JSON lines: the name of a column.",
            rich_help_panel=OWN,
        ),
    ] = None,
    words: Annotated[str | None, Option(help="Name of the column with the words.", rich_help_panel=OWN)] = None,
    text: Annotated[str | None, Option(help="Name of the column with the text.", rich_help_panel=OWN)] = None,
    unit: Annotated[
        str | None,
        Option(
            help="What an example is: token or sentence. Needed only if the columns of a table allow both.",
            rich_help_panel=OWN,
        ),
    ] = None,
    input_format: Annotated[
        str | None, Option(help="Format of the file. (default: decided by its suffix)", rich_help_panel=OWN)
    ] = None,
    split_column: Annotated[
        str | None, Option(help="Name of the column that says to which split an example belongs.", rich_help_panel=OWN)
    ] = None,
    text_b: Annotated[
        str | None, Option(help="Name of the column with the second text of a pair.", rich_help_panel=OWN)
    ] = None,
    bins: Annotated[
        str | None,
        Option(
            help="For labels that are scores: number of bins, boundaries such as 1.5,3, or each (no bins).",
            rich_help_panel=OWN,
        ),
    ] = None,
    has: Annotated[
        str | None,
        Option(help="If texts have several labels: the task is whether a text has this one.", rich_help_panel=OWN),
    ] = None,
    keep: Annotated[
        str | None,
        Option(help="Labels of CSV and TSV that look like missing values but are not: None,NA.", rich_help_panel=OWN),
    ] = None,
    encoding: Annotated[
        str | None, Option(help="Encoding of a CSV, TSV or conll file. (default: detected)", rich_help_panel=OWN)
    ] = None,
    join: Annotated[
        str | None,
        Option(
            help="How words of CoNLL-U are joined: written (as in the text) or spaces. (default: written)",
            rich_help_panel=OWN,
        ),
    ] = None,
    test_share: TestShare = None,
    empty_nodes: Annotated[
        bool, Option("--empty-nodes", help="Treat empty nodes of CoNLL-U as words.", rich_help_panel=OWN)
    ] = False,
    device: Annotated[
        str, Option(help="Device: auto (CUDA, else MPS, else CPU), cuda, cuda:N, mps, cpu.", rich_help_panel=HOW)
    ] = "auto",
    dtype: Annotated[
        str,
        Option(
            help="Precision: auto, float32, float16, bfloat16, or int8 and int4 (weights quantised with bitsandbytes).",
            rich_help_panel=HOW,
        ),
    ] = "auto",
    device_map: Annotated[
        str | None,
        Option(
            help="auto: spread a large encoder over all GPUs, memory and disk; layers on disk are read one by one.",
            rich_help_panel=HOW,
        ),
    ] = None,
    window: Window = None,
    batch_tokens: Annotated[
        int | None,
        Option(
            min=1,
            help="Maximum number of tokens in a batch, padding included; halved when memory runs out.",
            rich_help_panel=HOW,
        ),
    ] = None,
    seed: Annotated[int, Option(help="Seed for the weights of random:ID.", rich_help_panel=HOW)] = 0,
    allow_pickle: AllowPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Extract the vectors of every layer for one or more tasks; cached vectors are not computed again."""
    from closerlook.cli.console import note, print_json, print_table, progress, show_notes
    from closerlook.representations.atomic import check_writable
    from closerlook.representations.extract import extract as run
    from closerlook.tasks import load_task

    if not task:
        raise InputError("no task given; pass --task NAME (see `closerlook tasks`) or --task FILE")
    if out_format not in SUFFIXES:
        raise InputError(f"out format {out_format!r} is unknown; expected {', '.join(SUFFIXES)}")
    if out is not None:
        check_writable(out, "--out")
    show_notes()
    start = time.perf_counter()
    reading = {
        "name": name,
        "label": label,
        "words": words,
        "text": text,
        "unit": unit,
        "format": input_format,
        "split_column": split_column,
        "empty_nodes": empty_nodes,
        "text_b": text_b,
        "bins": bins,
        "has": has,
        "keep": keep,
        "encoding": encoding,
        "join": join,
        "test_share": test_share,
    }
    tasks = [load_task(source, data, **reading) for source in dict.fromkeys(task)]
    _refuse_equal_names(tasks)
    with progress("extracting examples") as show:
        spaces = run(
            encoder,
            tasks,
            splits=split_names(splits, "train"),
            layers=layers,
            pool=pool,
            store=store,
            device=device,
            dtype=dtype,
            device_map=device_map,
            window=window,
            template=prompt_template(template),
            batch_tokens=batch_tokens,
            seed=seed,
            allow_pickle=allow_pickle,
            trust_remote_code=trust_remote_code,
            progress=show,
        )
    files = [_file(space, out, out_format) for space in spaces]
    for space, file in zip(spaces, files, strict=True):
        if file is not None and file.is_file():
            _refuse_overwriting(space, file)
    for space, file in zip(spaces, files, strict=True):
        if file is not None:
            space.save(file)
    seconds = time.perf_counter() - start
    if as_json:
        print_json({"spaces": [_as_dict(*pair) for pair in zip(spaces, files, strict=True)], "seconds": seconds})
        return
    columns = ["encoder", "task", "split", "layer", "n", "d", "labels", "pool", "dtype"] + ["file"] * bool(out)
    rows = [_row(space) + ([file] if file else []) for space, file in zip(spaces, files, strict=True)]
    print_table("", columns, rows, numbers=("layer", "n", "d", "labels"))
    note(f"{len(spaces)} spaces in {seconds:.1f} s")


def _refuse_equal_names(tasks: list[Task]) -> None:
    """Raise InputError if files of two tasks would have the same name."""
    names = [_plain(task.name) for task in tasks]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"two tasks are called {repeated}; extract them one at a time, with --name")


def _plain(name: object) -> str:
    """A name with only those characters that are safe in a file name."""
    return re.sub(r"[^\w.+-]+", "_", str(name))


def _file(space: Space, out: Path | None, form: str) -> Path | None:
    """The file of a space, named by its provenance; a DirectProbe folder has all splits and layers of a task."""
    if out is None:
        return None
    provenance = space.provenance
    parts = (
        [provenance.encoder, provenance.task]
        if form == "directprobe"
        else [provenance.encoder, provenance.task, provenance.split, f"layer{provenance.layer}"]
    )
    return out / ("-".join(map(_plain, parts)) + SUFFIXES[form])


def _refuse_overwriting(space: Space, file: Path) -> None:
    """Raise InputError if the file has vectors of different weights, pooling or task content."""
    from closerlook.representations.space import Space

    old, new = Space.load(file).provenance.to_dict(), space.provenance.to_dict()
    differs = [name for name in new if name != "versions" and new[name] != old[name]]
    if differs:
        raise InputError(
            f"{file} exists, and its vectors differ from the new ones in {', '.join(differs)}; choose another folder "
            "with --out, or remove this file"
        )


def _row(space: Space) -> list[object]:
    provenance = space.provenance
    labels = len(set(space.y.tolist()))
    return [
        provenance.encoder,
        provenance.task,
        provenance.split,
        provenance.layer,
        space.n,
        space.d,
        labels,
        provenance.pool,
        provenance.dtype,
    ]


def _as_dict(space: Space, file: Path | None) -> dict[str, object]:
    content: dict[str, object] = {"n": space.n, "d": space.d, "labels": list(space.labels)}
    return content | space.provenance.to_dict() | ({"file": str(file)} if file else {})
