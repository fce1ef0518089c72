"""Write the replication, its appendix, the pages of further studies, the note and their figures from kept tables.

    python docs/write_up.py          # writes the pages and figures; `make write-up` calls it
    python docs/write_up.py --check  # writes nothing; names every page that is out of date, exit code 1 if there is any

The templates are in docs/templates. Every number in them is an expression over the table in docs/results, over the
published numbers, or over docs/templates/recorded.yaml. `require` ends with an error when a sentence is no longer true.
No model is needed.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from writeup import facts, forgetting, further_tables, held_out, label_gains, methods, paper_tables, phrases, values
from writeup.phrases import StaleTextError
from writeup.values import Study

from closerlook.geometry.p_values import SIGNIFICANCE
from closerlook.probes.grid import GRID
from closerlook.report.published import published_row
from closerlook.report.writing import draw_svg
from closerlook.study.noise import HARM, LEVEL
from closerlook.study.rules import VERSION, rules_hash
from closerlook.study.verdicts import SHARE
from closerlook.tasks.catalogue import find_task

if TYPE_CHECKING:
    from closerlook.report.figures import Figure

DOCS = Path(__file__).parent
TEMPLATES, FIGURES = DOCS / "templates", "figures"

PAGES = {
    "reproduction.md.jinja": "reproduction.md",
    "appendix.md.jinja": "reproduction-appendix.md",
    "lora-and-forgetting.md.jinja": "lora-and-forgetting.md",
    "note.md.jinja": "paper/note.md",
    "held-out.md.jinja": "held-out.md",
}
"""Template -> page in docs/. To add a page, write a template and add a line."""

STUDIES = {"study": "results", "lora": "results-lora", "forgetting": "results-forgetting", "held_out": "results-partut"}
"""Name in the templates -> folder in docs/. All but the first may be missing; the name is then None."""

FILTERS = (
    *("fixed", "signed", "percent", "span", "percents", "out_of", "how_many", "which", "listed", "short", "named"),
    *("trend", "capital", "uncapital", "in_words", "extreme", "points", "counted"),
)
FACTS = (
    *("limit_factor", "published_points", "n_with_distance", "shift_ends", "fit_correlation", "detour_shares"),
    *("size_trend", "size_mean", "most_pieces", "least_gain", "closer_to_start", "pools"),
    *("seed_similarities", "verdict_sentence", "not_run", "measured_in", "in_which"),
)
TABLES = {
    name: make
    for module in (paper_tables, further_tables, methods, label_gains, forgetting, held_out)
    for name, make in vars(module).items()
    if name.endswith("_table")
}


@dataclass
class WriteUp:
    """The pages as text, and the figures they show by file name. page: the one that is being rendered."""

    pages: dict[str, str] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    page: str = ""

    def show(self, study: Study, kind: str, encoder: str, task: str) -> str:
        """A figure of the report page in Markdown, with its description; the file itself has title and caption."""
        figure = study.figure(kind, encoder, task)
        name = values.figure_name(figure)
        self.figures[name] = figure
        return f"![{figure.title}. {figure.alt}]({'../' * self.page.count('/')}{FIGURES}/{name})"


def render(docs: Path = DOCS, pages: Iterable[str] = PAGES) -> WriteUp:
    """The pages, rendered from the kept tables in a folder."""
    studies = {name: Study.load(docs / at) for name, at in STUDIES.items() if (docs / at).is_dir()}
    written = WriteUp()
    templates = environment()
    templates.globals |= (
        dict.fromkeys(STUDIES)
        | studies
        | {
            "figure": partial(written.show, studies["study"]),
            "recorded": yaml.safe_load((TEMPLATES / "recorded.yaml").read_text(encoding="utf-8")),
            "references": yaml.safe_load((DOCS / "paper" / "references.yaml").read_text(encoding="utf-8")),
            "expected": yaml.safe_load((DOCS / "held-out.yaml").read_text(encoding="utf-8"))["findings"],
        }
    )
    for template in pages:
        written.page = PAGES[template]
        written.pages[written.page] = unwrap(templates.get_template(template).render())
    return written


def environment() -> Environment:
    """The environment of the templates, without the studies. An unknown name is an error, not an empty text."""
    found = Environment(  # noqa: S701  (Markdown, not HTML)
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {name: getattr(phrases, name) for name in FILTERS}
    found.filters |= {"mean": mean, "median": statistics.median, "sd": statistics.stdev}
    found.globals |= (
        TABLES
        | {name: getattr(facts, name) for name in FACTS}
        | {
            "lacking": further_tables.lacking,
            "larger_counts": paper_tables.larger_counts,
            "unexpected": held_out.unexpected,
            "as_expected": held_out.as_expected,
            "judged": held_out.judged,
            "task_mean": methods.task_mean,
            "seed_means": methods.seed_means,
            "seeds_of": methods.seeds_of,
            "task_value": methods.task_value,
            "others_mean": methods.others_mean,
            "method_similarities": methods.method_similarities,
            "bases": methods.bases,
            "by_method": methods.by_method,
            "gain_correlations": label_gains.gain_correlations,
            "extreme_labels": label_gains.extreme_labels,
            "forgotten": forgetting.forgotten,
            "accuracy_change": forgetting.accuracy_change,
            "forgetting_course": forgetting.forgetting_course,
            "updates": forgetting.updates,
            "find_task": find_task,
            "require": phrases.require,
            "markdown": values.markdown,
            "same_pairs": values.same_pairs,
            "published": published_row,
            "correlation": statistics.correlation,
            "published_sizes": len(GRID),
            "significance": SIGNIFICANCE,
            "level": LEVEL,
            "share": SHARE,
            "harm_points": 100 * HARM,
            "rules_version": VERSION,
            "rules_hash": rules_hash(),
        }
    )
    return found


def unwrap(text: str) -> str:
    """Markdown with each paragraph and list item on one line: a number that begins a line might become a list."""
    parts = re.split(r"(^```.*?^```\n)", text, flags=re.MULTILINE | re.DOTALL)
    for at in range(0, len(parts), 2):  # the odd ones are code
        joined = re.sub(r"(?<=\S) *\n *(?=[^\s|#!-])", " ", parts[at])
        parts[at] = re.sub(r"\n{3,}", "\n\n", re.sub(r" {2,}", " ", re.sub(r" +$", "", joined, flags=re.MULTILINE)))
    return "".join(parts).strip() + "\n"


def mean(numbers: Iterable[float]) -> float:
    """The mean of some numbers."""
    known = list(numbers)
    if not known:
        raise StaleTextError("a mean is over no values: the kept table does not have them")
    return statistics.fmean(known)


def stale(written: WriteUp) -> list[str]:
    """The names of the pages whose text is not what the table gives."""
    files = {name: DOCS / name for name in written.pages}
    return [
        name
        for name, file in files.items()
        if not file.is_file() or file.read_text(encoding="utf-8") != written.pages[name]
    ]


def main(arguments: list[str]) -> int:
    """Write or check the pages; the exit code."""
    try:
        written = render()
    except StaleTextError as error:
        print(error, file=sys.stderr)  # noqa: T201  (a command)
        return 1
    if "--check" in arguments:
        for name in stale(written):
            print(f"docs/{name} is not what docs/results gives; run: make write-up", file=sys.stderr)  # noqa: T201
        return 1 if stale(written) else 0
    write(written)
    return 0


def write(written: WriteUp, docs: Path = DOCS) -> None:
    """Write pages and figures; figures that only the earlier pages showed are removed."""
    shown = {name for page in written.pages for name in figures_in(docs / page)}
    for name, text in written.pages.items():
        (docs / name).parent.mkdir(exist_ok=True)
        (docs / name).write_text(text, encoding="utf-8")
    for name, figure in written.figures.items():
        (docs / FIGURES / name).write_text(draw_svg(figure), encoding="utf-8")
    for name in shown - {name for page in docs.rglob("*.md") for name in figures_in(page)}:
        (docs / FIGURES / name).unlink(missing_ok=True)


def figures_in(page: Path) -> set[str]:
    """The file names of the figures that a page shows."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    return set(re.findall(rf"\b{FIGURES}/([\w.~-]+\.svg)\)", text))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
