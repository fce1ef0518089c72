"""Files -> tokenizer and model, through transformers; what it cannot or may not load becomes one clear line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from closerlook.encoders.source import Source
from closerlook.errors import CloserLookError, InputError, WorkError

UNLIMITED = 1_000_000
"""transformers writes a huge number where a tokenizer states no limit."""

USUAL_WINDOW = 512


def choose_device(name: str) -> torch.device:
    """The device of that name; `auto` takes CUDA, else MPS, else the CPU."""
    found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, there in found.items() if there))
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device {name!r} is unknown; expected auto, cuda, cuda:N, mps or cpu") from None
    count = torch.cuda.device_count()
    if not found.get(device.type, False) or (device.type == "cuda" and (device.index or 0) >= count):
        have = ", ".join(kind for kind, there in found.items() if there)
        raise InputError(f"device {name} requested; torch {torch.__version__} sees {have} here (CUDA devices: {count})")
    return device


def load_tokenizer(source: Source, trust_remote_code: bool) -> Any:
    """The encoder's fast tokenizer."""
    from transformers import AutoTokenizer

    folder = source.adapter if source.adapter and (source.adapter / "tokenizer.json").is_file() else source.folder
    with one_line(source.name, "tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(str(folder), use_fast=True, trust_remote_code=trust_remote_code)
    if not tokenizer.is_fast:
        raise InputError(
            f"encoder {source.name} has no fast tokenizer, which tells where each subword lies in the text"
        )
    return tokenizer


def load_model(source: Source, dtype: torch.dtype, trust_remote_code: bool) -> Any:
    """The bare model (no head) in evaluation mode, on the CPU."""
    from transformers import AutoConfig, AutoModel

    with one_line(source.name, "model"):
        config = AutoConfig.from_pretrained(str(source.folder), trust_remote_code=trust_remote_code)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(source.random_seed or 0)  # also for a pooler that the files lack
            if source.random_seed is not None:
                model = AutoModel.from_config(config, dtype=dtype, trust_remote_code=trust_remote_code)
            else:
                model = _read_model(source, dtype, trust_remote_code)
    if source.adapter is not None:
        model = _adapt(model, source)
    if config.is_encoder_decoder:
        model = model.get_encoder()
    model.config.use_cache = (
        False  # a decoder would keep keys and values of every batch for a next token nobody asks for
    )
    return model.eval()


def _read_model(source: Source, dtype: torch.dtype, trust_remote_code: bool) -> Any:
    from transformers import AutoModel

    model, report = AutoModel.from_pretrained(
        str(source.folder),
        dtype=dtype,
        trust_remote_code=trust_remote_code,
        use_safetensors=not source.pickled,
        output_loading_info=True,
    )
    _refuse_missing(source, report["missing_keys"])
    return model


def window_limit(model: Any, tokenizer: Any) -> int:
    """How many tokens, special ones included, the model reads at a time."""
    limits = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None) or UNLIMITED]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            offset = 0 if module.padding_idx is None else module.padding_idx + 1  # RoBERTa counts from there
            limits.append(module.num_embeddings - offset)
    limit = min(limits)
    return int(limit) if limit < UNLIMITED else USUAL_WINDOW


def _refuse_missing(source: Source, missing: Any) -> None:
    """Missing weights would be drawn at random without a word; only the pooler is never looked at."""
    lacking = sorted(key for key in missing if "pooler" not in key)
    if lacking:
        some = ", ".join(lacking[:3]) + (" …" if len(lacking) > 3 else "")
        raise InputError(
            f"encoder {source.name}: its weights lack {len(lacking)} of the model's parameters ({some}); "
            "they belong to another architecture than config.json says"
        )


def _adapt(model: Any, source: Source) -> Any:
    """The model with a PEFT adapter merged in, whether it was trained on the bare model or under a head."""
    try:
        import peft
    except ImportError:
        raise InputError(
            f"encoder {source.name} is a PEFT adapter; install it with `pip install closerlook[peft]`"
        ) from None
    folder = str(source.adapter)
    with one_line(source.name, "adapter"):
        config = peft.PeftConfig.from_pretrained(folder, inference_mode=True)
        if config.is_prompt_learning:
            raise InputError(
                f"adapter {source.name} is a {config.peft_type}; only those that change weights can be read"
            )
        config.task_type = config.modules_to_save = None  # heads are not looked at
        weights = {
            key.replace(f"base_model.model.{model.base_model_prefix}.", "base_model.model."): value
            for key, value in peft.utils.load_peft_weights(folder, device="cpu").items()
        }
        _replace_whole_modules(model, source, weights)
        adapted = peft.PeftModel(model, config)
        known = set(peft.get_peft_model_state_dict(adapted))
        lacking = known - set(weights)
        if lacking:
            raise InputError(
                f"adapter {source.name} was made for another encoder: {len(lacking)} of its {len(known)} "
                f"weights are missing for {source.folder.name}"
            )
        peft.set_peft_model_state_dict(adapted, {key: weights[key] for key in known})
        return adapted.merge_and_unload()


def _replace_whole_modules(model: Any, source: Source, weights: dict[str, torch.Tensor]) -> None:
    """The modules that were trained whole beside the adapter (`modules_to_save`) put into the model."""
    own = model.state_dict()
    whole = {key.removeprefix("base_model.model."): value for key, value in weights.items() if "lora_" not in key}
    whole = {key: value for key, value in whole.items() if key in own}
    misfit = next((key for key, value in whole.items() if value.shape != own[key].shape), None)
    if misfit is not None:
        raise InputError(
            f"adapter {source.name} brings {misfit} of shape {tuple(whole[misfit].shape)}, which does not fit"
        )
    model.load_state_dict(whole, strict=False)


@contextmanager
def one_line(name: str, part: str) -> Iterator[None]:
    """transformers' reports and bars kept quiet, and its failures turned into one line."""
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError
    from transformers.utils import logging

    others = (SafetensorError, StrictDataclassError)
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except CloserLookError:
        raise
    except MemoryError:
        raise WorkError(f"encoder {name} does not fit into memory; choose a smaller one or another --dtype") from None
    except torch.OutOfMemoryError:
        raise WorkError(f"encoder {name} does not fit into the device's memory; try --device cpu") from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ImportError, RuntimeError, *others) as error:
        reason = " ".join(str(error).split())
        if "trust_remote_code" in reason:
            raise InputError(
                f"encoder {name} needs code that comes with it; read that code and pass --trust-remote-code "
                "(trust_remote_code=True) if you trust it"
            ) from None
        raise InputError(f"the {part} of encoder {name} cannot be used: {reason} ({type(error).__name__})") from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
