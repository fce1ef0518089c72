"""Closer Look: how fine-tuning changes the representation space of a language encoder.

>>> import closerlook
>>> spaces = closerlook.extract("bert-tiny", "toy-question", layers="last")
>>> spaces[0].X.shape, spaces[0].provenance.title()
((381, 128), 'bert-tiny · toy-question/train · layer 2 · cls')
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from closerlook.errors import CloserLookError, InputError
from closerlook.version import __version__

if TYPE_CHECKING:
    from closerlook.differences import diff
    from closerlook.encoders.encoder import Encoder
    from closerlook.explorer import explore
    from closerlook.geometry import cluster, cluster_distances, label_distances, spatial_similarity
    from closerlook.probes.classifier import ClassifierProbe
    from closerlook.probes.direct import DirectProbe
    from closerlook.probes.grid import probe_grid
    from closerlook.progress import show_progress
    from closerlook.ranking import rank
    from closerlook.report import write_report
    from closerlook.report.plotting import plot_study
    from closerlook.representations.extract import extract
    from closerlook.representations.space import Space
    from closerlook.representations.store import Store
    from closerlook.study.results import load_results
    from closerlook.study.study import run_study
    from closerlook.tasks import load_task
    from closerlook.tasks.catalogue import list_tasks
    from closerlook.tasks.readers import read_task
    from closerlook.tasks.task import Task
    from closerlook.tuning import tune
    from closerlook.tuning.callback import GeometryCallback
    from closerlook.tuning.settings import TuningSettings

__all__ = [
    "ClassifierProbe",
    "CloserLookError",
    "DirectProbe",
    "Encoder",
    "GeometryCallback",
    "InputError",
    "Space",
    "Store",
    "Task",
    "TuningSettings",
    "__version__",
    "cluster",
    "cluster_distances",
    "diff",
    "explore",
    "extract",
    "label_distances",
    "list_tasks",
    "load_results",
    "load_task",
    "plot_study",
    "probe_grid",
    "rank",
    "read_task",
    "run_study",
    "show_progress",
    "spatial_similarity",
    "tune",
    "write_report",
]

_MODULES = {
    "ClassifierProbe": "probes.classifier",
    "DirectProbe": "probes.direct",
    "Encoder": "encoders.encoder",
    "GeometryCallback": "tuning.callback",
    "Space": "representations.space",
    "Store": "representations.store",
    "Task": "tasks.task",
    "TuningSettings": "tuning.settings",
    "cluster": "geometry",
    "cluster_distances": "geometry",
    "diff": "differences",
    "explore": "explorer",
    "extract": "representations.extract",
    "label_distances": "geometry",
    "list_tasks": "tasks.catalogue",
    "load_results": "study.results",
    "load_task": "tasks",
    "plot_study": "report.plotting",
    "probe_grid": "probes.grid",
    "rank": "ranking",
    "read_task": "tasks.readers",
    "run_study": "study.study",
    "show_progress": "progress",
    "spatial_similarity": "geometry",
    "tune": "tuning",
    "write_report": "report",
}
"""The module of each public name that is imported when it is first used."""


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import closerlook` is fast and does not load torch."""
    if name not in _MODULES:
        raise AttributeError(f"module 'closerlook' has no attribute {name!r}")
    return getattr(import_module(f"closerlook.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
