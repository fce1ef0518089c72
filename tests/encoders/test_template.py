"""Prompt templates: every text is read inside the template, and words are found inside it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf

from closerlook.encoders.encoder import Encoder
from closerlook.errors import InputError
from closerlook.representations.extract import extract
from closerlook.tasks.task import Task

Folder = Callable[[str], Path]

TEMPLATE = "The lamp: {text}\nthe house :"
SENTENCES = [("The", "quick", "brown", "fox"), ("She", "ran", "back"), ("river",)]
WORDS = Task.build("w", "token", {"train": [(text, [((len(text) - 1,), "L")]) for text in SENTENCES]})
TEXTS = Task.build("s", "sentence", {"train": [(" ".join(text), [((), "L")]) for text in SENTENCES]})
CLOSE = 4e-5


def states(folder: Path, text: str) -> tuple[torch.Tensor, list[tuple[int, int]]]:
    """The last layer's states of a text, and the characters of each token, by transformers alone."""
    model = hf.AutoModel.from_pretrained(folder).eval()
    encoded = hf.AutoTokenizer.from_pretrained(folder)(
        text, return_tensors="pt", return_offsets_mapping=True, return_token_type_ids=False
    )
    offsets = [tuple(pair) for pair in encoded.pop("offset_mapping")[0].tolist()]
    with torch.no_grad():
        return model(**encoded).last_hidden_state[0], offsets


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "modernbert"])
def test_words_are_found_inside_the_template(family: Folder, name: str) -> None:
    space = extract(str(family(name)), WORDS, layers="last", template=TEMPLATE)[0]
    assert space.provenance.template == TEMPLATE
    for row, words in zip(space.X, SENTENCES, strict=True):
        text = TEMPLATE.replace("{text}", " ".join(words))
        hidden, offsets = states(family(name), text)
        stop = len("The lamp: ") + len(" ".join(words))
        start = stop - len(words[-1])
        inside = [i for i, (first, end) in enumerate(offsets) if first < stop and end > start and end > first]
        assert inside
        np.testing.assert_allclose(row, hidden[inside].mean(0), atol=CLOSE)


@pytest.mark.parametrize(("name", "pool"), [("llama", "last"), ("bert", "cls"), ("bert", "mean+special")])
def test_a_sentence_is_pooled_over_the_whole_template(family: Folder, name: str, pool: str) -> None:
    space = extract(str(family(name)), TEXTS, layers="last", template=TEMPLATE, pool=pool)[0]
    for row, words in zip(space.X, SENTENCES, strict=True):
        hidden, _ = states(family(name), TEMPLATE.replace("{text}", " ".join(words)))
        expected = {"last": hidden[-1], "cls": hidden[0], "mean+special": hidden.mean(0)}[pool]
        np.testing.assert_allclose(row, expected, atol=CLOSE)


def test_the_template_is_part_of_the_key(family: Folder, own_store: Path) -> None:
    folder = str(family("bert"))
    plain, templated = (extract(folder, TEXTS, layers="last", template=given)[0] for given in (None, TEMPLATE))
    assert not np.allclose(plain.X, templated.X, atol=1e-3)
    assert len(list(own_store.glob("spaces/*/*"))) == 2
    loaded = Encoder.load(folder, template=TEMPLATE)
    np.testing.assert_array_equal(extract(loaded, TEXTS, layers="last")[0].X, templated.X)
    assert len(list(own_store.glob("spaces/*/*"))) == 2


@pytest.mark.parametrize("template", ["", "Question:", "{text} and {text}"])
def test_a_template_without_exactly_one_place_for_the_text_is_refused(template: str) -> None:
    with pytest.raises(InputError, match=r"template .* given; expected a text with {text} once, at the place of the"):
        extract("bert-tiny", TEXTS, template=template)
