"""What a study found, for people: one page that opens anywhere, figures as files, and the same tables as text."""

from closerlook.report.writing import write_comparison, write_report

__all__ = ["write_comparison", "write_report"]
