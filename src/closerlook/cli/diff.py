"""`closerlook diff`: what a training changed, from an encoder before and after it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from closerlook.cli.options import HOW, AllowPickle, Data, Device, MaxExamples, Pool, StoreFolder, TrustRemoteCode
from closerlook.errors import InputError

if TYPE_CHECKING:
    from closerlook.differences import Difference

EXAMPLE = "Example: closerlook diff bert-base-uncased out/checkpoint-500 -t mine.csv -t toy-pos"


def diff(
    before: Annotated[str, Argument(help="Encoder before the training: folder, Hugging Face ID, or adapter folder.")],
    after: Annotated[
        str,
        Argument(
            help="Encoder after it, or another one; of the output folder of a Trainer, or of `closerlook tune "
            "--save-weights`, the last checkpoint is taken."
        ),
    ],
    task: Annotated[
        list[str], Option("--task", "-t", help="Task to measure: a name or a file; may be repeated (forgetting).")
    ],
    page: Annotated[Path | None, Option(help="File for the page; --no-page writes none.")] = Path("diff.html"),
    no_page: Annotated[bool, Option("--no-page", help="Print the summary only.")] = False,
    max_examples: MaxExamples = 3000,
    pool: Pool = "auto",
    shuffles: Annotated[
        int, Option(min=0, help="Shuffled labellings for the null of separability.", rich_help_panel=HOW)
    ] = 5,
    resamples: Annotated[
        int, Option(min=4, help="Half samples for the p-values of label distances.", rich_help_panel=HOW)
    ] = 20,
    seed: Annotated[int, Option(min=0, help="Seed of samples and shuffles.", rich_help_panel=HOW)] = 0,
    data: Data = None,
    store: StoreFolder = None,
    device: Device = "auto",
    allow_pickle: AllowPickle = False,
    trust_remote_code: TrustRemoteCode = False,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object with all tables.")] = False,
) -> None:
    """Show what a training changed: accuracy, clusters, label distances and examples, layer by layer; a page as well.

    Nothing is trained but small probes. Give the task of the training and others, to see what was gained and lost.
    """
    from closerlook.cli.console import note, print_json, progress
    from closerlook.differences import diff as measure

    target = None if no_page else page
    if target is not None:
        _check_page(target)
    with progress("steps") as show:
        result = measure(
            before,
            after,
            task,
            max_examples=max_examples,
            pool=pool,
            shuffles=shuffles,
            resamples=resamples,
            seed=seed,
            data=data,
            store=store,
            device=device,
            allow_pickle=allow_pickle,
            trust_remote_code=trust_remote_code,
            progress=show,
        )
    written = None if target is None else result.write(target)
    if as_json:
        print_json(result.to_dict() | {"page": None if written is None else str(written)})
        return
    _print(result)
    note(
        f"settings: at most {max_examples} examples of a split, pool {pool}, {shuffles} shuffles, "
        f"{resamples} resamples, seed {seed}"
    )
    if written is not None:
        sys.stdout.write(f"page: {written}\n")


def _check_page(page: Path) -> None:
    """Raise InputError if the page cannot be written there."""
    from closerlook.representations.atomic import check_writable

    if page.expanduser().is_dir():
        raise InputError(f"--page {page} is a folder; expected a file, such as {page / 'diff.html'}")
    check_writable(page.parent, "--page")


def _print(result: Difference) -> None:
    """Print the sentences of each task, and a table of what was gained and lost."""
    from closerlook.cli.console import print_table
    from closerlook.differences.page import overview_table
    from closerlook.escaping import show_text

    sys.stdout.writelines(f"{show_text(line)}\n" for line in str(result).split("\n"))
    overview = overview_table(result)
    print_table(overview.title, overview.titles(), overview.shown(), overview.titles()[1:])
