"""Probes of a labelled space, as scikit-learn estimators and as plain functions; imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from closerlook.probes.classifier import ClassifierProbe
    from closerlook.probes.control import CodeLength, Selectivity, control_labels, measure_selectivity, online_code
    from closerlook.probes.direct import DirectProbe
    from closerlook.probes.grid import GRID, ProbeResult, probe_grid, probe_grids
    from closerlook.probes.training import ProbeTraining

__all__ = [
    "GRID",
    "ClassifierProbe",
    "CodeLength",
    "DirectProbe",
    "ProbeResult",
    "ProbeTraining",
    "Selectivity",
    "control_labels",
    "measure_selectivity",
    "online_code",
    "probe_grid",
    "probe_grids",
]

_MODULES = {
    "classifier": ("ClassifierProbe",),
    "control": ("CodeLength", "Selectivity", "control_labels", "measure_selectivity", "online_code"),
    "direct": ("DirectProbe",),
    "grid": ("GRID", "ProbeResult", "probe_grid", "probe_grids"),
    "training": ("ProbeTraining",),
}


def __getattr__(name: str) -> object:
    """Import a name when it is first used, so that checking a plan does not import scikit-learn."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"closerlook.probes.{module}"), name)
    raise AttributeError(f"module 'closerlook.probes' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The names of the module, also those that are not imported yet: for completion and for the documentation."""
    return sorted({*globals(), *__all__})
