"""What a page holds beyond the paper: against chance, how sure, what can be foreseen, the shape of the spaces."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from closerlook.report import chance, foresight, shape, sureness
from closerlook.report.tables import Table
from closerlook.study.readings import Results


@dataclass(frozen=True)
class Part:
    """A part of the page: its name in links, its titles, sentences, kinds of figures, and tables."""

    name: str
    short: str
    title: str
    words: tuple[str, ...]
    kinds: tuple[str, ...]
    tables: tuple[Table, ...]


def parts(results: Results, kinds: Container[str] = ()) -> list[Part]:
    """The parts that a study has anything for, each with what there is; kinds: those of the figures that were drawn."""
    all_ = [
        Part(
            "chance",
            "Against chance",
            "Against chance",
            tuple(told(results) for told in (chance.similarity_words, chance.weights_words, chance.separability_words)),
            ("chance",),
            (chance.similarity_table(results), chance.separability_table(results)),
        ),
        Part(
            "sure",
            "How sure",
            "How sure",
            (sureness.seeds_words(results),),
            (),
            (sureness.seeds_table(results), sureness.examples_table(results)),
        ),
        Part(
            "foresight",
            "Can it be foreseen?",
            "Can divergence be foreseen?",
            (foresight.foresight_words(results),),
            ("foresight",),
            (foresight.foresight_table(results),),
        ),
        Part(
            "shape",
            "The shape of the spaces",
            "The shape of the spaces",
            (),
            ("alike",),
            (shape.shape_table(results), shape.alike_table(results)),
        ),
    ]
    return [one for part in all_ if (one := _there(part, kinds)) is not None]


def _there(part: Part, kinds: Container[str]) -> Part | None:
    """The part without what is empty; None where words alone are left, save those that say why there is no more."""
    tables, drawn = tuple(filter(None, part.tables)), tuple(kind for kind in part.kinds if kind in kinds)
    words = tuple(filter(None, part.words))
    if not tables and not drawn and (not words or part.name == "sure"):
        return None
    return Part(part.name, part.short, part.title, words, drawn, tables)
