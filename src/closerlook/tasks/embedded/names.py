"""Names, numbers and amounts: noun phrases without phrases inside."""

from __future__ import annotations

from dataclasses import replace

from closerlook.tasks.embedded.dice import Dice
from closerlook.tasks.embedded.lexicon import NOUNS, NUMBERS, YEARS
from closerlook.tasks.embedded.words import Node, closed, noun, numeral, proper


def name(dice: Dice) -> Node:
    """A person's name."""
    node = proper(dice.one(NOUNS["given"]))
    return node.followed_by(proper(dice.one(NOUNS["surname"]), "flat")) if dice.chance(0.45) else node


def two_names(dice: Dice) -> Node:
    """The names of two people."""
    return name(dice).followed_by(name(dice).preceded_by(closed("and", "cc")).as_("conj"))


def number(dice: Dice) -> Node:
    """A number written out, or in figures."""
    return numeral(dice.early(NUMBERS) if dice.chance(0.88) else str(2 + dice.below(60)))


def year(dice: Dice) -> Node:
    """A year in figures."""
    return numeral(dice.early(YEARS), "root")


def time_span(dice: Dice) -> Node:
    """How long: 'an hour', 'three weeks'."""
    unit = dice.early(NOUNS["unit"])
    if dice.chance(0.3):
        return noun(unit).preceded_by(closed("a", "det"))
    return noun(unit, plural=True).preceded_by(number(dice))


def part_of_day(dice: Dice) -> Node:
    """A part of the day or the year: 'the morning', 'the summer'."""
    return noun(dice.early(NOUNS["daypart"])).preceded_by(closed("the", "det"))


def money(dice: Dice) -> Node:
    """A sum of money: '$20', 'ten euros'."""
    if dice.chance(0.25):
        return Node("$", "$", "SYM", "$", glue="right").followed_by(numeral(str(5 * (1 + dice.below(60)))))
    return noun(dice.early(("dollar", "euro", "pound", "cent")), plural=True).preceded_by(number(dice))


def percentage(dice: Dice) -> Node:
    """A share: '12%', 'ten percent'."""
    if dice.chance(0.3):
        sign = Node("%", "%", "SYM", "NN", "Number=Sing", glue="left")
        return sign.preceded_by(numeral(str(1 + dice.below(90))))
    return noun("percent").preceded_by(number(dice))


def thing_pronoun(dice: Dice) -> Node:
    """A pronoun for a thing."""
    form = dice.weighted(
        (("it", 4), ("something", 2), ("that", 2), ("this", 1), ("some", 0.5), ("those", 0.5), ("all", 0.3))
    )
    return replace(closed(form, "obj"), upos="PRON")
