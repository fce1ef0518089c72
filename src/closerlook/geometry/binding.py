"""The compiled library as Python functions that check their arrays. Signatures come from `native/engine.h` itself."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from ctypes import POINTER, c_double, c_int, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from closerlook.errors import WorkError

NATIVE = Path(__file__).parent / "native"
LIBRARY = NATIVE / "kernels.so"

Engine = ctypes.PyDLL
"""The loaded library. Of its functions, those that return a Status release the interpreter lock themselves."""

_PLAIN: dict[str, Any] = {"void": None, "int": c_int, "int64_t": c_int64, "double": c_double}
_ARRAYS: dict[str, type[np.generic]] = {
    "double": np.float64,
    "float": np.float32,
    "int64_t": np.int64,
    "int": np.intc,
    "short": np.int16,
    "signed char": np.int8,
}
_HOOKS = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_CheckSignals")


class Array:
    """The type of a parameter that is an array; ctypes calls `from_param` with the argument.

    An array must have the type that the header names, in this machine's byte order, in one piece, row by row; if the
    engine writes to it, it must be writable. None is NULL, for parameters that the header calls OPTIONAL.
    """

    def __init__(self, name: str, kind: type[np.generic], *, writable: bool, optional: bool) -> None:
        self.name, self.dtype, self.writable, self.optional = name, np.dtype(kind), writable, optional

    def from_param(self, value: object) -> c_void_p | None:
        """The address of the array's numbers; TypeError if the engine must not use them."""
        if value is None and self.optional:
            return None
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{self.name} is {type(value).__name__}; expected an array of {self.dtype}")
        if value.dtype != self.dtype:
            raise TypeError(f"{self.name} is an array of {value.dtype}; expected {self.dtype} in native byte order")
        if not value.flags.c_contiguous or not value.flags.aligned:
            raise TypeError(f"{self.name} is not contiguous and aligned; expected numpy.ascontiguousarray of it")
        if self.writable and not value.flags.writeable:
            raise TypeError(f"{self.name} is read-only; the engine writes to it")
        return c_void_p(value.ctypes.data)


class Header:
    """The declarations of `engine.h`: named numbers, structs of whole numbers, and functions."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"/\*.*?\*/|^\s*#.*?$", "", text, flags=re.DOTALL | re.MULTILINE)
        self.constants = {
            name: int(value)
            for body in re.findall(r"enum \{(.*?)\}", text, re.DOTALL)
            for name, value in re.findall(r"(\w+) = (\d+)", body)
        }
        self.structs = {
            name: type(
                name, (ctypes.Structure,), {"_fields_": [(field, c_int64) for field in re.findall(r"\w+", body)]}
            )
            for body, name in re.findall(r"typedef struct \{\s*int64_t (.*?);\s*\} (\w+);", text, re.DOTALL)
        }
        self.functions = {
            name: (self._result(result), [self._parameter(part) for part in arguments.split(",") if part != "void"])
            for result, name, arguments in re.findall(r"ENGINE (\w+) (\w+)\((.*?)\);", text, re.DOTALL)
        }

    def _result(self, kind: str) -> Any:
        return _raise_for if kind == "Status" else self.structs.get(kind) or _PLAIN[kind]

    def _parameter(self, text: str) -> Any:
        pattern = r"(?P<optional>OPTIONAL )?(?P<const>const )?(?P<kind>signed char|\w+) (?P<stars>\**)(?P<name>\w+)"
        match = re.fullmatch(pattern, " ".join(text.split()))
        if match is None:
            raise ValueError(f"engine.h has a parameter '{text.strip()}' that binding.py cannot read")
        kind, stars = match["kind"], match["stars"]
        if not stars:
            return _PLAIN[kind]
        if kind in _ARRAYS and stars == "*":
            return Array(
                match["name"], _ARRAYS[kind], writable=not match["const"], optional=match["optional"] is not None
            )
        return c_void_p if stars == "*" else POINTER(c_void_p)


def _raise_for(status: int) -> None:
    """Raise MemoryError if the engine ran out of memory; after a signal, ctypes raises what its handler raised."""
    if status == header().constants["OUT_OF_MEMORY"]:
        raise MemoryError("the geometry engine could not allocate memory; use fewer points or dimensions")


@cache
def header() -> Header:
    """The declarations of the engine."""
    return Header((NATIVE / "engine.h").read_text(encoding="utf-8"))


def load(path: Path) -> Engine:
    """The library at this path; WorkError if it cannot be loaded."""
    try:
        engine = ctypes.PyDLL(str(path))
    except OSError as error:
        raise WorkError(
            f"the compiled part of closerlook cannot be loaded ({error}); install the package again, with a C compiler "
            "on the machine"
        ) from None
    for name, (result, parameters) in header().functions.items():
        function: Callable[..., Any] = getattr(engine, name)
        function.restype, function.argtypes = result, parameters  # type: ignore[attr-defined]
    engine.engine_attach(*(ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p) for name in _HOOKS))
    return engine
