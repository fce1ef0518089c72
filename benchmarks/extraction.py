"""Measure the time and memory of extraction, and compare it with two other ways to compute vectors.

    python benchmarks/extraction.py [--encoder FOLDER] [--task pos --data DIR] [--repeat 5] [--speed-only]

Times are the best of several interleaved rounds, since other work on the machine can only add time.
forward     the forward passes of the same model over the same padded batches; nothing is kept
sentences   sentence-transformers' `encode(output_value="token_embeddings")` on the same sentences (last layer only)
memory      peak resident memory minus the size of the vectors, for 2,000 and 16,000 sentences, each in its own process
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
from closerlook.encoders.encoder import Encoder, batch_end
from closerlook.tasks.task import Task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="bert-tiny")
    parser.add_argument("--task", default="toy-pos")
    parser.add_argument("--data")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--speed-only", action="store_true", help="do not measure memory")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        print(json.dumps(peak_memory(arguments.encoder, arguments.memory_of)))
        return
    encoder = Encoder.load(arguments.encoder, device=arguments.device)
    task = closerlook.load_task(arguments.task, arguments.data)
    machine = f"{encoder.device}, {torch.get_num_threads()} threads"
    print(f"{encoder.name} on {machine}; {task.name}, {len(task.split('train'))} examples")
    measure_speed(encoder, task, arguments.repeat)
    measure_store(arguments.encoder, task)
    if not arguments.speed_only:
        measure_memory(arguments.encoder)


def measure_speed(encoder: Encoder, task: Task, repeat: int) -> None:
    scratch = tempfile.TemporaryDirectory()
    texts = [" ".join(text) if isinstance(text, tuple) else text for text in task.split("train").texts]
    rounds: dict[str, Callable[[], object]] = {
        "closerlook": lambda: closerlook.extract(encoder, task, store=tempfile.mkdtemp(dir=scratch.name)),
        "forward": _forward_passes(encoder, task),
        "sentences": _sentence_transformers(encoder, texts, scratch.name),
    }
    best = dict.fromkeys(rounds, float("inf"))
    for _ in range(repeat):
        for name, run in rounds.items():
            start = time.perf_counter()
            run()
            _synchronize(encoder)
            best[name] = min(best[name], time.perf_counter() - start)
    for name, seconds in best.items():
        print(f"{name:12} {seconds:8.3f} s")
    scratch.cleanup()
    print(f"closerlook / forward passes           {best['closerlook'] / best['forward']:.2f}  (goal: at most 1.25)")
    print(f"closerlook / sentence-transformers    {best['closerlook'] / best['sentences']:.2f}  (goal: at most 1)")


def _synchronize(encoder: Encoder) -> None:
    if encoder.device.type == "cuda":
        torch.cuda.synchronize()


def _forward_passes(encoder: Encoder, task: Task) -> Callable[[], object]:
    windows = sorted(encoder.align(sorted(set(task.split("train").texts))).windows, key=len, reverse=True)
    sizes = np.array([len(window) for window in windows])
    padded = []
    start = 0
    while start < len(sizes):
        stop = batch_end(sizes, start, encoder.batch_tokens)
        ids = torch.zeros((stop - start, int(sizes[start])), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, window in enumerate(windows[start:stop]):
            ids[row, : len(window)] = torch.tensor(window)
            mask[row, : len(window)] = 1
        padded.append({"input_ids": ids.to(encoder.device), "attention_mask": mask.to(encoder.device)})
        start = stop

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


def measure_store(encoder: str, task: Task) -> None:
    with tempfile.TemporaryDirectory() as store:
        closerlook.extract(encoder, task, store=store)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            closerlook.extract(encoder, task, store=store)
            times.append(time.perf_counter() - start)
    print(f"a second extraction, from the store   {min(times):.3f} s  (goal: under 0.2 s)")


def measure_memory(encoder: str) -> None:
    """Print the peak memory minus the vectors, for two sizes of corpus."""
    rest = {}
    for n in (2000, 16000):
        command = [sys.executable, __file__, "--encoder", encoder, "--memory-of", str(n)]
        result = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        rest[n] = result["peak"] - result["vectors"]
        peak, vectors = result["peak"] / 1e6, result["vectors"] / 1e6
        print(
            f"memory at {n:5} sentences: peak {peak:7.1f} MB, vectors {vectors:6.1f} MB, rest {peak - vectors:.1f} MB"
        )
    print(f"rest at 16000 / rest at 2000          {rest[16000] / rest[2000]:.2f}  (goal: about 1)")


def peak_memory(encoder: str, n: int) -> dict[str, int]:
    """The peak memory of this process after it extracted n random sentences, and the size of the vectors, in bytes."""
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(2000)]
    texts = [tuple(words[i] for i in rng.integers(0, 2000, size=rng.integers(5, 40))) for _ in range(n)]
    task = Task.build("random", "token", {"train": [(t, [((i,), "A") for i in range(len(t))]) for t in texts]})
    with tempfile.TemporaryDirectory() as store:
        spaces = closerlook.extract(encoder, task, store=store, device="cpu")
        vectors = sum(space.X.nbytes for space in spaces)
    return {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "vectors": vectors}


if __name__ == "__main__":
    main()
