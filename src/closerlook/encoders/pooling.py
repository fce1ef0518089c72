"""The names of poolings (how subwords become one vector), and the pooling that a sentence-transformers folder states.

This module does not import torch, so that spaces in the store can be read quickly.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from closerlook.encoders.configuration import read_json, read_json_value
from closerlook.errors import InputError

if TYPE_CHECKING:
    from closerlook.encoders.source import EncoderInfo

WORD_POOLS = ("mean", "first", "last")
SENTENCE_POOLS = ("cls", "mean", "weighted_mean", "last")
SPECIAL, NORMALIZED = "special", "normalized"

OWN_NAMES = {"mean": "mean", "weightedmean": "weighted_mean", "cls": "cls", "lasttoken": "last"}
"""The poolings of sentence-transformers, and what they are called here; others keep their name and are refused."""

OLDER_NAMES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""The entries of an older `1_Pooling/config.json`, each true or false, and the pooling that each stands for."""


class SentencePool(NamedTuple):
    """The pooling of a sentence. kind: one of SENTENCE_POOLS.

    special: special tokens such as [CLS] and [SEP] are pooled as well. normalized: the vector is scaled to length 1.
    """

    kind: str
    special: bool
    normalized: bool


def parse_sentence_pool(name: str) -> SentencePool | None:
    """The pooling of that name, such as 'mean' or 'mean+special+normalized'; None if there is none.

    >>> parse_sentence_pool("mean+special")
    SentencePool(kind='mean', special=True, normalized=False)
    """
    kind, *additions = name.split("+")
    allowed = [SPECIAL, NORMALIZED] if kind in {"mean", "weighted_mean"} else [NORMALIZED]
    if kind not in SENTENCE_POOLS or additions != [addition for addition in allowed if addition in additions]:
        return None
    return SentencePool(kind, SPECIAL in additions, NORMALIZED in additions)


def choose_pool(pool: str, unit: str, info: EncoderInfo) -> str:
    """The way to pool subwords into one vector, with 'auto' resolved; see `extract`. unit: what an example is."""
    if unit != "sentence":
        if pool not in ("auto", *WORD_POOLS):
            raise InputError(f"pool {pool!r} requested; expected auto, mean, first or last for a {unit} task")
        return "mean" if pool == "auto" else pool
    own = info.sentence_pool
    if pool == "auto" and own is not None and parse_sentence_pool(own) is None:
        raise InputError(
            f"the files of this encoder state the pooling {own}, which is not supported; choose another with --pool "
            f"(pool=): {', '.join(SENTENCE_POOLS[:-1])} or {SENTENCE_POOLS[-1]}"
        )
    resolved = (own or ("cls" if info.has_cls else "mean")) if pool == "auto" else pool
    parsed = parse_sentence_pool(resolved)
    if parsed is None:
        raise InputError(
            f"pool {pool!r} requested; expected auto, {', '.join(SENTENCE_POOLS[:-1])} or {SENTENCE_POOLS[-1]} for a "
            "sentence task; +normalized may follow, and +special may follow a mean"
        )
    if parsed.kind == "cls" and not info.has_cls:
        raise InputError(
            f"pool {resolved!r} requested; the tokenizer of this encoder adds no classification token: use mean"
        )
    return resolved


def stated_pool(folder: Path) -> str | None:
    """The sentence pooling that a sentence-transformers folder states; None if the folder states none.

    sentence-transformers pools special tokens too, hence 'mean+special'. If a Normalize module follows the pooling,
    '+normalized' is added. Later modules (Dense) are heads, which are not used. A pooling that closerlook does not
    have is returned under its own name.
    """
    following = stated_modules(folder)
    while following and following[0][0] != "Pooling":
        following = following[1:]
    if not following:
        return None
    kinds = _stated_kinds(read_json(folder / following[0][1] / "config.json"))
    name = "&".join(OWN_NAMES.get(kind, kind) for kind in kinds)
    special = f"+{SPECIAL}" if name in {"mean", "weighted_mean"} else ""
    normalized = f"+{NORMALIZED}" if len(following) > 1 and following[1][0] == "Normalize" else ""
    return name + special + normalized


def write_stated_pool(folder: Path, pool: str | None) -> None:
    """Write the files from which `stated_pool` reads this pooling; nothing if it is None or not supported."""
    parsed = None if pool is None else parse_sentence_pool(pool)
    if parsed is None:
        return
    modules = ["Transformer", "Pooling"] + ["Normalize"] * parsed.normalized
    listed = [
        {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(modules)
    ]
    kind = next(own for own, name in OWN_NAMES.items() if name == parsed.kind)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": kind}))
    (folder / "modules.json").write_text(json.dumps(listed))


def stated_modules(folder: Path) -> list[tuple[str, str]]:
    """The modules of a sentence-transformers folder in order: the kind of each, such as 'Pooling', and its subfolder.

    Empty if the folder is not of that kind.
    """
    file = folder / "modules.json"
    if not file.is_file():
        return [("Pooling", "1_Pooling")] if (folder / "1_Pooling" / "config.json").is_file() else []
    modules = read_json_value(file)
    try:
        listed = [(str(module["type"]).rpartition(".")[2], str(module["path"])) for module in modules]
    except (KeyError, TypeError):
        raise InputError(f"{file} has a module without type or path; download the encoder again") from None
    outside = next((path for _, path in listed if path in {".", ".."} or set(path) & set("/\\\0")), None)
    if outside is not None:
        raise InputError(f"{file} names the folder {outside[:100]!a}; expected names of folders in {folder}")
    return listed


def _stated_kinds(config: dict[str, Any]) -> list[str]:
    """The poolings in a pooling configuration, in the words of sentence-transformers; several are concatenated."""
    stated = config.get("pooling_mode")
    if stated is None:
        stated = [name for entry, name in OLDER_NAMES.items() if config.get(entry)] or ["mean"]
    return [stated] if isinstance(stated, str) else [str(kind) for kind in stated]
