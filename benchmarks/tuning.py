"""How much time GeometryCallback adds to a training, and snapshots to `tune`.

    python benchmarks/tuning.py [--encoder NAME] [--task NAME --data DIR] [--every 50] [--epochs 4] [--threads 1]

First a plain Trainer runs with the callback, whose time is compared with that of the steps. Then `closerlook.tune` runs
with the first and the last snapshot only, and with the `log` schedule.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time

import torch
from transformers import PrinterCallback, Trainer, TrainingArguments
from transformers.utils import logging

import closerlook
from closerlook.encoders.encoder import Encoder
from closerlook.encoders.pooling import choose_pool
from closerlook.tasks.task import Task
from closerlook.tuning import GeometryCallback, tune
from closerlook.tuning.examples import Examples
from closerlook.tuning.labeller import Labeller


class Options(argparse.Namespace):
    encoder: str
    task: str
    data: str | None
    device: str
    every: int
    epochs: float
    max_points: int
    threads: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="bert-tiny")
    parser.add_argument("--task", default="toy-pos")
    parser.add_argument("--data")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--epochs", type=float, default=4)
    parser.add_argument("--max-points", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(namespace=Options())
    torch.set_num_threads(options.threads)
    logging.set_verbosity_error()
    task = closerlook.load_task(options.task, options.data)
    print(f"{options.encoder} on {options.device}, {options.threads} threads; {task.name}")
    measure_callback(options, task)
    measure_snapshots(options, task)


def measure_callback(options: Options, task: Task) -> None:
    """Time the callback on the last layer and on all layers."""
    for layers in ("last", "all"):
        callback = GeometryCallback(
            task,
            every=options.every,
            layers=layers,
            max_points=options.max_points,
            threads=options.threads,
            max_share=None,
        )
        seconds, steps = run_training(options, task, callback)
        training = seconds - callback.seconds
        each = callback.seconds / (2 + (steps - 1) // options.every)
        print(
            f"layers {layers}: {steps} steps, {1000 * training / steps:.1f} ms each; a measurement takes {each:.2f} s,",
            end=" ",
        )
        share = each / (options.every * training / steps)
        in_steps = share * options.every
        print(f"which adds {100 * share:.0f}% if done every {options.every} steps, the time of {in_steps:.0f} steps")


def run_training(options: Options, task: Task, callback: GeometryCallback) -> tuple[float, int]:
    encoder = Encoder.load(options.encoder, device=options.device)
    pool = choose_pool("auto", task.unit, encoder.info)
    examples = Examples(encoder, task.unit, task.split("train"), pool)
    callback.tokenizer = encoder.tokenizer
    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            output_dir=scratch,
            num_train_epochs=options.epochs,
            per_device_train_batch_size=32,
            learning_rate=3e-4,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
            dataloader_pin_memory=False,
            use_cpu=options.device == "cpu",
        )
        model = Labeller(encoder, task)
        trainer = Trainer(model=model, args=arguments, train_dataset=examples, data_collator=examples.collate)
        trainer.remove_callback(PrinterCallback)
        callback.attach(trainer)
        start = time.perf_counter()
        trainer.train()
        return time.perf_counter() - start, trainer.state.global_step


def measure_snapshots(options: Options, task: Task) -> None:
    """Time `tune` with two snapshots, and with those of the `log` schedule."""
    for schedule in (2, "log"):
        with tempfile.TemporaryDirectory() as store:
            run = tune(
                options.encoder, task, epochs=options.epochs, snapshots=schedule, store=store, device=options.device
            )
            size = sum(
                os.path.getsize(os.path.join(folder, file)) for folder, _, files in os.walk(store) for file in files
            )
        print(f"tune, {len(run.snapshots)} snapshots: {run.seconds:.1f} s, {size / 1e6:.0f} MB in the store")


if __name__ == "__main__":
    main()
