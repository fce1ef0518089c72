"""Labelled spans that are given by characters of a text, as spaCy, Prodigy, doccano and Label Studio export them."""

from __future__ import annotations

from typing import Any

from closerlook.errors import InputError
from closerlook.tasks.readers.source import short_repr
from closerlook.tasks.readers.values import label_name
from closerlook.tasks.task import Annotated
from closerlook.texts import RunningText

FORMS = '{"start": 0, "end": 5, "label": "..."} or [0, 5, "..."]'


def find_spans(text: str, items: list[Any], key: str | None) -> Annotated:
    """The text with its labelled spans, in the order of their characters; spaces at the ends of a span are left out.

    key: the key of the label, for spans that are objects; by default `label`, or `labels` with one label.
    """
    spans = sorted(span for item in items if (span := _span(text, item, key)) is not None)
    places = tuple((start, stop) for start, stop, _ in spans)
    return RunningText(text, places), [((i, i + 1), label) for i, (_, _, label) in enumerate(spans)]


def _span(text: str, item: Any, key: str | None) -> tuple[int, int, str] | None:
    """The first character of a span, one past its last, and its label; None without a label."""
    quoted = None
    match item:
        case {"start": start, "end": end}:
            label = _label(item, key)
            quoted = item.get("text")
        case [start, end, name] if key is None:
            label = label_name(name)
        case _:
            raise InputError(f"invalid span {short_repr(item)}; expected {FORMS}")
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise InputError(f"span {start!r} to {end!r} is not in the text, which has characters 0 to {len(text)}")
    covered = text[start:end]
    if isinstance(quoted, str) and quoted.strip() != covered.strip():
        raise InputError(
            f"span {start} to {end} is {short_repr(covered)} in the text, but the span says {short_repr(quoted)}; "
            "expected offsets that count Unicode characters"
        )
    if not covered.strip():
        raise InputError(f"span {start} to {end} has only spaces; expected at least one other character")
    start += len(covered) - len(covered.lstrip())
    return None if label is None else (start, start + len(covered.strip()), label)


def _label(item: dict[str, Any], key: str | None) -> str | None:
    name = key or next((name for name in ("label", "labels") if name in item), None)
    if name is None or name not in item:
        keys = ", ".join(map(short_repr, item))
        raise InputError(f"a span has no key {name or 'label'!r}; its keys are {keys}: name its label with label=")
    value = item[name]
    if isinstance(value, list) and len(value) > 1:
        raise InputError(f"{len(value)} labels {short_repr(value)} of one span; expected one")
    return label_name(value[0] if value else None) if isinstance(value, list) else label_name(value)
