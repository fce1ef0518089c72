"""Which weights a fine-tuning changes: all of them, only the head, only biases, or only the last layers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from closerlook.errors import InputError

if TYPE_CHECKING:
    import torch

    from closerlook.encoders.encoder import Encoder

ALL, HEAD, BIASES = "all", "head", "biases"
LAST = re.compile(r"last (\d+)")
EXPECTED = "all, head, biases, or the last layers, as 'last 2'"


def is_trainable_part(value: object) -> bool:
    """Whether a value names weights to train.

    >>> [is_trainable_part(value) for value in ("all", "last 2", "last 0", "first 2", 3)]
    [True, True, False, False, False]
    """
    if value in (ALL, HEAD, BIASES):
        return True
    match = LAST.fullmatch(value) if isinstance(value, str) else None
    return match is not None and int(match[1]) > 0


def freeze(encoder: Encoder, trained: str) -> None:
    """Let gradients change only the chosen weights of an encoder; the linear head is always trained.

    trained: 'all'; 'head': none of the encoder's; 'biases': only its biases (BitFit, Ben Zaken et al. 2022);
    'last k': only its last k layers.
    """
    if trained == ALL:
        return
    chosen = _last_layers(encoder, trained)
    for name, parameter in encoder.model.named_parameters():
        is_bias = trained == BIASES and name.rpartition(".")[2] == "bias"
        parameter.requires_grad_(is_bias or id(parameter) in chosen)


def _last_layers(encoder: Encoder, trained: str) -> set[int]:
    """The ids of the parameters of the last layers; empty if the layers are not named."""
    match = LAST.fullmatch(trained)
    if match is None:
        return set()
    layers, wanted = _layers(encoder), int(match[1])
    if wanted > len(layers):
        raise InputError(f"trained is {trained!r}; encoder {encoder.name} has {len(layers)} layers")
    return {id(parameter) for layer in layers[-wanted:] for parameter in layer.parameters()}


def _layers(encoder: Encoder) -> list[torch.nn.Module]:
    """The layers of a transformer: the one list of modules that has as many entries as the encoder has layers."""
    from torch.nn import ModuleList

    for module in encoder.model.modules():
        if isinstance(module, ModuleList) and len(module) == encoder.info.layers:
            return list(module)
    raise InputError(f"the layers of encoder {encoder.name} cannot be found; train all weights, the head or the biases")
