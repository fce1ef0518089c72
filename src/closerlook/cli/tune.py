"""`closerlook tune`: fine-tune an encoder on a task, and store its vectors at snapshots during the training."""

from __future__ import annotations

import json
import logging
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
    Resume,
    StoreFolder,
    TrustRemoteCode,
    Window,
    prompt_template,
    split_names,
)
from closerlook.errors import InputError

if TYPE_CHECKING:
    from closerlook.tuning import TuningResult

EXAMPLE = "Example: closerlook tune --encoder ./bert-mini --task pos --data ./data --snapshots 8 --out tuned/pos"

TRAINING = "Training"
STORING = "What is stored"


def tune(
    encoder: EncoderName = "bert-tiny",
    task: Annotated[
        str,
        Option(
            "--task",
            "-t",
            help="Task: name of a predefined task (see `closerlook tasks`), file, folder, or hf:DATASET. To name the "
            "columns of a file: FILE?text=COLUMN&label=COLUMN.",
        ),
    ] = "toy-pos",
    out: Annotated[
        Path | None, Option(help="Folder for tuned.json and, with --save-weights, the weights. (required)")
    ] = None,
    seed: Annotated[
        int, Option(help="Seed for the head, the order of the texts, and dropout.", rich_help_panel=TRAINING)
    ] = 0,
    epochs: Annotated[
        float | None,
        Option(
            help="Number of passes over the training texts. (default: depends on the encoder's size)",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        Option(help="Peak learning rate. (default: depends on the encoder's size)", rich_help_panel=TRAINING),
    ] = None,
    batch_size: Annotated[
        int | None, Option(help="Number of texts in a batch. (default: 32)", rich_help_panel=TRAINING)
    ] = None,
    warmup: Annotated[
        float, Option(help="Warmup: share of the steps in which the learning rate rises.", rich_help_panel=TRAINING)
    ] = 0.1,
    weight_decay: Annotated[float, Option(help="Weight decay of AdamW.", rich_help_panel=TRAINING)] = 0.01,
    early_stopping: Annotated[
        int | None,
        Option(
            help="Stop after this many epochs without a lower loss on dev, or on a tenth of train if there is no dev.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    lora: Annotated[
        int | None, Option(help="Train only low-rank adapters, of this rank (needs PEFT).", rich_help_panel=TRAINING)
    ] = None,
    trained: Annotated[
        str,
        Option(
            help="Weights of the encoder that are trained: all, head (none of them), biases (BitFit), or the last "
            "layers, as 'last 2'. The linear head is always trained.",
            rich_help_panel=TRAINING,
        ),
    ] = "all",
    trainer: Annotated[
        list[str] | None,
        Option(
            help="NAME=VALUE for transformers' TrainingArguments, such as bf16=true; may be repeated.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    snapshots: Annotated[
        str,
        Option(
            help="When to take a snapshot: log (steps 0, 1, 2, 4 …), epoch, every:K (every K steps), a number of "
            "snapshots, or steps such as 0,10,100.",
            rich_help_panel=STORING,
        ),
    ] = "log",
    probe: Annotated[
        list[str] | None,
        Option(
            help="Task whose vectors are extracted at each snapshot; may be repeated. (default: the task of --task)",
            rich_help_panel=STORING,
        ),
    ] = None,
    splits: Annotated[
        list[str] | None,
        Option(
            "--splits",
            "--split",
            help="Splits: all, or names such as train,test. (default: all)",
            rich_help_panel=STORING,
        ),
    ] = None,
    layers: Annotated[
        str,
        Option(
            help="Layers to store at the first and last snapshot: all, last, or numbers such as 0,2-4; layer 0 is the "
            "embedding output.",
            rich_help_panel=STORING,
        ),
    ] = "all",
    snapshot_layers: Annotated[
        str | None,
        Option(
            help="Layers to store at the snapshots between the first and the last one. (default: those of --layers)",
            rich_help_panel=STORING,
        ),
    ] = None,
    pool: Pool = "auto",
    template: Prompt = None,
    dtype: Annotated[
        str,
        Option(help="Precision of the encoder's weights: float32, or bfloat16 with --lora.", rich_help_panel=TRAINING),
    ] = "float32",
    save_weights: Annotated[
        bool,
        Option("--save-weights", help="Store the weights of each snapshot in OUT/step-N.", rich_help_panel=STORING),
    ] = False,
    data: Data = None,
    store: StoreFolder = None,
    device: Annotated[
        str, Option(help="Device: auto (CUDA, else MPS, else CPU), cuda, mps, cpu.", rich_help_panel=HOW)
    ] = "auto",
    window: Window = None,
    encoder_seed: Annotated[int, Option(help="Seed for the weights of random:ID.", rich_help_panel=HOW)] = 0,
    fast: Annotated[
        bool,
        Option(
            "--fast",
            help="Train faster on a GPU; the weights may then differ between runs with the same seed.",
            rich_help_panel=HOW,
        ),
    ] = False,
    resume: Resume = True,
    allow_pickle: AllowPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Fine-tune an encoder and store its vectors at several steps of the training (snapshots).

    A linear head is trained with the encoder. It reads the vectors of the last layer, pooled as they are stored. To
    continue an interrupted run, run the same command again.
    """
    from closerlook.cli.console import note, print_json, progress
    from closerlook.tuning import TuningSettings
    from closerlook.tuning import tune as run

    if out is None:
        raise InputError("no folder given; pass --out DIR")
    settings = TuningSettings(
        seed=seed,
        epochs=epochs,
        learning_rate=learning_rate,
        batch_size=batch_size,
        warmup=warmup,
        weight_decay=weight_decay,
        pool=pool,
        template=prompt_template(template),
        dtype=dtype,
        snapshots=snapshots,
        probe=probe or None,
        splits=split_names(splits, "all"),
        layers=layers,
        snapshot_layers=snapshot_layers,
        window=window,
        save_weights=save_weights,
        early_stopping=early_stopping,
        lora=lora,
        trained=trained,
        deterministic=not fast,
        trainer_arguments=dict(map(_trainer_argument, trainer or [])),
    )
    _show_tuning_messages()
    with progress("fine-tuning steps") as show:
        tuned = run(
            encoder,
            task,
            settings,
            out=out,
            data=data,
            store=store,
            device=device,
            encoder_seed=encoder_seed,
            allow_pickle=allow_pickle,
            trust_remote_code=trust_remote_code,
            resume=resume,
            progress=show,
        )
    if as_json:
        print_json(tuned.to_dict())
        return
    _print_snapshots(tuned)
    note(f"{tuned.steps} steps, {len(tuned.snapshots)} snapshots in {tuned.seconds:.1f} s; {out / 'tuned.json'}")


def _show_tuning_messages() -> None:
    """Show the log messages of the fine-tuning, but not the log messages of the extraction at each snapshot."""
    from closerlook.cli.console import show_notes

    show_notes()
    logging.getLogger("closerlook").setLevel(logging.WARNING)
    logging.getLogger("closerlook.tuning").setLevel(logging.INFO)


def _trainer_argument(text: str) -> tuple[str, object]:
    """Name and value of NAME=VALUE; the value is read as JSON (numbers, true, lists) if it is JSON, else as text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"invalid --trainer {text!r}; expected NAME=VALUE, such as bf16=true")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _print_snapshots(tuned: TuningResult) -> None:
    from closerlook.cli.console import print_table

    splits = list(tuned.snapshots[0].accuracy)
    measured = [f"{name} {split}" for split in splits for name in ("loss", "accuracy")]
    saved = any(snapshot.weights for snapshot in tuned.snapshots)
    has_nc3 = any(snapshot.nc3 is not None for snapshot in tuned.snapshots)
    rows = [
        [
            snapshot.step,
            f"{snapshot.epoch:.2f}",
            *(f"{values[split]:.4f}" for split in splits for values in (snapshot.loss, snapshot.accuracy)),
            *(["–" if snapshot.nc3 is None else f"{snapshot.nc3:.4f}"] if has_nc3 else []),
            snapshot.fingerprint[:12],
        ]
        + ([snapshot.weights] if saved else [])
        for snapshot in tuned.snapshots
    ]
    measured += ["NC3 train"] * has_nc3
    columns = ["step", "epoch", *measured, "fingerprint"] + ["weights"] * saved
    title = f"{tuned.encoder} tuned on {tuned.task}, seed {tuned.seed}"
    print_table(title, columns, rows, numbers=("step", "epoch", *measured))
