"""Print docs/paper/note.md as a PDF, with pandoc and Typst.

python docs/print_note.py        # writes docs/paper/note.pdf; `make paper` calls it
"""

from __future__ import annotations

import re
from pathlib import Path

import pypandoc  # this and typst: the extra `paper`
import typst

PAPER = Path(__file__).parent / "paper"
LINK_TO_PAGE = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:|#)[^)]+\)")
"""A link to another page of the documentation, but not an image, an address or a heading."""


def to_typst(note: str) -> str:
    """The note as a Typst document; links to other pages of the documentation, which the PDF lacks, become text."""
    options = ["--template", str(PAPER / "layout.typ"), "--shift-heading-level-by", "-1", "--columns", "10000"]
    text = LINK_TO_PAGE.sub(r"\1", note).replace("](../", "](/")  # Typst reads images from the folder of its root
    return str(pypandoc.convert_text(text, "typst", "gfm+smart", extra_args=options))


def compile_note(note: str, form: str) -> bytes | list[bytes]:
    """The note as `pdf`, or each of its pages as `png` (a single page is not in a list)."""
    found: bytes | list[bytes] = typst.compile(to_typst(note).encode(), root=str(PAPER.parent), format=form)
    return found


def main() -> None:
    """Write the PDF."""
    pdf = compile_note((PAPER / "note.md").read_text(encoding="utf-8"), "pdf")
    if not isinstance(pdf, bytes):
        raise TypeError(f"Typst returned {type(pdf).__name__} for a PDF; bytes were expected")
    (PAPER / "note.pdf").write_bytes(pdf)
    print("docs/paper/note.pdf")  # noqa: T201  (a command)


if __name__ == "__main__":
    main()
