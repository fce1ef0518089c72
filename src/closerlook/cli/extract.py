"""`closerlook extract`: vectors of every layer, into the store and, if asked, into files."""

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
    StoreFolder,
    TrustRemoteCode,
    Window,
    split_names,
)
from closerlook.errors import InputError

if TYPE_CHECKING:
    from closerlook.representations.space import Space
    from closerlook.tasks.task import Task

EXAMPLE = "Example: closerlook extract --encoder ./bert-mini --task pos --data ./data --splits all --out vectors"
SUFFIXES = {"npz": ".npz", "safetensors": ".safetensors", "directprobe": ""}

OWN = "Your own task"


def extract(
    encoder: EncoderName = "bert-tiny",
    task: Annotated[
        list[str] | None,
        Option("--task", "-t", help="Name (see `closerlook tasks`), file, folder, or hf:DATASET; may be repeated."),
    ] = None,
    splits: Annotated[
        list[str] | None, Option("--splits", "--split", help="all, or names such as train,test. (default: train)")
    ] = None,
    layers: Annotated[str, Option(help="all, last, or numbers such as 0,2-4; 0 is the embedding output.")] = "all",
    pool: Annotated[
        str, Option(help="mean, first or last subword; cls or mean for sentences. auto: mean, cls for sentences.")
    ] = "auto",
    out: Annotated[Path | None, Option(help="Also write each space to a file in this folder.")] = None,
    out_format: Annotated[str, Option(help=f"Of those files: {', '.join(SUFFIXES)}.")] = "npz",
    data: Data = None,
    store: StoreFolder = None,
    name: Annotated[str | None, Option(help="Name of the task. (default: the file's)", rich_help_panel=OWN)] = None,
    label: Annotated[
        str | None,
        Option(
            help="What the label is: upos, xpos, deprel, feats:KEY, role, function, fine, coarse, or a column.",
            rich_help_panel=OWN,
        ),
    ] = None,
    words: Annotated[str | None, Option(help="Column of the words.", rich_help_panel=OWN)] = None,
    text: Annotated[str | None, Option(help="Column of the text.", rich_help_panel=OWN)] = None,
    unit: Annotated[str | None, Option(help="token or sentence, where a table has both.", rich_help_panel=OWN)] = None,
    input_format: Annotated[str | None, Option(help="Format. (default: by suffix)", rich_help_panel=OWN)] = None,
    split_column: Annotated[str | None, Option(help="Column that names the split.", rich_help_panel=OWN)] = None,
    empty_nodes: Annotated[
        bool, Option("--empty-nodes", help="Keep CoNLL-U's empty nodes as words.", rich_help_panel=OWN)
    ] = False,
    device: Annotated[
        str, Option(help="auto (CUDA, else MPS, else CPU), cuda, cuda:N, mps, cpu.", rich_help_panel=HOW)
    ] = "auto",
    dtype: Annotated[str, Option(help="auto, float32, float16, bfloat16.", rich_help_panel=HOW)] = "auto",
    window: Window = None,
    batch_tokens: Annotated[int | None, Option(min=1, help="Padded tokens in a batch.", rich_help_panel=HOW)] = None,
    seed: Annotated[int, Option(help="Of the weights of random:ID.", rich_help_panel=HOW)] = 0,
    allow_pickle: AllowPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Extract the vectors of every layer for one or more tasks; what is in the store is not computed again."""
    from closerlook.cli.console import note, print_json, print_table, progress, show_notes
    from closerlook.representations.extract import extract as run
    from closerlook.tasks import load_task

    if not task:
        raise InputError("no task given; pass --task NAME (see `closerlook tasks`) or --task FILE")
    if out_format not in SUFFIXES:
        raise InputError(f"out format {out_format!r} is unknown; expected {', '.join(SUFFIXES)}")
    if out is not None and out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is a file; expected a folder, existing or new")
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
    }
    tasks = [load_task(one, data, **reading) for one in dict.fromkeys(task)]
    _refuse_homonyms(tasks)
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
            window=window,
            batch_tokens=batch_tokens,
            seed=seed,
            allow_pickle=allow_pickle,
            trust_remote_code=trust_remote_code,
            progress=show,
        )
    files = [_file(space, out, out_format) for space in spaces]
    for space, file in zip(spaces, files, strict=True):
        if file is not None and file.is_file():
            _refuse_other(space, file)
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


def _refuse_homonyms(tasks: list[Task]) -> None:
    """Tasks whose files would have the same name are refused before any work."""
    names = [_plain(task.name) for task in tasks]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two tasks are called {twice}; extract them one at a time, with --name")


def _plain(name: object) -> str:
    """A name as part of a file's name."""
    return re.sub(r"[^\w.+-]+", "_", str(name))


def _file(space: Space, out: Path | None, form: str) -> Path | None:
    """Where a space goes: a file named by what it is; a DirectProbe folder holds all splits and layers of a task."""
    if out is None:
        return None
    made = space.provenance
    parts = (
        [made.encoder, made.task]
        if form == "directprobe"
        else [made.encoder, made.task, made.split, f"layer{made.layer}"]
    )
    return out / ("-".join(map(_plain, parts)) + SUFFIXES[form])


def _refuse_other(space: Space, file: Path) -> None:
    """Refuse to write over vectors of other weights, another pooling or another content of the task."""
    from closerlook.representations.space import Space

    there, made = (one.provenance.to_dict() for one in (Space.load(file), space))
    differs = [name for name in made if name != "versions" and made[name] != there[name]]
    if differs:
        raise InputError(
            f"{file} holds vectors that differ in {', '.join(differs)}; choose another folder with --out, or remove it"
        )


def _row(space: Space) -> list[object]:
    made = space.provenance
    labels = len(set(space.y.tolist()))
    return [made.encoder, made.task, made.split, made.layer, space.n, space.d, labels, made.pool, made.dtype]


def _as_dict(space: Space, file: Path | None) -> dict[str, object]:
    described: dict[str, object] = {"n": space.n, "d": space.d, "labels": list(space.labels)}
    return described | space.provenance.to_dict() | ({"file": str(file)} if file else {})
