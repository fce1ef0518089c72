"""The kinds of texts that tasks contain and encoders read: plain, split into words, running text with words, pairs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class RunningText:
    """A text as it is written, and the characters of each word or span in it.

    spans: the first character of each word, and one past its last; in order of the words. forms: the words, if they are
    not written as they are, such as 'de' and 'le' for French 'du'; None: the words are their characters.

    >>> RunningText("Don't go", ((0, 2), (2, 5), (6, 8))).words
    ('Do', "n't", 'go')
    """

    text: str
    spans: tuple[tuple[int, int], ...]
    forms: tuple[str, ...] | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The form of each word: by default its characters."""
        return self.forms or tuple(self.text[start:stop] for start, stop in self.spans)


@dataclass(frozen=True)
class TextPair:
    """Two texts that are encoded together, as in natural language inference or paraphrase detection.

    >>> from closerlook import read_task
    >>> task = read_task([{"text_a": "It rains.", "text_b": "It is wet.", "label": "yes"}], name="weather")
    >>> task.split("train").texts[0]
    TextPair(first='It rains.', second='It is wet.')
    """

    first: str
    second: str


Text = str | tuple[str, ...] | RunningText | TextPair
"""A plain text, words that are joined by spaces, words in running text, or a pair of texts."""


def joined(text: Text) -> str:
    """The text as one string; the texts of a pair are separated by a line break.

    >>> joined(("light", "rain")), joined(TextPair("It rains.", "It is wet."))
    ('light rain', 'It rains.\\nIt is wet.')
    """
    match text:
        case str():
            return text
        case RunningText():
            return text.text
        case TextPair():
            return f"{text.first}\n{text.second}"
    return " ".join(text)


def words_of(text: Text) -> tuple[str, ...]:
    """The words of a text; a plain text counts as one word, and so does a pair."""
    match text:
        case str() | TextPair():
            return (joined(text),)
        case RunningText():
            return text.words
    return text


def as_running(text: Text) -> RunningText:
    """The text with the characters of each of its words.

    >>> as_running(("light", "rain")).spans
    ((0, 5), (6, 10))
    """
    if isinstance(text, RunningText):
        return text
    words = words_of(text)
    ends = accumulate(len(word) + 1 for word in words)
    spans = tuple((end - 1 - len(word), end - 1) for end, word in zip(ends, words, strict=True))
    return RunningText(joined(text), spans)


def replace_word(text: RunningText, number: int, word: str) -> RunningText:
    """The text with another word in the place of a word; the characters of later words move.

    >>> replace_word(RunningText("a b", ((0, 1), (2, 3))), 0, "the").words
    ('the', 'b')
    """
    start, stop = text.spans[number]
    longer = len(word) - (stop - start)
    moved = [tuple(place + longer if place >= stop else place for place in span) for span in text.spans]
    spans = [*moved[:number], (start, start + len(word)), *moved[number + 1 :]]
    return RunningText(text.text[:start] + word + text.text[stop:], tuple((first, last) for first, last in spans))
