"""The exceptions of Closer Look, and the exit code of each on the command line."""


class CloserLookError(Exception):
    """Base class of all expected errors; the message is one line: what arrived, what was expected, what to do.

    >>> from closerlook import load_task
    >>> try:
    ...     load_task("toy-poss")
    ... except CloserLookError as error:
    ...     print(error)
    task 'toy-poss' is unknown; did you mean toy-pos or toy-dep or toy-role?
    """

    exit_code = 1


class InputError(CloserLookError):
    """The input cannot be used: a file, an option, a name or an array.

    >>> from closerlook import cluster
    >>> try:
    ...     cluster([[0.0], [1.0]], ["a"])
    ... except InputError as error:
    ...     print(error)
    y has shape (1,); expected one label for each of the 2 rows of X
    """

    exit_code = 2


class DamagedFileError(InputError):
    """A file of this library that was truncated or altered: it does not match its checksum or its name.

    >>> from closerlook import Space
    >>> file = Space.from_arrays([[0.0], [1.0]], ["a", "b"]).save("space.safetensors")
    >>> size = file.write_bytes(file.read_bytes()[:-1])
    >>> try:
    ...     Space.load(file)
    ... except DamagedFileError as error:
    ...     print(error)
    space.safetensors is truncated or was altered: it does not match its checksum; make it again
    """


class WorkError(CloserLookError):
    """The input is valid but the work failed: no network, a full disk, not enough memory.

    >>> WorkError("the disk is full; free some space and run it again").exit_code
    1
    """
