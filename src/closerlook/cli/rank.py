"""`closerlook rank`: which encoder and layer suit a task, and which cheap score would have found out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from closerlook.cli.options import HOW, AllowPickle, Data, Device, MaxExamples, Pool, StoreFolder, TrustRemoteCode

if TYPE_CHECKING:
    from closerlook.ranking import Ranking

EXAMPLE = "Example: closerlook rank -e bert-tiny -e random:bert-tiny -t toy-question"


def rank(
    encoder: Annotated[list[str], Option("--encoder", "-e", help="Encoder to rank; may be repeated.")],
    task: Annotated[str, Option("--task", "-t", help="Task: a name or a file.")],
    layers: Annotated[str, Option(help="Layers of each encoder: all, last, or numbers such as 0,2-4.")] = "all",
    max_examples: MaxExamples = 3000,
    pool: Pool = "auto",
    seeds: Annotated[int, Option(min=1, help="Probes for each layer.", rich_help_panel=HOW)] = 1,
    seed: Annotated[int, Option(min=0, help="Seed of the sample.", rich_help_panel=HOW)] = 0,
    data: Data = None,
    store: StoreFolder = None,
    device: Device = "auto",
    allow_pickle: AllowPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Rank encoders and layers for a task by probe accuracy, and show how well cheap scores agree with that ranking.

    No score is claimed to be best: the second table shows the rank correlation of each score with accuracy on this very
    table, and the accuracy that is lost by choosing with it.
    """
    from closerlook.cli.console import print_json, progress
    from closerlook.ranking import rank as measure

    with progress("encoders") as show:
        result = measure(
            encoder,
            task,
            layers=layers,
            max_examples=max_examples,
            pool=pool,
            seeds=seeds,
            seed=seed,
            data=data,
            store=store,
            device=device,
            allow_pickle=allow_pickle,
            trust_remote_code=trust_remote_code,
            progress=show,
        )
    if as_json:
        tables = {"spaces": result.spaces.to_dict("records"), "scores": result.scores.to_dict("records")}
        print_json({"task": result.task, "settings": result.settings, "best": list(result.best), **tables})
        return
    _print(result)


def _print(result: Ranking) -> None:
    from closerlook.cli.console import note, print_table

    spaces, scores = result.spaces, result.scores
    columns = ["encoder", "layer", "accuracy, %", "95% interval", *(name.replace("_", " ") for name in scores.score)]
    print_table(
        f"{result.task}: encoders and layers, best accuracy first",
        columns,
        [
            [
                row.encoder,
                row.layer,
                f"{100 * row.accuracy:.1f}",
                f"{100 * row.low:.1f} to {100 * row.high:.1f}",
                *(f"{row[name]:.4g}" for name in scores.score),
            ]
            for _, row in spaces.iterrows()
        ],
        columns[1:],
    )
    print_table(
        "scores: agreement with accuracy, and what choosing by each would cost",
        ["score", "meaning", "rank correlation", "would choose", "accuracy, %", "cost, points"],
        [
            [
                row.score.replace("_", " "),
                row.meaning,
                f"{row.rank_correlation:.2f}",
                f"{row.encoder} layer {row.layer}",
                f"{100 * row.accuracy:.1f}",
                f"{100 * row.cost:.1f}",
            ]
            for _, row in scores.iterrows()
        ],
        ["rank correlation", "accuracy, %", "cost, points"],
    )
    note(f"settings: {', '.join(f'{name} {value}' for name, value in result.settings.items())}")
