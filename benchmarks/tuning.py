"""What the looks of GeometryCallback add to a training, and what snapshots add to `tune`.

    python benchmarks/tuning.py [--encoder NAME] [--task NAME --data DIR] [--every 50] [--epochs 4] [--threads 1]

A plain Trainer runs with the callback, whose own time is set against that of the steps; then `closerlook.tune`, with
snapshots of the start and the end only, and on the `log` schedule.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from typing import Any

import torch
from transformers import PrinterCallback, Trainer, TrainingArguments
from transformers.utils import logging

import closerlook
from closerlook.encoders.encoder import Encoder
from closerlook.representations.extract import choose_pool
from closerlook.tasks.task import Task
from closerlook.tuning import GeometryCallback, tune
from closerlook.tuning.examples import Examples
from closerlook.tuning.labeller import Labeller


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="bert-tiny")
    parser.add_argument("--task", default="toy-pos")
    parser.add_argument("--data")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--epochs", type=float, default=4)
    parser.add_argument("--max-examples", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    logging.set_verbosity_error()
    task = closerlook.load_task(given.task, given.data)
    print(f"{given.encoder} on {given.device}, {given.threads} threads; {task.name}")
    looks(given, task)
    snapshots(given, task)


def looks(given: Any, task: Task) -> None:
    """The callback, every so many steps, on all layers and on the last."""
    for layers in ("last", "all"):
        callback = GeometryCallback(
            task, every=given.every, layers=layers, max_examples=given.max_examples, threads=given.threads
        )
        seconds, steps = training(given, task, callback)
        own = seconds - callback.seconds
        each = callback.seconds / (2 + (steps - 1) // given.every)
        print(f"layers {layers}: {steps} steps, {1000 * own / steps:.1f} ms each; a look takes {each:.2f} s,", end=" ")
        share = each / (given.every * own / steps)
        print(
            f"which adds {100 * share:.0f}% when taken every {given.every} steps, {share * given.every:.0f} steps' time"
        )


def training(given: Any, task: Task, callback: GeometryCallback) -> tuple[float, int]:
    encoder = Encoder.load(given.encoder, device=given.device)
    pool = choose_pool("auto", task.unit, has_cls=encoder.info.has_cls)
    examples = Examples(encoder, task.unit, task.split("train"), pool)
    callback.tokenizer = encoder.tokenizer
    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            output_dir=scratch,
            num_train_epochs=given.epochs,
            per_device_train_batch_size=32,
            learning_rate=3e-4,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
            dataloader_pin_memory=False,
            use_cpu=given.device == "cpu",
        )
        model = Labeller(encoder, task)
        trainer = Trainer(model=model, args=arguments, train_dataset=examples, data_collator=examples.collate)
        trainer.remove_callback(PrinterCallback)
        callback.attach(trainer)
        start = time.perf_counter()
        trainer.train()
        return time.perf_counter() - start, trainer.state.global_step


def snapshots(given: Any, task: Task) -> None:
    """`tune` with two snapshots, and with as many as `log` gives."""
    for schedule in (2, "log"):
        with tempfile.TemporaryDirectory() as store:
            run = tune(given.encoder, task, epochs=given.epochs, snapshots=schedule, store=store, device=given.device)
            size = sum(os.path.getsize(os.path.join(at, file)) for at, _, files in os.walk(store) for file in files)
        print(f"tune, {len(run.snapshots)} snapshots: {run.seconds:.1f} s, {size / 1e6:.0f} MB in the store")


if __name__ == "__main__":
    main()
