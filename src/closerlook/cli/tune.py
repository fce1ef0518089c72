"""`closerlook tune`: an encoder fine-tuned on a task, its vectors kept along the way."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from closerlook.tuning import TuningResult

EXAMPLE = "Example: closerlook tune --encoder ./bert-mini --task pos --data ./data --snapshots 8 --out tuned/pos"

TRAINING = "Training"
KEEPING = "What is kept"


def tune(
    encoder: EncoderName = "bert-tiny",
    task: Annotated[
        str,
        Option(
            "--task",
            "-t",
            help="Name (see `closerlook tasks`), file, folder, or hf:DATASET; columns: FILE?text=A&label=B.",
        ),
    ] = "toy-pos",
    out: Annotated[
        Path | None, Option(help="Folder for tuned.json and, with --save-weights, the weights. (required)")
    ] = None,
    seed: Annotated[
        int, Option(help="Of the head, the order of the texts, and dropout.", rich_help_panel=TRAINING)
    ] = 0,
    epochs: Annotated[
        float | None, Option(help="Passes over the texts. (default: by the encoder's size)", rich_help_panel=TRAINING)
    ] = None,
    learning_rate: Annotated[
        float | None, Option(help="At its highest. (default: by the encoder's size)", rich_help_panel=TRAINING)
    ] = None,
    batch_size: Annotated[int | None, Option(help="Texts in a step. (default: 32)", rich_help_panel=TRAINING)] = None,
    warmup: Annotated[
        float, Option(help="Share of the steps in which the rate rises.", rich_help_panel=TRAINING)
    ] = 0.1,
    weight_decay: Annotated[float, Option(help="Of AdamW.", rich_help_panel=TRAINING)] = 0.01,
    early_stopping: Annotated[
        int | None,
        Option(
            help="Epochs to wait for a lower loss on the dev split, else on a tenth of train held out.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    lora: Annotated[
        int | None, Option(help="Train adapters of this rank only (needs PEFT).", rich_help_panel=TRAINING)
    ] = None,
    trainer: Annotated[
        list[str] | None,
        Option(
            help="NAME=VALUE of transformers' TrainingArguments, such as bf16=true; may be repeated.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    snapshots: Annotated[
        str,
        Option(
            help="log (0, 1, 2, 4 …), epoch, every:K, how many, or steps such as 0,10,100; start and end always.",
            rich_help_panel=KEEPING,
        ),
    ] = "log",
    probe: Annotated[
        list[str] | None,
        Option(help="Task whose vectors are kept; may be repeated. (default: the tuned one)", rich_help_panel=KEEPING),
    ] = None,
    splits: Annotated[
        list[str] | None,
        Option("--splits", "--split", help="all, or names such as train,test. (default: all)", rich_help_panel=KEEPING),
    ] = None,
    layers: Annotated[
        str, Option(help="all, last, or numbers such as 0,2-4; 0 is the embedding output.", rich_help_panel=KEEPING)
    ] = "all",
    between: Annotated[
        str | None,
        Option(help="Layers at snapshots in between. (default: those of --layers)", rich_help_panel=KEEPING),
    ] = None,
    pool: Annotated[
        str,
        Option(
            help="mean, first or last subword; cls or mean for sentences. auto: mean, cls for sentences.",
            rich_help_panel=KEEPING,
        ),
    ] = "auto",
    save_weights: Annotated[
        bool, Option("--save-weights", help="Keep each snapshot's weights, in OUT/step-N.", rich_help_panel=KEEPING)
    ] = False,
    data: Data = None,
    store: StoreFolder = None,
    device: Annotated[
        str, Option(help="auto (CUDA, else MPS, else CPU), cuda, mps, cpu.", rich_help_panel=HOW)
    ] = "auto",
    window: Window = None,
    encoder_seed: Annotated[int, Option(help="Of the weights of random:ID.", rich_help_panel=HOW)] = 0,
    fast: Annotated[
        bool, Option("--fast", help="On a GPU, do without the same weights every time.", rich_help_panel=HOW)
    ] = False,
    allow_pickle: AllowPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Fine-tune an encoder with a linear head over exactly the vectors that are probed; keep the vectors on the way."""
    from closerlook.cli.console import note, print_json, progress
    from closerlook.tuning import tune as run

    if out is None:
        raise InputError("no folder given; pass --out DIR")
    _show_own_notes()
    with progress("fine-tuning steps") as show:
        tuned = run(
            encoder,
            task,
            out=out,
            seed=seed,
            epochs=epochs,
            learning_rate=learning_rate,
            batch_size=batch_size,
            warmup=warmup,
            weight_decay=weight_decay,
            pool=pool,
            snapshots=snapshots,
            probe=probe or None,
            splits=split_names(splits, "all"),
            layers=layers,
            between=between,
            data=data,
            store=store,
            save_weights=save_weights,
            early_stopping=early_stopping,
            lora=lora,
            device=device,
            window=window,
            encoder_seed=encoder_seed,
            deterministic=not fast,
            allow_pickle=allow_pickle,
            trust_remote_code=trust_remote_code,
            trainer_arguments=dict(map(_argument, trainer or [])),
            progress=show,
        )
    if as_json:
        print_json(tuned.to_dict())
        return
    _print(tuned)
    note(f"{tuned.steps} steps, {len(tuned.snapshots)} snapshots in {tuned.seconds:.1f} s; {out / 'tuned.json'}")


def _show_own_notes() -> None:
    """Notes of the fine-tuning, without those of each snapshot's extraction."""
    from closerlook.cli.console import show_notes

    show_notes()
    logging.getLogger("closerlook").setLevel(logging.WARNING)
    logging.getLogger("closerlook.tuning").setLevel(logging.INFO)


def _argument(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value read as JSON where it is JSON (numbers, true, lists), else as it stands."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"--trainer {text!r} arrived; expected NAME=VALUE, such as bf16=true")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _print(tuned: TuningResult) -> None:
    from closerlook.cli.console import print_table

    splits = list(tuned.snapshots[0].accuracy)
    measured = [f"{name} {split}" for split in splits for name in ("loss", "accuracy")]
    saved = any(snapshot.weights for snapshot in tuned.snapshots)
    rows = [
        [
            snapshot.step,
            f"{snapshot.epoch:.2f}",
            *(f"{values[split]:.4f}" for split in splits for values in (snapshot.loss, snapshot.accuracy)),
            snapshot.fingerprint[:12],
        ]
        + ([snapshot.weights] if saved else [])
        for snapshot in tuned.snapshots
    ]
    columns = ["step", "epoch", *measured, "fingerprint"] + ["weights"] * saved
    title = f"{tuned.encoder} tuned on {tuned.task}, seed {tuned.seed}"
    print_table(title, columns, rows, numbers=("step", "epoch", *measured))
