"""The part of `peers.py` that ranks encoders by LogME, with TransformerRanker and with Closer Look."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from peer_process import Job, alternate, in_single_precision, python_with, times_of
from tables import table


def ranking(given: argparse.Namespace, scratch: Path) -> None:
    python = python_with("transformer_ranker", given)
    if python is None:
        return
    name = "trec-50" if given.data else "toy-question"
    write_texts(name, given.data, scratch)
    scores: list[list[object]] = []
    rankings: list[list[object]] = []
    for encoder in given.encoder:
        in_single_precision(encoder, scratch / encoder.name)
        layers = json.loads((encoder / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"]
        job: dict[str, object] = {"scratch": str(scratch), "encoder": encoder.name, "layers": f"1-{layers}"}
        job |= {"task": name, "data": str(given.data) if given.data else None}
        ours, theirs = alternate(
            given.repeat,
            (sys.executable, {"job": "our logme ranking", **job}),
            (python, {"job": "ranker ranking", **job}),
        )
        (whole,) = alternate(1, (sys.executable, {"job": "our rank", **job}))
        for what, own in (("LogME", ours), ("`rank`", whole)):
            rankings.append([encoder.name, what, own["best"], theirs["best"], *times_of(own, theirs)])
        ours, theirs = alternate(
            given.repeat, (sys.executable, {"job": "our logme", **job}), (python, {"job": "ranker logme", **job})
        )
        gap = float(np.abs(np.subtract(ours["values"], theirs["values"])).max())
        scores.append([encoder.name, layers, ours["shape"], gap, *times_of(ours, theirs)])
    times = ["seconds", "TransformerRanker", "work", "its work", "ratio of work"]
    table(
        f"LogME of all layers, {name}, same vectors",
        ["encoder", "layers", "each", "largest difference", *times],
        scores,
    )
    columns = ["encoder", "what Closer Look computes", "best LogME", "TransformerRanker's", *times]
    table(f"From the texts of {name} to the scores of all layers", columns, rankings)


def write_texts(name: str, data: Path | None, folder: Path) -> None:
    """Write the texts of train and the number of each one's label, which TransformerRanker reads."""
    import closerlook  # noqa: PLC0415

    train = closerlook.load_task(name, data=data).split("train")
    content = {"text": list(train.texts), "label": [int(code) for code in train.y]}
    (folder / "texts.json").write_text(json.dumps(content), encoding="utf-8")


# ---- from texts to scores ----


def our_logme_ranking(job: dict[str, Any]) -> Job:
    import closerlook  # noqa: PLC0415
    from closerlook.geometry.fit import logme  # noqa: PLC0415

    folder = Path(job["scratch"])

    def score(split: str) -> list[Any]:
        spaces = closerlook.extract(
            str(folder / job["encoder"]),
            job["task"],
            data=job["data"],
            splits=split,
            layers=job["layers"],
            pool="mean",
            store=tempfile.mkdtemp(dir=folder),
        )
        return [(logme(space.X, space.y), space) for space in spaces]

    def describe(scored: list[Any]) -> dict[str, Any]:
        np.savez(folder / "spaces.npz", y=scored[0][1].y, X=np.stack([space.X for _, space in scored]))
        return {"best": max(value for value, _ in scored)}

    score("test")
    return lambda: score("train"), describe


def our_rank(job: dict[str, Any]) -> Job:
    """The whole of `rank` on the same examples: probes, clusters and distances besides LogME."""
    import closerlook  # noqa: PLC0415

    folder = Path(job["scratch"])
    examples = len(json.loads((folder / "texts.json").read_text(encoding="utf-8"))["text"])

    def rank(most: int) -> Any:
        return closerlook.rank(
            [str(folder / job["encoder"])],
            job["task"],
            data=job["data"],
            layers=job["layers"],
            max_examples=most,
            pool="mean",
            store=tempfile.mkdtemp(dir=folder),
        )

    rank(200)
    return lambda: rank(examples), lambda result: {"best": float(result.spaces.logme.max())}


def ranker_ranking(job: dict[str, Any]) -> Job:
    from datasets import Dataset  # noqa: PLC0415
    from transformer_ranker import TransformerRanker  # noqa: PLC0415

    folder = Path(job["scratch"])
    content = json.loads((folder / "texts.json").read_text(encoding="utf-8"))

    def rank(rows: int | None) -> Any:
        dataset = Dataset.from_dict({column: values[:rows] for column, values in content.items()})
        ranker = TransformerRanker(dataset, text_column="text", label_column="label")
        options = {"estimator": "logme", "layer_aggregator": "bestlayer", "device": "cpu"}
        return ranker.run([str(folder / job["encoder"])], **options)

    rank(500)
    return lambda: rank(None), lambda result: {"best": float(max(result.scores.values()))}


# ---- LogME of the same vectors ----


def our_logme(job: dict[str, Any]) -> Job:
    from closerlook.geometry.fit import logme  # noqa: PLC0415

    y, X = np.load(Path(job["scratch"]) / "spaces.npz").values()
    logme(X[0][:500], y[:500])
    return lambda: [logme(layer, y) for layer in X], lambda values: {
        "values": values,
        "shape": f"{X.shape[1]:,} × {X.shape[2]}",
    }


def ranker_logme(job: dict[str, Any]) -> Job:
    import torch  # noqa: PLC0415
    from transformer_ranker.estimators import LogME  # noqa: PLC0415

    y, X = (torch.from_numpy(values) for values in np.load(Path(job["scratch"]) / "spaces.npz").values())
    LogME().fit(embeddings=X[0][:500], labels=y[:500])
    return lambda: [LogME().fit(embeddings=layer, labels=y) for layer in X], lambda values: {"values": values}
