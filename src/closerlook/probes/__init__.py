"""Probes of a labelled space, as scikit-learn estimators and as plain functions."""

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
