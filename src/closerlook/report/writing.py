"""Writes the report: the page, and the figures as files."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from closerlook.errors import InputError
from closerlook.report.comparison import compare_page
from closerlook.report.figures import Figure
from closerlook.report.outline import draw_figures
from closerlook.report.page import make_page
from closerlook.representations.atomic import atomic_write
from closerlook.study.findings import judge_results
from closerlook.study.readings import Manifest, Results, index_results
from closerlook.study.results import MANIFEST, load_results

PAGE, FIGURES, DRAWN = "report.html", "figures", ".drawn"
PNG_SCALE = 3.0
"""Pixels per point: about 300 per inch in a column of a paper."""

log = logging.getLogger("closerlook.report")


def write_report(folder: str | Path, *, figures: bool = True) -> Path:
    """Write a study's page to its folder and return its path. figures: also write SVG, PNG, PDF and CSV files."""
    results = load_study(folder)
    drawn = draw_figures(results)
    out = Path(folder).expanduser().absolute()
    out = out if out.is_dir() else out.parent
    with atomic_write(out / PAGE) as stream:
        stream.write(make_page(results, judge_results(results), drawn).encode())
    if figures:
        write_figures(drawn, out / FIGURES)
    return out / PAGE


def write_comparison(first: str | Path, second: str | Path, path: str | Path) -> Path:
    """Write the page that compares two studies to `path`, and return the absolute path."""
    results = [load_study(folder) for folder in (first, second)]
    names = [str(Path(folder).name) for folder in (first, second)]
    out = Path(path).expanduser().absolute()
    with atomic_write(out) as stream:
        stream.write(compare_page(results, names, [draw_figures(study) for study in results]).encode())
    return out


def load_study(folder: str | Path) -> Results:
    """The table of a study, with its manifest if there is one."""
    path = Path(folder).expanduser()
    table = load_results(path)
    folder = path if path.is_dir() else path.parent
    return index_results(table, _read_manifest(folder / MANIFEST))


def _read_manifest(path: Path) -> Manifest:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read: {error}; expected the manifest that a study writes, or none"
        ) from None
    if not isinstance(manifest, dict):
        raise InputError(
            f"{path} contains {type(manifest).__name__}; expected the manifest that a study writes, or none"
        )
    return manifest


# ---- figures ----


def write_figures(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """The paths of the files: each figure as SVG, PNG and PDF, its data as CSV. Files of stale figures are removed."""
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
