"""How commands join the command line: their help text, `--debug`, and the message after Ctrl-C."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated

from typer import Context, Option, Typer, echo

CONTINUE = "run the same command again to continue where it stopped"
START_OVER = "run the same command again to start over"
NO_RESULTS = "no results were saved"
NO_CHANGES = "nothing was changed"

Command = Callable[..., None]


@dataclass
class Session:
    """State of one call of the command line, shared by its nested commands."""

    debug: bool = False


class Interrupted(Exception):  # noqa: N818 - no error, and named like KeyboardInterrupt
    """Raised when Ctrl-C stops a command; the message says what the user can do next."""


def _remember_debug(context: Context, value: bool) -> bool:
    if value and isinstance(context.obj, Session):
        context.obj.debug = True
    return value


Debug = Annotated[
    bool,
    Option("--debug", help="Show the traceback of an error.", is_eager=True, callback=_remember_debug),
]


def add_command(app: Typer, name: str, function: Command, *, example: str, after_interrupt: str) -> None:
    """Add a command to `app`. It also accepts `--debug`; Ctrl-C raises `Interrupted` with `after_interrupt`."""

    @wraps(function)
    def command(*arguments: object, debug: bool = False, **options: object) -> None:
        try:
            function(*arguments, **options)
        except KeyboardInterrupt:
            raise Interrupted(after_interrupt) from None

    _accept_debug(command, function)
    app.command(name=name, epilog=example)(command)


def add_group(app: Typer, name: str, group: Typer, *, description: str, example: str) -> None:
    """Add a group of commands to `app`. Without a command the group prints its help."""

    def show_help(context: Context, debug: Debug = False) -> None:
        if context.invoked_subcommand is None:
            echo(context.get_help())

    app.add_typer(group, name=name, callback=show_help, help=description, epilog=example, invoke_without_command=True)


def _accept_debug(command: Command, function: Command) -> None:
    """Append the option `--debug` to the signature that typer reads."""
    signature = inspect.signature(function, eval_str=True)
    debug = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug)
    command.__signature__ = signature.replace(parameters=[*signature.parameters.values(), debug])  # type: ignore[attr-defined]
    command.__annotations__ = {**function.__annotations__, "debug": Debug}
