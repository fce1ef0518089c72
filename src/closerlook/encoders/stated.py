"""What the files of an encoder state about it, read without torch, so that a wrong plan is refused at once."""

from __future__ import annotations

import math
from pathlib import Path

from closerlook.encoders.configuration import read_json
from closerlook.encoders.source import LONGEST_HEADER, EncoderInfo, Source
from closerlook.errors import InputError
from closerlook.escaping import parse_json

LAYERS = ("num_hidden_layers", "n_layer", "n_layers")
WIDTH = ("hidden_size", "n_embd", "dim")
WINDOW = ("max_position_embeddings", "n_positions")
USUAL_WINDOW = 512


def stated_info(source: Source) -> EncoderInfo | None:
    """The facts about an encoder as its configuration states them; None if it does not state them plainly.

    The number of parameters is that of the weights in safetensors files, heads included. Whether the tokenizer adds a
    classification token is not stated; it is taken as true.
    """
    config = read_json(source.folder / "config.json")
    layers, width, window = (
        next((config[name] for name in names if type(config.get(name)) is int), None)
        for names in (LAYERS, WIDTH, WINDOW)
    )
    if layers is None or width is None or config.get("is_encoder_decoder"):
        return None
    parameters = sum(map(_parameters, source.folder.glob("*.safetensors")))
    return EncoderInfo(
        layers=layers,
        width=width,
        window=window or USUAL_WINDOW,
        has_cls=True,
        parameters=parameters,
        sentence_pool=source.sentence_pool,
    )


def _parameters(file: Path) -> int:
    """The number of weights in a safetensors file, from its header."""
    try:
        with file.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            header = parse_json(stream.read(min(size, LONGEST_HEADER)))
        return sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
    except (OSError, ValueError, KeyError, TypeError, MemoryError, OverflowError):
        raise InputError(f"{file} is truncated or not a safetensors file; download it again") from None
