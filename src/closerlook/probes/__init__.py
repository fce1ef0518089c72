"""Probes: what a space tells about its labels, as scikit-learn estimators."""

from closerlook.probes.direct import DirectProbe

__all__ = ["DirectProbe"]
