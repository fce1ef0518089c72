"""Find the files of an encoder and compute their fingerprint, a hash of their content.

This module does not import torch, so that spaces in the store can be read quickly.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import xxhash

from closerlook.encoders.configuration import read_json
from closerlook.encoders.pooling import stated_modules, stated_pool
from closerlook.errors import InputError, WorkError
from closerlook.escaping import parse_json

EMBEDDED = "bert-tiny"
"""The built-in encoder, which is also the default."""

QUANTIZED = {"int8": 8, "int4": 4}
"""Precisions in which bitsandbytes stores the weights, with the bits of each weight; it computes in bfloat16."""

DTYPES = ("float32", "float16", "bfloat16", *QUANTIZED)
LONGEST_HEADER = 100_000_000
"""The largest header that the safetensors format allows, in bytes."""

LARGE = 1_000_000_000
"""An encoder with at least this many 16-bit weights is large, see `choose_dtype`."""

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spm.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
MOST_DIMENSIONS = 16
"""The dimensions that a tensor of weights may have."""
CHECKPOINTS = ("checkpoint-", "step-")
"""How the names of checkpoints begin: those of transformers' Trainer, and those of `closerlook tune`."""

VOCABULARIES = tuple(file for file in TOKENIZER_FILES if file.startswith(("tokenizer.", "vocab.")) or ".model" in file)
"""A tokenizer needs one of these files; without one, transformers makes an empty tokenizer and gives no warning."""


@dataclass(frozen=True)
class Source:
    """The files of an encoder, not yet loaded, with their fingerprint.

    name: for display. folder: has configuration, tokenizer and weights. revision: of the hub repository, if requested.
    adapter: the folder of a PEFT adapter for the model in `folder`. random_seed: if set, weights are not read but drawn
    from this seed. pickled: the weights are in a pickle file. half_parameters: the number of floating-point
    weights of 16 bits or fewer in safetensors files; 0 for pickle files. sentence_pool: the pooling of sentences that
    the files state (sentence-transformers); None if they state none. tokenizer: the folder with the tokenizer, if it is
    neither in `folder` nor in `adapter`.

    >>> source = resolve("random:bert-tiny", seed=1)
    >>> source.name, source.folder.name, source.random_seed
    ('random:bert-tiny', 'bert-tiny', 1)
    """

    name: str
    folder: Path
    fingerprint: str
    revision: str | None = None
    adapter: Path | None = None
    random_seed: int | None = None
    pickled: bool = False
    half_parameters: int = 0
    sentence_pool: str | None = None
    tokenizer: Path | None = None


@dataclass(frozen=True)
class EncoderInfo:
    """The facts about an encoder that extraction and plans need; stored, so that the model is not loaded again.

    layers: the number of layers above the embedding output, which is layer 0. width: the number of dimensions of each
    layer. window: the maximum number of tokens per model input, with special tokens. has_cls: whether its tokenizer
    adds a classification token. parameters: the number of parameters. sentence_pool: the pooling of sentences that the
    encoder's own files state; None if they state none.

    >>> from closerlook import Encoder
    >>> Encoder.load("bert-tiny").info
    EncoderInfo(layers=2, width=128, window=512, has_cls=True, parameters=4385920, sentence_pool=None)
    """

    layers: int
    width: int
    window: int
    has_cls: bool
    parameters: int
    sentence_pool: str | None = None


def choose_dtype(name: str, half_parameters: int, *, on_cpu: bool) -> str:
    """The precision of computations; 'auto' is float32, and bfloat16 for large 16-bit models on a GPU.

    Half precision is 5 to 10 times slower on a CPU, and geometry needs the digits; so 'auto' uses it only for models
    that may not fit into memory in float32.
    """
    if name == "auto":
        return "bfloat16" if half_parameters >= LARGE and not on_cpu else "float32"
    if name not in DTYPES:
        raise InputError(f"dtype {name!r} is unknown; expected auto, {', '.join(DTYPES)}")
    return name


def resolve(
    name: str,
    *,
    seed: int = 0,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    tokenizer: Path | None = None,
) -> Source:
    """The files of the encoder of that name.

    A name is `bert-tiny` (built in), a folder, the folder of a PEFT adapter, a hub id, or `id@revision`. With `random:`
    in front, the encoder has the same configuration and tokenizer, and weights drawn from `seed`.
    tokenizer: a folder whose tokenizer is used if the encoder's own folder has none, as checkpoints of a Trainer may.

    >>> resolve("bert-tiny").folder.name
    'bert-tiny'
    """
    if not name.removeprefix("random:").strip():
        raise InputError(f"encoder {name!r} is an empty name; expected a folder, a hub id or random:ID")
    if name.startswith("random:"):
        return _random_source(name, seed, trust_remote_code)
    top, revision = _locate(name, weights=True, code=trust_remote_code)
    if (top / "adapter_config.json").is_file():
        return _adapter_source(name, top, revision, allow_pickle, trust_remote_code)
    folder = _model_folder(name, top)
    weights, pickled = _weights(name, folder, allow_pickle)
    borrowed = tokenizer if tokenizer is not None and not _has_tokenizer(folder) else None
    description = _description_files(name, folder, trust_remote_code, borrowed)
    return Source(
        name=_display_name(name, top),
        folder=folder,
        fingerprint=_fingerprint([*description, *weights]),
        revision=revision,
        pickled=pickled,
        half_parameters=sum(_half_parameters(file) for file in weights if file.suffix == ".safetensors"),
        tokenizer=borrowed,
        sentence_pool=stated_pool(top),
    )


def _random_source(name: str, seed: int, trust_remote_code: bool) -> Source:
    base = name.removeprefix("random:")
    top, revision = _locate(base, weights=False, code=trust_remote_code)
    folder = _model_folder(base, top)
    origin = f"seed {seed}, torch {version('torch')}, transformers {version('transformers')}"
    return Source(
        name=f"random:{_display_name(base, top)}",
        folder=folder,
        fingerprint=_fingerprint(_description_files(base, folder, trust_remote_code), origin),
        revision=revision,
        random_seed=seed,
        sentence_pool=stated_pool(top),
    )


def _adapter_source(
    name: str, folder: Path, revision: str | None, allow_pickle: bool, trust_remote_code: bool
) -> Source:
    if (folder / "config.json").is_file():
        raise InputError(f"encoder {name} contains both a model and an adapter; give the adapter its own folder")
    config = read_json(folder / "adapter_config.json")
    base_name = config.get("base_model_name_or_path")
    if not isinstance(base_name, str) or not base_name:
        raise InputError(f"adapter {name}: adapter_config.json names no base_model_name_or_path; add the base encoder")
    if config.get("revision") and base_name != EMBEDDED and not os.path.isdir(base_name):
        base_name = f"{base_name}@{config['revision']}"
    if os.path.isfile(os.path.join(base_name, "adapter_config.json")):
        raise InputError(
            f"adapter {name} has another adapter as its base ({base_name}); merge that adapter into its model first"
        )
    base = resolve(base_name, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
    weights = folder / "adapter_model.safetensors"
    if not weights.is_file():
        weights = folder / "adapter_model.bin"
        _refuse_pickle(name, weights, allow_pickle, instead="adapter_model.safetensors")
    files = [folder / "adapter_config.json", *_tokenizer_files(folder), weights]
    return replace(
        base,
        name=_display_name(name, folder),
        adapter=folder,
        revision=revision or base.revision,
        fingerprint=_fingerprint(files, base.fingerprint),
        pickled=base.pickled or weights.suffix == ".bin",
        sentence_pool=stated_pool(folder) or base.sentence_pool,
    )


def _locate(name: str, *, weights: bool, code: bool) -> tuple[Path, str | None]:
    """The folder with the encoder's files, and the requested revision; downloads the files from the hub if needed."""
    if name == EMBEDDED:
        return Path(__file__).parent / "embedded" / EMBEDDED, None
    folder = Path(os.path.expanduser(name))
    if os.path.isdir(folder):
        return folder.resolve(), None
    if os.path.exists(folder):
        raise InputError(f"encoder {name} is a file; expected its folder")
    repository, _, revision = name.partition("@")
    if name.startswith((".", "/", "~")) or repository.count("/") > 1:
        raise InputError(
            f"encoder {name}: there is no such folder; expected a folder, a hub id (owner/name) or random:ID"
        )
    return _snapshot(name, weights=["*.safetensors"] * weights, code=code), revision or None


def _model_folder(name: str, top: Path) -> Path:
    """The folder with config.json: the encoder's folder itself, or the folder of the model in sentence-transformers'.

    An InputError names the checkpoints in the folder if it has no config.json of its own.
    """
    if (top / "config.json").is_file():
        return top
    below = [top / path for kind, path in stated_modules(top) if kind == "Transformer" and path]
    if below and (below[0] / "config.json").is_file():
        return below[0]
    found = [path for path in top.glob("*-*") if path.name.startswith(CHECKPOINTS) and (path / "config.json").is_file()]
    if found:
        found.sort(key=lambda path: (len(path.name), path.name))  # checkpoint-500 before checkpoint-1000
        listed = ", ".join(path.name for path in found)
        raise InputError(
            f"encoder {name} is the folder of a training, with {listed}; give one of these folders, such as "
            f"{os.path.join(name, found[-1].name)}"
        )
    raise InputError(f"encoder {name}: no config.json in {top}; expected a Hugging Face model folder")


def _snapshot(name: str, *, weights: Sequence[str], code: bool) -> Path:
    """The folder in the local cache with the files of a hub repository; downloads missing files.

    Of subfolders, only those of sentence-transformers are downloaded, such as `1_Pooling`.

    weights: patterns of the weight files that are needed, in addition to configuration and tokenizer.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    repository, _, revision = name.partition("@")
    patterns = ["*.json", "*.txt", "*.model", *weights] + ["*.py"] * code
    try:
        return Path(
            snapshot_download(
                repository, revision=revision or None, allow_patterns=patterns, ignore_patterns="[!0-9]*/*"
            )
        )
    except GatedRepoError:
        raise InputError(f"encoder {name} is gated; accept its terms on the hub and run `hf auth login`") from None
    except RevisionNotFoundError:
        raise InputError(
            f"encoder {repository} has no revision {revision!r} on the hub; check what follows the @"
        ) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise InputError(
            f"encoder {name} is neither a folder here nor a repository on the hub; "
            "expected a folder, a hub id (owner/name) or random:ID"
        ) from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise WorkError(
            f"encoder {name} cannot be downloaded from the hub ({_cause(error)}), and is not complete in the local hub "
            "cache; give a local folder, or run again when the hub can be reached and its cache can be written"
        ) from None


def _cause(error: Exception) -> str:
    """Why a download failed: the words of the system ('No space left on device'), or else the type of the error."""
    return getattr(error, "strerror", None) or type(error).__name__


def _weights(name: str, folder: Path, allow_pickle: bool) -> tuple[list[Path], bool]:
    """The weight files, and whether they are pickle files."""
    files = _sharded(folder, "model.safetensors")
    if files:
        return files, False
    files = _sharded(folder, "pytorch_model.bin")
    if not files and allow_pickle and not os.path.isdir(os.path.expanduser(name)):
        files = _sharded(_snapshot(name, weights=["pytorch_model*.bin"], code=False), "pytorch_model.bin")
    _refuse_pickle(name, files[0] if files else folder / "pytorch_model.bin", allow_pickle, instead="model.safetensors")
    return files, True


def _refuse_pickle(name: str, file: Path, allow_pickle: bool, *, instead: str) -> None:
    """Refuse a pickle file that is missing or not allowed. instead: the name of the safetensors file."""
    missing = f"encoder {name} has no weights in {file.parent}; expected {instead} or {file.name}"
    if os.path.isdir(os.path.expanduser(name)) and not file.is_file():
        raise InputError(missing)
    if not allow_pickle:
        raise InputError(
            f"encoder {name} has no safetensors weights in {file.parent}; a pickle checkpoint can run code when it is "
            "read: convert it, or pass --allow-pickle (allow_pickle=True) if you trust it"
        )
    if not file.is_file():
        raise InputError(missing)


def _sharded(folder: Path, name: str) -> list[Path]:
    """The file of that name, or the shards listed in its index; empty if there is neither."""
    if (folder / name).is_file():
        return [folder / name]
    index = folder / f"{name}.index.json"
    if not index.is_file():
        return []
    listed = read_json(index).get("weight_map")
    if not isinstance(listed, dict):
        raise InputError(f"{index} has no weight_map; download the encoder again")
    shards = sorted({_inside(index, file) for file in listed.values()})
    missing = [shard.name for shard in shards if not shard.is_file()]
    if missing:
        raise InputError(f"{index} lists {', '.join(missing)}, which is missing; download the encoder again")
    return [index, *shards]


def _inside(index: Path, name: object) -> Path:
    """The file of that name in the index's folder; InputError if it is not in that folder, or links out of it.

    The hub's cache is an exception: a folder `models--…/snapshots/…` has links to files in `models--…/blobs`.
    """
    folder = index.parent.resolve()
    homes = [folder]
    if folder.parent.name == "snapshots" and folder.parents[1].name.startswith("models--"):
        homes.append((folder.parents[1] / "blobs").resolve())
    is_name = isinstance(name, str) and name not in {"", ".", ".."} and not set(name) & set("/\\\0")
    if not is_name or (index.parent / str(name)).resolve().parent not in homes:
        raise InputError(
            f"{index} lists {str(name)[:100]!a}, which is not a file in {folder}; expected names of files there"
        )
    return index.parent / str(name)


def _has_tokenizer(folder: Path) -> bool:
    return any((folder / file).is_file() for file in VOCABULARIES)


def _description_files(name: str, folder: Path, trust_remote_code: bool, tokenizer: Path | None = None) -> list[Path]:
    """The files of configuration and tokenizer, and the code in the folder if it is trusted.

    tokenizer: the folder of the tokenizer, if it is not the encoder's own.
    """
    config = folder / "config.json"
    read_json(config)
    if not _has_tokenizer(tokenizer or folder):
        raise InputError(
            f"encoder {name} has no tokenizer in {folder} (none of {', '.join(VOCABULARIES)}); save it there too: "
            "tokenizer.save_pretrained(folder)"
        )
    code = sorted(folder.glob("*.py")) if trust_remote_code else []
    return [config, *_tokenizer_files(tokenizer or folder), *code]


def _tokenizer_files(folder: Path) -> list[Path]:
    return [folder / file for file in TOKENIZER_FILES if (folder / file).is_file()]


def _fingerprint(files: Iterable[Path], *extra: str) -> str:
    """Hex digest of the files' names and bytes; independent of their folder."""
    digest = xxhash.xxh3_128()
    for file in files:
        digest.update(f"{file.name}:{file.stat().st_size}\n".encode())
        with file.open("rb") as stream:
            while block := stream.read(1 << 22):
                digest.update(block)
    for text in extra:
        digest.update(text.encode())
    return digest.hexdigest()


def _half_parameters(file: Path) -> int:
    """The number of floating-point weights of 16 bits or fewer in a safetensors file, from its header alone."""
    present = file.stat().st_size
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = stream.read(size) if size <= min(present, LONGEST_HEADER) else b""
    try:
        entries = [entry for key, entry in parse_json(header).items() if key != "__metadata__"]
        expected = 8 + size + max((entry["data_offsets"][1] for entry in entries), default=0)
        half = sum(_size(entry["shape"]) for entry in entries if _is_half(entry["dtype"]))
    except (ValueError, LookupError, TypeError, AttributeError):
        raise InputError(f"{file} is truncated or not a safetensors file; download it again") from None
    if present != expected:
        state = "truncated" if present < expected else "damaged"
        raise InputError(f"{file} is {state}: it has {present:,} bytes, expected {expected:,}; download it again")
    return half


def _is_half(dtype: str) -> bool:
    return dtype in {"F16", "BF16"} or dtype.startswith("F8")


def _size(shape: Sequence[int]) -> int:
    """The number of weights of that shape; ValueError if no tensor can have it."""
    if len(shape) > MOST_DIMENSIONS or not all(isinstance(length, int) and 0 <= length < 1 << 48 for length in shape):
        raise ValueError("no shape of a tensor")
    return math.prod(shape)


def _display_name(name: str, folder: Path) -> str:
    """The encoder's name in tables: the last part of a folder's path, or the hub id.

    A folder called `model` is shown by the name of the folder that contains it.
    """
    if not os.path.isdir(os.path.expanduser(name)):
        return name
    return folder.parent.name if folder.name == "model" and folder.parent.name else folder.name
