"""The command line: `closerlook COMMAND`; each command's module is loaded only when it runs."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, cast

import typer

from closerlook.cli import (
    classify,
    compare,
    compare_studies,
    data,
    describe,
    extract,
    probe,
    report,
    show,
    store,
    study,
    tasks,
    tune,
)
from closerlook.errors import CloserLookError
from closerlook.version import __version__

UsageError = cast("type[Exception]", typer.BadParameter.__base__)
"""What typer raises for a wrong option or argument, whichever version of click it stands on."""

app = typer.Typer(
    name="closerlook",
    help="See how fine-tuning changes the representation space of a language encoder.",
    epilog="Example: closerlook extract --encoder bert-tiny --task toy-pos --layers last --out vectors",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command(name="extract", epilog=extract.EXAMPLE)(extract.extract)
app.command(name="study", epilog=study.EXAMPLE)(study.study)
app.command(name="report", epilog=report.EXAMPLE)(report.report)
app.command(name="show", epilog=show.EXAMPLE)(show.show)
app.command(name="compare-studies", epilog=compare_studies.EXAMPLE)(compare_studies.compare_studies)
app.command(name="tune", epilog=tune.EXAMPLE)(tune.tune)
app.command(name="probe", epilog=probe.EXAMPLE)(probe.probe)
app.command(name="classify", epilog=classify.EXAMPLE)(classify.classify)
app.command(name="compare", epilog=compare.EXAMPLE)(compare.compare)
app.command(name="describe", epilog=describe.EXAMPLE)(describe.describe)
app.command(name="tasks", epilog=tasks.EXAMPLE)(tasks.tasks)
app.add_typer(data.app, name="data")
app.add_typer(store.app, name="store")


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")] = False,
) -> None:
    """See how fine-tuning changes the representation space of a language encoder."""
    if version:
        typer.echo(f"closerlook {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 done, 1 the work failed, 2 bad input, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    try:
        rest = [argument for argument in given if argument != "--debug"]
        code = app(rest, prog_name="closerlook", standalone_mode=False)
        code = code if isinstance(code, int) else 0
        if code == 130:
            raise KeyboardInterrupt  # typer has caught it and says so in this way
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        anew = {"probe", "classify", "compare", "describe"} & set(given)
        after = "nothing was kept" if anew else "the same command goes on where it stopped"
        if "tune" in given:
            after = "the same command starts the fine-tuning anew"
        code = _fail(f"interrupted; {after}", 130, debug=False)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read has enough, as `| head` does
        code = 0
    except CloserLookError as error:
        code = _fail(str(error), error.exit_code, debug)
    except UsageError as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        code = _fail(f"{message} See closerlook --help", 2, debug) if message else 2
    except OSError as error:
        code = _fail(f"{error.filename or 'a file'}: {error.strerror or error}", 1, debug)
    except MemoryError:
        code = _fail("out of memory; try fewer tasks or layers at a time, or a smaller --batch-tokens", 1, debug)
    except Exception as error:  # a bug of ours or of a library: still one line, and the way to see more
        code = _fail(f"unexpected {type(error).__name__}: {error}; run again with --debug to see where", 1, debug)
    sys.exit(code)


def _fail(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    sys.stderr.write(f"closerlook: {' '.join(message.split())}\n")
    return code
