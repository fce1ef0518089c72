"""The one root exception and its kinds; each kind knows its exit code on the command line."""


class CloserLookError(Exception):
    """Anything Closer Look refuses or fails at, in one line: what arrived, what was expected, what to do."""

    exit_code = 1


class InputError(CloserLookError):
    """The user gave something that cannot be used: a file, an option, a name, an array."""

    exit_code = 2


class WorkError(CloserLookError):
    """The request was sound but the work failed: no network, a full disk, a model that would not load."""
