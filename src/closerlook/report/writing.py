"""Writes the report: the page, and the figures as files."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loky import ProcessPoolExecutor

from closerlook.escaping import show_name
from closerlook.geometry.kernels import count_threads
from closerlook.report.comparison import compare_page
from closerlook.report.figures import Figure
from closerlook.report.manifest import show_manifest
from closerlook.report.outline import draw_figures
from closerlook.report.page import make_page
from closerlook.representations.atomic import atomic_write
from closerlook.study.explored import read_explorers
from closerlook.study.findings import judge_results
from closerlook.study.readings import Manifest, Results, index_results
from closerlook.study.results import MANIFEST, load_results, read_manifest
from closerlook.study.spreadsheet import change_texts, write_csv

if TYPE_CHECKING:
    import pandas as pd

PAGE, FIGURES, DRAWN = "report.html", "figures", ".drawn"
PNG_SCALE = 3.0
"""Pixels per point: about 300 per inch in a column of a paper."""

FIGURES_PER_PROCESS = 4
"""The fewest figures for which a process of its own pays: it starts in about a second."""

log = logging.getLogger("closerlook.report")


def write_report(folder: str | Path, *, figures: bool = True) -> Path:
    """Write a study's page to its folder and return its path. figures: also write SVG, PNG, PDF and CSV files.

    >>> from closerlook import run_study
    >>> plan = {"encoders": "bert-tiny", "tasks": "toy-question", "tuning": None, "measures": "clusters"}
    >>> study = run_study(plan, "my-study", workers=1)
    >>> page = write_report("my-study", figures=False)
    >>> page.name, page.parent.name
    ('report.html', 'my-study')
    """
    results = load_study(folder)
    drawn = draw_figures(results)
    out = Path(folder).expanduser().absolute()
    out = out if out.is_dir() else out.parent
    with atomic_write(out / PAGE) as stream:
        stream.write(make_page(results, judge_results(results), drawn, read_explorers(out)).encode())
    if figures:
        write_figures(drawn, out / FIGURES)
    return out / PAGE


def write_comparison(first: str | Path, second: str | Path, path: str | Path) -> Path:
    """Write the page that compares two studies to `path`, and return the absolute path.

    >>> from closerlook import run_study
    >>> plan = {"tasks": "toy-question", "tuning": None, "measures": "clusters"}
    >>> for name in ("bert-tiny", "random:bert-tiny"):
    ...     study = run_study(plan | {"encoders": name}, name.replace(":", "-"), workers=1)
    >>> write_comparison("bert-tiny", "random-bert-tiny", "comparison.html").name
    'comparison.html'
    """
    results = [load_study(folder) for folder in (first, second)]
    names = [str(Path(folder).name) for folder in (first, second)]
    out = Path(path).expanduser().absolute()
    with atomic_write(out) as stream:
        stream.write(compare_page(results, names, [draw_figures(study) for study in results]).encode())
    return out


def load_study(folder: str | Path) -> Results:
    """The results of a study; control characters are replaced by visible escapes."""
    return index_results(*read_study(folder))


def read_study(folder: str | Path) -> tuple[pd.DataFrame, Manifest]:
    """The table and the manifest (empty if there is none) of a study, with visible escapes, see `show_name`."""
    path = Path(folder).expanduser()
    table = show_names(load_results(path))
    folder = path if path.is_dir() else path.parent
    return table, show_manifest(read_manifest(folder), folder / MANIFEST)


def show_names(table: pd.DataFrame) -> pd.DataFrame:
    """The table of a study with its names and remarks as they are shown, see `show_name`.

    The texts of blocked merges are JSON and stay; `blocked_spaces` shows the words in them.
    """
    shown = change_texts(table, show_name)
    is_json = (table["measure"] == "blocked_merge").fillna(value=False)
    return shown.assign(text=shown["text"].where(~is_json, table["text"]))


# ---- figures ----


def write_figures(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """The paths of the files: each figure as SVG, PNG and PDF, its data as CSV. Files of stale figures are removed."""
    written: list[Path] = []
    for name, figure, images in zip(file_names(figures), figures, _draw_images(figures), strict=True):
        for ending, content in images.items():
            with atomic_write(folder / f"{name}.{ending}") as stream:
                stream.write(content)
        with atomic_write(folder / f"{name}.csv") as stream:
            write_csv(figure.data, stream)
        written += [folder / f"{name}.{ending}" for ending in (*images, "csv")]
    _remove_stale(folder, [path.name for path in written])
    return written


def _draw_images(figures: Sequence[Figure]) -> Iterator[dict[str, bytes]]:
    """Each figure as SVG, PNG and PDF, by file ending.

    vl-convert keeps Python's lock while it draws, so many figures are drawn in several processes. They run functions of
    vl-convert, so none of them imports this package.
    """
    import vl_convert

    specifications = [figure.specification(titled=True) for figure in figures]
    to_png = partial(vl_convert.svg_to_png, scale=PNG_SCALE)
    workers = min(count_threads(None), len(figures) // FIGURES_PER_PROCESS)
    with ExitStack() as stack:
        run: Callable[..., Iterator[Any]] = map
        if workers > 1:
            run = stack.enter_context(ProcessPoolExecutor(workers)).map
        drawings = [_renumber(drawn) for drawn in run(vl_convert.vegalite_to_svg, specifications)]
        for svg, png, pdf in zip(drawings, run(to_png, drawings), run(vl_convert.svg_to_pdf, drawings), strict=True):
            yield {"svg": svg.encode(), "png": png, "pdf": pdf}


def draw_svg(figure: Figure) -> str:
    """A figure as SVG, as `write_figures` writes it."""
    import vl_convert

    return _renumber(vl_convert.vegalite_to_svg(figure.specification(titled=True)))


def _renumber(svg: str) -> str:
    """The drawing with its gradients numbered from 0: vl-convert goes on counting from one figure to the next."""
    names = {name: f"gradient_{at}" for at, name in enumerate(dict.fromkeys(re.findall(r'id="(gradient_\d+)"', svg)))}
    return re.sub(r'(id="|url\(#)(gradient_\d+)', lambda found: found[1] + names.get(found[2], found[2]), svg)


def _remove_stale(folder: Path, names: Sequence[str]) -> None:
    """Remove files of figures that were drawn earlier but not now; the file DRAWN lists what was drawn."""
    drawn = folder / DRAWN
    before = drawn.read_text(encoding="utf-8").splitlines() if drawn.is_file() else []
    for name in set(before) - set(names):
        (folder / Path(name).name).unlink(missing_ok=True)
    with atomic_write(drawn) as stream:
        stream.write("\n".join(names).encode())


def file_names(figures: Sequence[Figure]) -> list[str]:
    """A file name for each figure, without its ending, that is valid on any file system.

    Letters and digits of any script are kept; other characters become a dash; equal names get a number.
    """
    names: list[str] = []
    for figure in figures:
        parts = [figure.kind, figure.encoder, figure.task]
        name = "_".join(slug for part in parts if (slug := re.sub(r"[^\w.]+", "-", part).strip("-.")[:60]))
        same = sum(other == name or other.rpartition("~")[0] == name for other in names)
        names.append(f"{name}~{same + 1}" if same else name)
    return names
