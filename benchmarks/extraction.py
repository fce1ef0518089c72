"""Extraction against two peers in the same run, and its memory.

    python benchmarks/extraction.py [--encoder FOLDER] [--task pos --data DIR] [--repeat 5] [--speed-only]

Times are the best of several interleaved rounds: other work on the machine only ever adds.
bare        the same model's forward passes over the same padded batches, nothing kept
sentences   sentence-transformers' `encode(output_value="token_embeddings")` on the same sentences (one layer only)
memory      peak resident memory over what the vectors take, at 2,000 and 16,000 sentences, in a process each
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Transformer

import closerlook
from closerlook.encoders.encoder import Encoder, batches
from closerlook.tasks.task import Task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="bert-tiny")
    parser.add_argument("--task", default="toy-pos")
    parser.add_argument("--data")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--speed-only", action="store_true", help="leave the memory out")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory_of:
        print(json.dumps(memory(given.encoder, given.memory_of)))
        return
    encoder = Encoder.load(given.encoder, device=given.device)
    task = closerlook.load_task(given.task, given.data)
    where = f"{encoder.device}, {torch.get_num_threads()} threads"
    print(f"{encoder.name} on {where}; {task.name}, {len(task.split('train'))} examples")
    speed(encoder, task, given.repeat)
    hit(given.encoder, task)
    if not given.speed_only:
        growth(given.encoder)


def speed(encoder: Encoder, task: Task, repeat: int) -> None:
    scratch = tempfile.TemporaryDirectory()
    texts = [" ".join(text) if isinstance(text, tuple) else text for text in task.split("train").texts]
    rounds: dict[str, Callable[[], object]] = {
        "closerlook": lambda: closerlook.extract(encoder, task, store=tempfile.mkdtemp(dir=scratch.name)),
        "bare": _bare(encoder, task),
        "sentences": _sentence_transformers(encoder, texts, scratch.name),
    }
    best = dict.fromkeys(rounds, float("inf"))
    for _ in range(repeat):
        for name, run in rounds.items():
            start = time.perf_counter()
            run()
            _wait(encoder)
            best[name] = min(best[name], time.perf_counter() - start)
    for name, seconds in best.items():
        print(f"{name:12} {seconds:8.3f} s")
    scratch.cleanup()
    print(f"closerlook / bare forward passes      {best['closerlook'] / best['bare']:.2f}  (wanted: at most 1.25)")
    print(f"closerlook / sentence-transformers    {best['closerlook'] / best['sentences']:.2f}  (wanted: at most 1)")


def _wait(encoder: Encoder) -> None:
    if encoder.device.type == "cuda":
        torch.cuda.synchronize()


def _bare(encoder: Encoder, task: Task) -> Callable[[], object]:
    windows = sorted(encoder.align(sorted(set(task.split("train").texts))).windows, key=len, reverse=True)
    sizes = np.array([len(window) for window in windows])
    padded = []
    for start, stop in batches(sizes, encoder.batch_tokens):
        ids = torch.zeros((stop - start, int(sizes[start])), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, window in enumerate(windows[start:stop]):
            ids[row, : len(window)] = torch.tensor(window)
            mask[row, : len(window)] = 1
        padded.append({"input_ids": ids.to(encoder.device), "attention_mask": mask.to(encoder.device)})

    def run() -> None:
        with torch.inference_mode():
            for batch in padded:
                encoder.model(**batch)

    return run


def _sentence_transformers(encoder: Encoder, texts: list[str], scratch: str) -> Callable[[], object]:
    folder = tempfile.mkdtemp(dir=scratch)
    encoder.model.save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
    peer = SentenceTransformer(modules=[Transformer(folder)], device=str(encoder.device))
    return lambda: peer.encode(texts, output_value="token_embeddings", convert_to_numpy=False, show_progress_bar=False)


def hit(encoder: str, task: Task) -> None:
    with tempfile.TemporaryDirectory() as store:
        closerlook.extract(encoder, task, store=store)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            closerlook.extract(encoder, task, store=store)
            times.append(time.perf_counter() - start)
    print(f"a second extraction, from the store   {min(times):.3f} s  (wanted: under 0.2 s)")


def growth(encoder: str) -> None:
    """Peak memory over the vectors, for two lengths of corpus."""
    over = {}
    for n in (2000, 16000):
        command = [sys.executable, __file__, "--encoder", encoder, "--memory-of", str(n)]
        told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        over[n] = told["peak"] - told["vectors"]
        peak, vectors = told["peak"] / 1e6, told["vectors"] / 1e6
        print(
            f"memory at {n:5} sentences: peak {peak:7.1f} MB, vectors {vectors:6.1f} MB, rest {peak - vectors:.1f} MB"
        )
    print(f"rest at 16000 / rest at 2000          {over[16000] / over[2000]:.2f}  (wanted: about 1)")


def memory(encoder: str, n: int) -> dict[str, int]:
    draw = np.random.default_rng(0)
    words = [f"w{i}" for i in range(2000)]
    texts = [tuple(words[i] for i in draw.integers(0, 2000, size=draw.integers(5, 40))) for _ in range(n)]
    task = Task.build("made", "token", {"train": [(t, [((i,), "A") for i in range(len(t))]) for t in texts]})
    with tempfile.TemporaryDirectory() as store:
        spaces = closerlook.extract(encoder, task, store=store, device="cpu")
        vectors = sum(space.X.nbytes for space in spaces)
    return {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "vectors": vectors}


if __name__ == "__main__":
    main()
