"""Prompt templates: a text that is put around every text of a task before it is tokenized."""

from __future__ import annotations

from typing import NamedTuple

from closerlook.errors import InputError

PLACE = "{text}"


class Template(NamedTuple):
    """What precedes and what follows each text."""

    before: str = ""
    after: str = ""


def parse_template(template: str | None) -> Template:
    """The two parts of a template such as 'Question: {text}'; None is the template that adds nothing.

    >>> parse_template("Question: {text}\\nAnswer:")
    Template(before='Question: ', after='\\nAnswer:')
    """
    if template is None:
        return Template()
    if not isinstance(template, str) or template.count(PLACE) != 1:
        raise InputError(f"template {template!r} given; expected a text with {PLACE} once, at the place of the text")
    before, _, after = template.partition(PLACE)
    return Template(before, after)
