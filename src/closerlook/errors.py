"""The exceptions of Closer Look, and the exit code of each on the command line."""


class CloserLookError(Exception):
    """Base class of all expected errors; the message is one line: what arrived, what was expected, what to do."""

    exit_code = 1


class InputError(CloserLookError):
    """The input cannot be used: a file, an option, a name or an array."""

    exit_code = 2


class DamagedFileError(InputError):
    """A file of this library that was truncated or altered: it does not match its checksum or its name."""


class WorkError(CloserLookError):
    """The input is valid but the work failed: no network, a full disk, not enough memory."""
