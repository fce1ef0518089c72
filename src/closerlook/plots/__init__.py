"""Charts of spaces, clusters and distances with altair; results have methods that draw them, such as `Space.plot`."""

from closerlook.plots.style import theme

__all__ = ["theme"]
