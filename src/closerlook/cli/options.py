"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

HOW = "Computation"
"""Title of the panel of the help text that lists technical options."""

EncoderName = Annotated[
    str,
    Option(
        "--encoder",
        "-e",
        help="Encoder: folder, Hugging Face ID, ID@REVISION, folder of a PEFT adapter, or random:ID (the "
        "same architecture with random weights).",
    ),
]
Data = Annotated[
    Path | None,
    Option(
        help="Folder with the corpora of predefined tasks, as `closerlook data get` downloads them.",
        envvar="CLOSERLOOK_DATA",
        show_envvar=True,
    ),
]
TestShare = Annotated[
    float | None,
    Option(
        help="Share of the examples in train that becomes the test split of a task that has none. (default: 0.2 in "
        "studies, otherwise no test split is made)",
    ),
]
StoreFolder = Annotated[
    Path | None, Option(help="Folder in which the vectors are cached. (default: user cache)", envvar="CLOSERLOOK_STORE")
]
Window = Annotated[
    int | None,
    Option(
        help="Tokens that the encoder reads at a time; longer texts are read in overlapping windows. "
        "(default: the encoder's limit)",
        rich_help_panel=HOW,
    ),
]
MaxExamples = Annotated[
    int, Option(min=10, help="Examples of each split; larger splits are sampled.", rich_help_panel=HOW)
]
Device = Annotated[str, Option(help="Device: auto, cuda, mps, cpu.", rich_help_panel=HOW)]
AllowPickle = Annotated[
    bool, Option("--allow-pickle", help="Read pickle checkpoints, which can run code.", rich_help_panel=HOW)
]
Resume = Annotated[
    bool,
    Option(
        "--resume/--no-resume",
        help="Save the state of a fine-tuning in the store from time to time, and continue an interrupted one from it. "
        "The state takes about three times the disk space of the weights until the fine-tuning ends.",
        rich_help_panel=HOW,
    ),
]
Pool = Annotated[
    str,
    Option(
        help="How subword vectors become one vector. Words: mean, first or last; sentences: cls, mean, weighted_mean "
        "or last (the last token), with +special to include special tokens in a mean and +normalized for vectors of "
        "length 1. auto: mean for words; for sentences what the files of the encoder state, else cls.",
    ),
]
Prompt = Annotated[
    str | None,
    Option(
        "--template",
        help=r"A text around every text, with {text} at its place, such as 'Question: {text}\nAnswer:'; \n is a new "
        "line.",
    ),
]
TrustRemoteCode = Annotated[
    bool, Option("--trust-remote-code", help="Run Python code from the repository of the encoder.", rich_help_panel=HOW)
]


def prompt_template(given: str | None) -> str | None:
    r"""The template of `--template`, in which `\n` and `\t`, as typed in a shell, are a new line and a tab.

    >>> prompt_template(r"Question: {text}\nAnswer:")
    'Question: {text}\nAnswer:'
    """
    return None if given is None else given.replace(r"\n", "\n").replace(r"\t", "\t")


def split_names(given: list[str] | None, default: str) -> str | list[str]:
    """The splits that `--splits` requests: 'all', or the names in its values, which may hold several with commas.

    >>> split_names(["train,test", "dev"], "all")
    ['train', 'test', 'dev']
    """
    names = [name.strip() for value in given or [default] for name in value.split(",")]
    return "all" if "all" in names else names
