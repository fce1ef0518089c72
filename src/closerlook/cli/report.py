"""`closerlook report`: the page of a study that has run, and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

EXAMPLE = "Example: closerlook report my-study"


def report(
    folder: Annotated[Path, Argument(help="The folder of a study that has run, or its results.parquet.")] = Path(
        "study"
    ),
    figures: Annotated[
        bool, Option("--figures/--no-figures", help="Also draw each figure as SVG, PNG and PDF, with its data as CSV.")
    ] = True,
    archive: Annotated[
        Path | None,
        Option(help="Write the page into this folder, with a table of no more than it needs, to keep or to send."),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object: the page and the five verdicts.")] = False,
) -> None:
    """Write one page that holds a study's tables, figures and verdicts, from its table alone."""
    import sys

    from closerlook.cli.console import note, print_json
    from closerlook.report import write_report
    from closerlook.report.archive import archive as write_archive

    if archive is None:
        page = write_report(folder, figures=figures)
    else:
        page, figures = write_archive(folder, archive), False
    if as_json:
        from closerlook.study.findings import judge
        from closerlook.study.results import load_results

        findings = judge(load_results(folder))
        print_json({"page": str(page), "findings": [_finding(one.__dict__) for one in findings]})
        return
    if figures:
        note(f"figures: {page.parent / 'figures'}")
    sys.stdout.write(f"{page}\n")


def _finding(finding: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in finding.items() if name != "answers"}
