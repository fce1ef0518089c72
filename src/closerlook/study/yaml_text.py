"""Parse the YAML of a plan; size, depth and repetition are checked before any value is made."""

from __future__ import annotations

import re
from typing import Any

import yaml

MOST_CHARACTERS = 200_000
MOST_DEPTH = 20
MOST_VALUES = 5_000
"""The largest plan: characters of text, lists within lists, and values, where an alias counts as what it stands for."""

MOST_DIGITS = 40
TEXT_TAG = "tag:yaml.org,2002:str"
DATE_TAG = "tag:yaml.org,2002:timestamp"
NO_CHARACTER = re.compile("[\x00\ud800-\udfff]")
"""NUL and halves of surrogate pairs, which no name of a file can contain."""


def parse_yaml(text: str) -> Any:
    """The value of a YAML text; ValueError, in one line, if it is not YAML or too large. A date is a plain text.

    >>> parse_yaml("{name: weather, seeds: [0, 1]}")
    {'name': 'weather', 'seeds': [0, 1]}
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"it has more than {MOST_CHARACTERS:,} characters")
    try:
        _check_events(text)
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(f"it is not YAML: {_one_line(str(error))}") from None
    except ValueError as error:
        raise ValueError(_one_line(str(error))) from None


def _one_line(text: str) -> str:
    return " ".join(text.split())[:400]


class _Loader(yaml.SafeLoader):
    """Makes plain values: texts, whole numbers of at most MOST_DIGITS digits, other numbers, lists and dictionaries."""

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        if len(node.value) > MOST_DIGITS:
            raise ValueError(f"it has a number of {len(node.value):,} digits; expected at most {MOST_DIGITS}")
        return int(super().construct_yaml_int(node))


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != DATE_TAG]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _check_events(text: str) -> None:
    """Raise ValueError if the text has too many values or is nested too deeply. It is read as a stream of events."""
    sizes: dict[str, int | None] = {}  # values under each anchor; None: within the anchor itself
    open_parts: list[tuple[str | None, int]] = [(None, 0)]  # the anchor and the number of values of each open part
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        count = 0
        if isinstance(event, yaml.ScalarEvent):
            _check_scalar(event)
            count = 1
            if event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.AliasEvent):
            known = sizes.get(str(event.anchor), 0)  # an unknown alias is an error of YAML, which the loader reports
            if known is None:
                raise ValueError(f"*{event.anchor} contains itself")
            count = known
        elif isinstance(event, yaml.CollectionStartEvent):
            _check_tag(event)
            if event.anchor:
                sizes[event.anchor] = None
            open_parts.append((event.anchor, 1))
            if len(open_parts) > MOST_DEPTH:
                raise ValueError(f"it has more than {MOST_DEPTH} lists within lists")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, count = open_parts.pop()
            if anchor:
                sizes[anchor] = count
        within, total = open_parts[-1]
        open_parts[-1] = (within, total + count)
        if total + count > MOST_VALUES:
            raise ValueError(f"it has more than {MOST_VALUES:,} values, with aliases (*) written out")


def _check_tag(event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
    if event.tag not in {None, "!", TEXT_TAG}:
        raise ValueError(f"it has the type {event.tag[:100]!a}; expected plain values without ! in front")


def _check_scalar(event: yaml.ScalarEvent) -> None:
    _check_tag(event)
    found = NO_CHARACTER.search(event.value)
    if found:
        raise ValueError(f"it contains the character {found[0]!a}, which no name can have")
