"""Closer Look: how fine-tuning changes the representation space of a language encoder.

>>> import closerlook
>>> spaces = closerlook.extract("bert-tiny", "toy-pos", layers="last")  # doctest: +SKIP
>>> spaces[0].X.shape, spaces[0].provenance.title()  # doctest: +SKIP
((9090, 128), 'bert-tiny · toy-pos/train · layer 2 · mean')
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from closerlook.errors import CloserLookError
from closerlook.version import __version__

if TYPE_CHECKING:
    from closerlook.encoders.encoder import Encoder
    from closerlook.geometry import cluster
    from closerlook.probes.direct import DirectProbe
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

__all__ = [
    "CloserLookError",
    "DirectProbe",
    "Encoder",
    "Space",
    "Store",
    "Task",
    "__version__",
    "cluster",
    "extract",
    "list_tasks",
    "load_results",
    "load_task",
    "read_task",
    "run_study",
    "tune",
]

_HOME = {
    "DirectProbe": "probes.direct",
    "Encoder": "encoders.encoder",
    "Space": "representations.space",
    "Store": "representations.store",
    "Task": "tasks.task",
    "cluster": "geometry",
    "extract": "representations.extract",
    "list_tasks": "tasks.catalogue",
    "load_results": "study.results",
    "load_task": "tasks",
    "read_task": "tasks.readers",
    "run_study": "study.study",
    "tune": "tuning",
}


def __getattr__(name: str) -> Any:
    """A public name, imported when first asked for: `import closerlook` stays instant and never loads torch."""
    if name not in _HOME:
        raise AttributeError(f"module 'closerlook' has no attribute {name!r}")
    return getattr(import_module(f"closerlook.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
