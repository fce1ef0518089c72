"""Where a report leaves the program: the page, and its figures as files."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from closerlook.errors import InputError
from closerlook.report.comparison import compare_page
from closerlook.report.figures import Figure, draw
from closerlook.report.page import make_page
from closerlook.representations.atomic import atomic_write
from closerlook.study.findings import judge_results
from closerlook.study.readings import Results, index_results
from closerlook.study.results import MANIFEST, load_results

PAGE, FIGURES, DRAWN = "report.html", "figures", ".drawn"
PNG_SCALE = 3.0
"""Pixels for each point: about 300 to the inch in a column of a paper."""

log = logging.getLogger("closerlook.report")


def write_report(folder: str | Path, *, figures: bool = True) -> Path:
    """The page of a study's folder, written there; figures: also as SVG, PNG, PDF and CSV in `figures/`."""
    results = load_study(folder)
    drawn = draw(results)
    out = Path(folder).expanduser().absolute()
    out = out if out.is_dir() else out.parent
    with atomic_write(out / PAGE) as stream:
        stream.write(make_page(results, judge_results(results), drawn).encode())
    if figures:
        write_figures(drawn, out / FIGURES)
    return out / PAGE


def write_comparison(first: str | Path, second: str | Path, path: str | Path) -> Path:
    """The page of two studies side by side."""
    results = [load_study(folder) for folder in (first, second)]
    names = [str(Path(folder).name) for folder in (first, second)]
    out = Path(path).expanduser().absolute()
    with atomic_write(out) as stream:
        stream.write(compare_page(results, names, [draw(one) for one in results]).encode())
    return out


def load_study(folder: str | Path) -> Results:
    """The table of a study, with the manifest beside it where there is one."""
    path = Path(folder).expanduser()
    table = load_results(path)
    beside = (path if path.is_dir() else path.parent) / MANIFEST
    return index_results(table, _manifest(beside))


def _manifest(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read: {error}; expected the manifest that a study writes, or none"
        ) from None
    if not isinstance(told, dict):
        raise InputError(f"{path} holds {type(told).__name__}; expected the manifest that a study writes, or none")
    return told


# ---- figures ----


def write_figures(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Each figure as SVG, PNG, PDF, and its data as CSV; those of an earlier table that are not drawn again go."""
    import vl_convert

    written: list[Path] = []
    for name, figure in zip(file_names(figures), figures, strict=True):
        svg = vl_convert.vegalite_to_svg(figure.specification(titled=True))
        made: dict[str, Callable[[], bytes]] = {
            "svg": svg.encode,
            "png": lambda drawn=svg: vl_convert.svg_to_png(drawn, scale=PNG_SCALE),  # type: ignore[misc]
            "pdf": lambda drawn=svg: vl_convert.svg_to_pdf(drawn),  # type: ignore[misc]
            "csv": lambda data=figure.data: data.to_csv(index=False).encode(),  # type: ignore[misc]
        }
        for ending, make in made.items():
            with atomic_write(folder / f"{name}.{ending}") as stream:
                stream.write(make())
            written.append(folder / f"{name}.{ending}")
    _remove_stale(folder, [path.name for path in written])
    return written


def _remove_stale(folder: Path, names: Sequence[str]) -> None:
    """Remove what was drawn there from an earlier table and not again now; a list beside the files says what was."""
    drawn = folder / DRAWN
    before = drawn.read_text(encoding="utf-8").splitlines() if drawn.is_file() else []
    for name in set(before) - set(names):
        (folder / Path(name).name).unlink(missing_ok=True)
    with atomic_write(drawn) as stream:
        stream.write("\n".join(names).encode())


def file_names(figures: Sequence[Figure]) -> list[str]:
    """A name for each figure, without endings, that any file system takes.

    Letters and digits of any script stay; the rest becomes a dash; where two would be the same, a number follows.
    """
    names: list[str] = []
    for figure in figures:
        parts = [figure.kind, figure.encoder, figure.task]
        name = "_".join(slug for part in parts if (slug := re.sub(r"[^\w.]+", "-", part).strip("-.")[:60]))
        same = sum(other == name or other.rpartition("~")[0] == name for other in names)
        names.append(f"{name}~{same + 1}" if same else name)
    return names
