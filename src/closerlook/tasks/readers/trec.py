"""TREC question classification (https://cogcomp.seas.upenn.edu/Data/QA/QC/): `LABEL:sublabel question` lines."""

from __future__ import annotations

from pathlib import Path

from closerlook.errors import InputError
from closerlook.tasks.readers.source import Options, Reading, numbered_lines, read_bytes, short_repr
from closerlook.tasks.task import Annotated


def read(path: Path, split: str, options: Options) -> Reading:
    """The questions of a file, each with its fine label (default, such as 'NUM:dist') or its coarse label ('NUM')."""
    label = options.label or "fine"
    if label not in {"fine", "coarse"}:
        raise InputError(f"label {label!r} is unknown in TREC files; expected fine or coarse")
    questions: list[Annotated] = []
    lines: list[int] = []
    for number, line in numbered_lines(_decoded(read_bytes(path))):
        if not line.strip():
            continue
        fine, _, question = line.strip().partition(" ")
        coarse, _, sublabel = fine.partition(":")
        if not (coarse and sublabel and question):
            raise InputError(f"{path}, line {number}: {short_repr(line)}; expected 'LABEL:sublabel question'")
        questions.append((question.strip(), [((), fine if label == "fine" else coarse)]))
        lines.append(number)
    return Reading("sentence", {split: questions}, {split: lines})


def _decoded(data: bytes) -> str:
    """The text, decoded as UTF-8, else Latin-1: the official train file has a wrong byte 0xf0 ('sister\\xf0city')."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")
