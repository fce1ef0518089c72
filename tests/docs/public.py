"""The public names of the package: those in `__all__` of its packages, and those that the pages of docs/api list."""

import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import closerlook

API = Path(__file__).parents[2] / "docs" / "api"

DIRECTIVE = re.compile(r"^\.\. auto(module|class|function|exception):: ([\w.]+)\n((?:   :.*\n)*)", re.MULTILINE)
"""What a page of the reference shows: a module with its names, or one name; then the options, indented."""


def packages() -> list[str]:
    """The package and its subpackages that have `__all__`."""
    parts = [part.name for part in pkgutil.iter_modules(closerlook.__path__) if part.ispkg]
    found = ["closerlook", *(f"closerlook.{part}" for part in parts)]
    return [name for name in found if hasattr(import_module(name), "__all__")]


def public_names() -> dict[str, object]:
    """All public classes and functions by their path, each once; constants and type aliases are left out."""
    paths = [f"{package}.{name}" for package in packages() for name in import_module(package).__all__]
    paths += [path for page in sorted(API.glob("*.md")) for path in _listed(page.read_text(encoding="utf-8"))]
    found: dict[int, tuple[str, object]] = {}
    for path in paths:
        module, _, name = path.rpartition(".")
        named = getattr(import_module(module), name)
        if inspect.isclass(named) or inspect.isroutine(named):
            found.setdefault(id(named), (path, named))
    return dict(sorted(found.values()))


def _listed(page: str) -> Iterator[str]:
    for kind, path, options in DIRECTIVE.findall(page):
        if kind != "module":
            yield path
        elif ":no-members:" not in options:
            yield from (f"{path}.{name}" for name in _names(import_module(path)))


def _names(module: ModuleType) -> list[str]:
    """The names in `__all__`, or else those that the module defines."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return list(getattr(module, "__all__", [name for name in own if not name.startswith("_")]))
