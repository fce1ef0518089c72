"""`closerlook report`: write the page of a study, or of a training measured by `GeometryCallback`, and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from closerlook.errors import InputError

if TYPE_CHECKING:
    from closerlook.study.findings import Finding

EXAMPLE = "Example: closerlook report my-study"


def report(
    folder: Annotated[
        Path,
        Argument(
            help="The folder of a finished study, or its results.parquet; or a .jsonl file of GeometryCallback, whose "
            "page is written next to it."
        ),
    ] = Path("study"),
    figures: Annotated[
        bool, Option("--figures/--no-figures", help="Also write each figure as SVG, PNG and PDF, and its data as CSV.")
    ] = True,
    archive: Annotated[
        Path | None,
        Option(
            help="Folder to share, which is written instead: the page, manifest.json, and a results.parquet reduced to "
            "the rows that the page shows and the distances between labels; no figure files."
        ),
    ] = None,
    distances: Annotated[
        Literal["all", "last", "ends"],
        Option(
            help="With --archive: the distances between labels that are kept: all, of the last layer, or of its ends "
            "(before and after fine-tuning). With fewer, the table is smaller, and fewer similarities can be "
            "computed again from it."
        ),
    ] = "all",
    as_json: Annotated[
        bool,
        Option(
            "--json",
            help="Print one JSON object: the path of the page and the five verdicts; of a training, its tasks, steps "
            "and alarms.",
        ),
    ] = False,
) -> None:
    """Write one HTML page with the tables, figures and verdicts of a study, from its results table.

    Of a training that GeometryCallback measured, the page shows each task and layer over the steps.
    """
    import sys

    from closerlook.cli.console import note, print_json
    from closerlook.report import write_report
    from closerlook.report.archive import archive as write_archive

    if distances != "all" and archive is None:
        raise InputError(f"--distances {distances} given without --archive; expected both, or neither")
    if folder.suffix == ".jsonl" and not folder.is_dir():
        if archive is not None:
            raise InputError(
                f"--archive given with {folder}; it is for studies, and the page of a training is one file"
            )
        _report_training(folder, figures=figures, as_json=as_json)
        return
    if archive is None:
        page = write_report(folder, figures=figures)
    else:
        page, figures = write_archive(folder, archive, distances=distances), False
    if as_json:
        from closerlook.study.findings import judge
        from closerlook.study.results import load_results
        from closerlook.study.rules import VERSION, rules_hash

        findings = [_as_dict(finding) for finding in judge(load_results(folder))]
        print_json({"page": str(page), "rules": {"version": VERSION, "hash": rules_hash()}, "findings": findings})
        return
    if figures:
        note(f"figures: {page.parent / 'figures'}")
    sys.stdout.write(f"{page}\n")


def _report_training(file: Path, *, figures: bool, as_json: bool) -> None:
    """Write the page of a results file of GeometryCallback, and print its path."""
    import sys

    from closerlook.cli.console import note, print_json
    from closerlook.report.watched import figures_folder, write_watched

    page, training = write_watched(file, figures=figures)
    if as_json:
        steps = training.rows.step.unique()
        print_json({"page": str(page), "tasks": training.tasks, "steps": steps, "alarms": training.alarms()})
        return
    if figures:
        note(f"figures: {figures_folder(page)}")
    sys.stdout.write(f"{page}\n")


def _as_dict(finding: Finding) -> dict[str, object]:
    """The finding for JSON, without the answers of its pairs."""
    effect = None if finding.effect is None else vars(finding.effect)
    return {name: value for name, value in vars(finding).items() if name != "answers"} | {"effect": effect}
