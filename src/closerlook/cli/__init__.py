"""The command line `closerlook COMMAND`. Commands import numpy, torch and pandas only when they run."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, cast

import typer

from closerlook.cli import (
    classify,
    combine,
    compare,
    compare_studies,
    data,
    describe,
    diff,
    explore,
    extract,
    measures,
    probe,
    rank,
    report,
    show,
    store,
    study,
    tasks,
    tune,
)
from closerlook.cli.registration import (
    CONTINUE,
    NO_CHANGES,
    NO_RESULTS,
    START_OVER,
    Debug,
    Interrupted,
    Session,
    add_command,
    add_group,
)
from closerlook.errors import CloserLookError
from closerlook.escaping import show_text
from closerlook.progress import bars_off
from closerlook.version import __version__

UsageError = cast("type[Exception]", typer.BadParameter.__base__)
"""The exception that typer raises for a wrong option or argument, whether or not typer bundles its own click."""

app = typer.Typer(
    name="closerlook",
    help="See how fine-tuning changes the representation space of a language encoder.",
    epilog="Example: closerlook extract --encoder bert-tiny --task toy-pos --layers last --out vectors",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
add_command(app, "extract", extract.extract, example=extract.EXAMPLE, after_interrupt=CONTINUE)
add_command(app, "study", study.study, example=study.EXAMPLE, after_interrupt=CONTINUE)
add_command(app, "report", report.report, example=report.EXAMPLE, after_interrupt=START_OVER)
add_command(app, "combine", combine.combine, example=combine.EXAMPLE, after_interrupt=START_OVER)
add_command(app, "show", show.show, example=show.EXAMPLE, after_interrupt=NO_CHANGES)
add_command(
    app,
    "compare-studies",
    compare_studies.compare_studies,
    example=compare_studies.EXAMPLE,
    after_interrupt=START_OVER,
)
add_command(app, "tune", tune.tune, example=tune.EXAMPLE, after_interrupt=CONTINUE)
add_command(app, "probe", probe.probe, example=probe.EXAMPLE, after_interrupt=NO_RESULTS)
add_command(app, "classify", classify.classify, example=classify.EXAMPLE, after_interrupt=NO_RESULTS)
add_command(app, "compare", compare.compare, example=compare.EXAMPLE, after_interrupt=NO_RESULTS)
add_command(app, "describe", describe.describe, example=describe.EXAMPLE, after_interrupt=NO_RESULTS)
add_command(app, "diff", diff.diff, example=diff.EXAMPLE, after_interrupt=NO_RESULTS)
add_command(app, "explore", explore.explore, example=explore.EXAMPLE, after_interrupt=NO_RESULTS)
add_command(app, "rank", rank.rank, example=rank.EXAMPLE, after_interrupt=NO_RESULTS)
add_command(app, "tasks", tasks.tasks, example=tasks.EXAMPLE, after_interrupt=NO_CHANGES)
add_command(app, "measures", measures.measures, example=measures.EXAMPLE, after_interrupt=NO_CHANGES)
add_group(app, "data", data.app, description=data.DESCRIPTION, example=data.EXAMPLE)
add_group(app, "store", store.app, description=store.DESCRIPTION, example=store.EXAMPLE)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Debug = False,
) -> None:
    """See how fine-tuning changes the representation space of a language encoder."""
    if version:
        typer.echo(f"closerlook {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 success, 1 the work failed, 2 bad input, 130 interrupted."""
    session = Session()
    try:
        with bars_off():
            result = app(arguments, prog_name="closerlook", standalone_mode=False, obj=session)
        code = result if isinstance(result, int) else 0
        if code == 130:
            raise KeyboardInterrupt  # typer turns Ctrl-C outside of a command into this exit code
        sys.stdout.flush()
    except Interrupted as interruption:
        code = _fail(f"interrupted; {interruption}", 130)
    except (KeyboardInterrupt, typer.Abort):
        code = _fail("interrupted before the command started", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader closed the pipe, as `| head` does
        code = 0
    except CloserLookError as error:
        code = _fail(str(error), error.exit_code, debug=session.debug)
    except UsageError as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        code = _fail(f"{message} See closerlook --help", 2, debug=session.debug) if message else 2
    except OSError as error:
        code = _fail(f"{error.filename or 'a file'}: {error.strerror or error}", 1, debug=session.debug)
    except MemoryError:
        advice = "try fewer tasks or layers at a time, or a smaller --batch-tokens"
        code = _fail(f"out of memory; {advice}", 1, debug=session.debug)
    except Exception as error:  # a bug here or in a library: one line, and how to see more
        message = f"unexpected {type(error).__name__}: {error}; run again with --debug to see where"
        code = _fail(message, 1, debug=session.debug)
    sys.exit(code)


def _fail(message: str, code: int, *, debug: bool = False) -> int:
    """Print an error on one line of standard error, after its traceback if `debug`; return the exit code."""
    if debug:
        traceback.print_exc()
    sys.stderr.write(f"closerlook: {show_text(' '.join(message.split()))}\n")
    return code
