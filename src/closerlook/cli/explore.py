"""`closerlook explore`: a page on which the points of a space can be seen, searched, selected and followed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from closerlook.cli.measure import LabelFiles, MaxMemory, Threads, XKey, YKey
from closerlook.cli.options import HOW, AllowPickle, Data, Device, Pool, StoreFolder, TrustRemoteCode
from closerlook.errors import InputError

EXAMPLE = "Example: closerlook explore bert-base-uncased out/checkpoint-500 -t toy-pos"


def explore(
    inputs: Annotated[
        list[str],
        Argument(
            help="Files of vectors (one, or one for each snapshot, with the same examples), or the folder of a "
            "finished `closerlook tune`; with --task: encoders, one or versions of one as its training goes on."
        ),
    ],
    task: Annotated[str | None, Option("--task", "-t", help="Task whose examples are shown: a name or a file.")] = None,
    out: Annotated[Path, Option("--out", "-o", help="File for the page.")] = Path("explorer.html"),
    layers: Annotated[str, Option(help="Layers: last, all, or numbers such as 0,6-8.")] = "last",
    points: Annotated[int, Option(min=1, help="Points on the page; larger spaces are sampled by label.")] = 2000,
    pair: Annotated[
        list[str] | None,
        Option("--pair", help="Two labels for a margin view, such as NOUN,VERB; may be repeated. (default: closest)"),
    ] = None,
    umap: Annotated[bool, Option("--umap", help="Also make a UMAP view (needs umap-learn).")] = False,
    max_examples: Annotated[
        int, Option(min=10, help="Examples of each split that are clustered; larger splits are sampled.")
    ] = 3000,
    pool: Pool = "auto",
    seed: Annotated[int, Option(min=0, help="Seed of samples and of UMAP.", rich_help_panel=HOW)] = 0,
    x_key: XKey = None,
    y_key: YKey = None,
    labels: LabelFiles = None,
    max_memory: MaxMemory = None,
    data: Data = None,
    store: StoreFolder = None,
    device: Device = "auto",
    threads: Threads = None,
    allow_pickle: AllowPickle = False,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Write a page on which the points of a space can be seen, searched, selected and followed over a training."""
    from closerlook.cli.console import note, progress
    from closerlook.explorer import explore as prepare
    from closerlook.representations.memory import parse_memory
    from closerlook.representations.tables import Names

    if labels is not None and len(labels) > 1:
        raise InputError(f"{len(labels)} files of labels were given; expected one, for all files of vectors")
    with progress("spaces") as show:
        result = prepare(
            *inputs,
            task=task,
            layers=layers,
            points=points,
            max_examples=max_examples,
            pairs=None if not pair else [_pair(text) for text in pair],
            umap=umap,
            pool=pool,
            seed=seed,
            data=data,
            store=store,
            device=device,
            names=Names(x_key, y_key, labels[0] if labels else None),
            max_memory=None if max_memory is None else parse_memory(max_memory),
            allow_pickle=allow_pickle,
            trust_remote_code=trust_remote_code,
            threads=threads,
            progress=show,
        )
    for text in result.notes:
        note(text)
    written = result.write(out)
    note(f"{result.title}: {', '.join(result.snapshots)}")
    note("settings: " + ", ".join(f"{name} {value}" for name, value in result.settings.items()))
    sys.stdout.write(f"page: {written}\n")


def _pair(text: str) -> tuple[str, str]:
    first, comma, second = text.partition(",")
    if not comma:
        raise InputError(f"pair {text!r} requested; expected two labels with a comma, such as NOUN,VERB")
    return first.strip(), second.strip()
