"""The figures of a study: one function for each kind, from the results to charts with their data.

`closerlook.report.outline` lists the kinds; a figure that is not listed there is not drawn.
"""

from closerlook.report.figures.figure import Figure, Toggle

__all__ = ["Figure", "Toggle"]
