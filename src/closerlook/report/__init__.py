"""The report of a study: one HTML page that works offline, figures as files, and the tables as text."""

from closerlook.report.writing import write_comparison, write_report

__all__ = ["write_comparison", "write_report"]
