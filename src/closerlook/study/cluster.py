"""`Cluster`: how to reach a Dask cluster, and how long to wait for workers that disappear."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from closerlook.errors import InputError, WorkError

if TYPE_CHECKING:
    from distributed import Client

WORKER_TIMEOUT = 300.0
"""Seconds to wait for a worker that can run a waiting cell, after the last one has disappeared."""


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster that is already running.

    scheduler: its address, such as tcp://host:8786 or, if it uses TLS, tls://host:8786. tls_ca: the file with the
    certificate of the authority that signed all certificates of the cluster. tls_cert, tls_key: the files with the own
    certificate and its key; the key may be in tls_cert as well. worker_timeout: the seconds after which a study stops
    waiting for workers that have disappeared.
    """

    scheduler: str
    tls_ca: str | Path | None = None
    tls_cert: str | Path | None = None
    tls_key: str | Path | None = None
    worker_timeout: float = WORKER_TIMEOUT

    def __post_init__(self) -> None:
        files = {"--tls-ca": self.tls_ca, "--tls-cert": self.tls_cert, "--tls-key": self.tls_key}
        given = {option: os.fspath(file) for option, file in files.items() if file is not None}
        is_tls = self.scheduler.startswith("tls://")
        if given and not is_tls:
            raise InputError(
                f"{next(iter(given))} given for the scheduler {self.scheduler}; expected an address with tls://"
            )
        missing = [option for option in ("--tls-ca", "--tls-cert") if option not in given]
        if is_tls and missing:
            raise InputError(f"the scheduler {self.scheduler} uses TLS; give {' and '.join(missing)} as well")
        for option, file in given.items():
            if not os.access(file, os.R_OK) or not Path(file).is_file():
                raise InputError(f"{option} {file} cannot be read; expected a file in PEM format")
        if not self.worker_timeout > 0:
            raise InputError(f"--worker-timeout is {self.worker_timeout:g}; expected a number of seconds above 0")

    def connect(self) -> Client:
        """A client of the cluster; raises WorkError if no scheduler answers."""
        try:
            from distributed import Client, Security
        except ImportError:
            raise InputError("engine dask needs the package distributed; pip install closerlook[cluster]") from None
        security = None
        if self.tls_ca is not None and self.tls_cert is not None:
            security = Security(
                require_encryption=True,
                tls_ca_file=os.fspath(self.tls_ca),
                tls_client_cert=os.fspath(self.tls_cert),
                tls_client_key=None if self.tls_key is None else os.fspath(self.tls_key),
            )
        try:
            return Client(self.scheduler, timeout="20s", set_as_default=False, security=security)
        except (OSError, ValueError, TimeoutError) as error:
            reason = " ".join(str(error).split())
            raise WorkError(f"no Dask scheduler answers at {self.scheduler}: {reason}") from None


def as_cluster(scheduler: str | Cluster | None) -> Cluster | None:
    """The cluster itself, or the one with that address."""
    return Cluster(scheduler) if isinstance(scheduler, str) else scheduler
