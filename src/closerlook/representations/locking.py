"""Lock a file for this process, also on file systems that have no locks, as some network file systems."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import filelock

UNSUPPORTED = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
"""Errors of a file system that has no locks, or whose lock service does not answer."""

log = logging.getLogger("closerlook")


def try_lock(path: Path, consequence: str) -> filelock.BaseFileLock | None:
    """The acquired lock on a file; None, with a warning, if the file system has no locks.

    Raises filelock.Timeout at once if another process has the lock. consequence: for the warning, what follows from
    working without a lock.
    """
    lock = filelock.FileLock(path, timeout=0)
    try:
        lock.acquire()
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        log.warning("the file system of %s has no locks (%s); %s", path.parent, error.strerror, consequence)
        return None
    return lock
