"""Options that mean the same wherever they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

HOW = "How it is computed"
"""The panel of the help text in which they stand."""

EncoderName = Annotated[
    str, Option("--encoder", "-e", help="Folder, hub id, id@revision, PEFT adapter folder, or random:ID.")
]
Data = Annotated[
    Path | None, Option(help="Folder with the corpora of named tasks.", envvar="CLOSERLOOK_DATA", show_envvar=True)
]
StoreFolder = Annotated[
    Path | None, Option(help="Where vectors are kept. (default: user cache)", envvar="CLOSERLOOK_STORE")
]
Window = Annotated[int | None, Option(help="Tokens read at a time. (default: the encoder's)", rich_help_panel=HOW)]
AllowPickle = Annotated[
    bool, Option("--allow-pickle", help="Read pickle checkpoints, which can run code.", rich_help_panel=HOW)
]
TrustRemoteCode = Annotated[
    bool, Option("--trust-remote-code", help="Run code that comes with the encoder.", rich_help_panel=HOW)
]


def split_names(given: list[str] | None, default: str) -> str | list[str]:
    """The splits that `--splits` requests: 'all', or the names in its values, which may hold several with commas.

    >>> split_names(["train,test", "dev"], "all")
    ['train', 'test', 'dev']
    """
    names = [name.strip() for value in given or [default] for name in value.split(",")]
    return "all" if "all" in names else names
