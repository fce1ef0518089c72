"""Load tokenizers and models with transformers; every failure becomes an error message of one line."""

from __future__ import annotations

import os
import pickle
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import torch

from closerlook.encoders.source import QUANTIZED, Source
from closerlook.errors import CloserLookError, InputError, WorkError

if TYPE_CHECKING:
    from transformers import BitsAndBytesConfig, PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

UNLIMITED = 1_000_000
"""If a tokenizer states no limit, transformers sets a number larger than this."""

USUAL_WINDOW = 512
"""The window if neither the tokenizer nor the model states a limit."""


def choose_device(name: str) -> torch.device:
    """The device of that name; `auto` takes CUDA, else MPS, else the CPU.

    Before a process uses CUDA for the first time, this asks cuBLAS for reproducible results. cuBLAS reads the variable
    only once: set later, such as for a fine-tuning that runs after an extraction, it has no effect.
    """
    device = _find_device(name)
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    return device


def _find_device(name: str) -> torch.device:
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, usable in available.items() if usable))
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device {name!r} is unknown; expected auto, cuda, cuda:N, mps or cpu") from None
    count = torch.cuda.device_count()
    if not available.get(device.type, False) or (device.type == "cuda" and (device.index or 0) >= count):
        usable_kinds = ", ".join(kind for kind, usable in available.items() if usable)
        raise InputError(
            f"device {name} requested; torch {torch.__version__} sees {usable_kinds} here (CUDA devices: {count})"
        )
    return device


def load_tokenizer(source: Source, trust_remote_code: bool) -> PreTrainedTokenizerFast:
    """The encoder's fast tokenizer."""
    from transformers import AutoTokenizer

    own = source.adapter if source.adapter and (source.adapter / "tokenizer.json").is_file() else source.folder
    folder = source.tokenizer or own
    with short_errors(source.name, "tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(str(folder), use_fast=True, trust_remote_code=trust_remote_code)
    if not tokenizer.is_fast:
        raise InputError(
            f"encoder {source.name} has no fast tokenizer, which gives positions of subwords; choose another encoder"
        )
    return tokenizer


class Placement(NamedTuple):
    """Where a model is put: on one device, or, with a device map, over all devices, memory and disk."""

    device: torch.device
    device_map: str | None = None


def load_model(source: Source, dtype: str, trust_remote_code: bool, placement: Placement) -> PreTrainedModel:
    """The model without a head, in evaluation mode, in its place. dtype: one of DTYPES."""
    from transformers import AutoConfig, AutoModel

    _check_placement(source, dtype, placement)
    with short_errors(source.name, "model"):
        config = AutoConfig.from_pretrained(str(source.folder), trust_remote_code=trust_remote_code)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(source.random_seed or 0)  # also for a pooler whose weights are missing
            if source.random_seed is not None:
                model = AutoModel.from_config(config, dtype=torch_dtype(dtype), trust_remote_code=trust_remote_code)
            else:
                model = _load_weights(source, dtype, trust_remote_code, placement)
    if source.adapter is not None:
        model = _adapt(model, source)
    if config.is_encoder_decoder:
        model = model.get_encoder()
    # a decoder would keep the keys and values of every batch, to generate the next token
    model.config.use_cache = False
    return model.eval() if is_placed(dtype, placement) else model.eval().to(placement.device)


def torch_dtype(dtype: str) -> torch.dtype:
    """The precision of computations, as torch names it; quantised weights are computed with in bfloat16."""
    chosen: torch.dtype = torch.bfloat16 if dtype in QUANTIZED else getattr(torch, dtype)
    return chosen


def is_placed(dtype: str, placement: Placement) -> bool:
    """Whether the model is put in its place while it is loaded, and must not be moved afterwards."""
    return placement.device_map is not None or dtype in QUANTIZED


def input_device(model: torch.nn.Module) -> torch.device:
    """The device on which a model expects its input: that of its first weights which are not on disk."""
    devices = (parameter.device for parameter in model.parameters())
    return next((device for device in devices if device.type != "meta"), torch.device("cpu"))


def _check_placement(source: Source, dtype: str, placement: Placement) -> None:
    if placement.device_map not in (None, "auto"):
        raise InputError(f"device_map {placement.device_map!r} requested; expected auto, or none for one device")
    if not is_placed(dtype, placement):
        return
    what = f"dtype {dtype}" if dtype in QUANTIZED else "device_map auto"
    if source.random_seed is not None or source.adapter is not None:
        kind = "random weights" if source.adapter is None else "an adapter"
        raise InputError(
            f"{what} requested for {source.name}, which is {kind}; expected a model with weights of its own"
        )
    if dtype in QUANTIZED and find_spec("bitsandbytes") is None:
        raise InputError(f"{what} requested; install bitsandbytes with `pip install bitsandbytes`, or use bfloat16")


def _load_weights(source: Source, dtype: str, trust_remote_code: bool, placement: Placement) -> PreTrainedModel:
    from transformers import AutoModel

    options: dict[str, object] = {}
    offload = None
    if is_placed(dtype, placement):
        options["device_map"] = placement.device_map or {"": placement.device}
    if placement.device_map is not None:
        offload = tempfile.TemporaryDirectory(prefix="closerlook-")  # for layers that fit into no memory
        options["offload_folder"] = offload.name
    if dtype in QUANTIZED:
        options["quantization_config"] = _quantization(QUANTIZED[dtype])
    model, report = AutoModel.from_pretrained(
        str(source.folder),
        dtype=torch_dtype(dtype),
        trust_remote_code=trust_remote_code,
        use_safetensors=not source.pickled,
        output_loading_info=True,
        **options,
    )
    if offload is not None:
        weakref.finalize(model, offload.cleanup)
    _refuse_missing(source, report["missing_keys"])
    return model


def _quantization(bits: int) -> BitsAndBytesConfig:
    from transformers import BitsAndBytesConfig

    unused = ["pooler"]  # its weights may be missing, and what is missing cannot be quantised
    if bits == 8:
        return BitsAndBytesConfig(load_in_8bit=True, llm_int8_skip_modules=unused)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=torch.bfloat16,
        llm_int8_skip_modules=unused,
    )


def window_limit(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """The maximum number of tokens per model input, with special tokens."""
    limits = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None) or UNLIMITED]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            offset = 0 if module.padding_idx is None else module.padding_idx + 1  # RoBERTa counts positions from there
            limits.append(module.num_embeddings - offset)
    limit = min(limits)
    return int(limit) if limit < UNLIMITED else USUAL_WINDOW


def _refuse_missing(source: Source, missing: Iterable[str]) -> None:
    """Raise an error if weights are missing, which transformers would draw at random; the pooler is not used."""
    lacking = sorted(key for key in missing if "pooler" not in key)
    if lacking:
        some = ", ".join(lacking[:3]) + (" …" if len(lacking) > 3 else "")
        raise InputError(
            f"encoder {source.name}: its weights lack {len(lacking)} of the model's parameters ({some}); "
            "they belong to a different architecture than config.json says"
        )


def _adapt(model: PreTrainedModel, source: Source) -> PreTrainedModel:
    """The model with a PEFT adapter merged in; the adapter may have been trained with or without a head."""
    try:
        import peft
    except ImportError:
        raise InputError(
            f"encoder {source.name} is a PEFT adapter; install PEFT with `pip install closerlook[peft]`"
        ) from None
    folder = str(source.adapter)
    with short_errors(source.name, "adapter"):
        config = peft.PeftConfig.from_pretrained(folder, inference_mode=True)
        if config.is_prompt_learning:
            raise InputError(
                f"adapter {source.name} is a {config.peft_type}; only adapters that change weights are supported"
            )
        config.task_type = config.modules_to_save = None  # heads are not used
        weights = {
            key.replace(f"base_model.model.{model.base_model_prefix}.", "base_model.model."): value
            for key, value in peft.utils.load_peft_weights(folder, device="cpu").items()
        }
        _replace_full_modules(model, source, weights)
        adapted = peft.PeftModel(model, config)
        known = set(peft.get_peft_model_state_dict(adapted))
        lacking = known - set(weights)
        if lacking:
            raise InputError(
                f"adapter {source.name} was made for a different encoder: it lacks {len(lacking)} of the {len(known)} "
                f"weights that an adapter of {source.folder.name} needs"
            )
        peft.set_peft_model_state_dict(adapted, {key: weights[key] for key in known})
        return adapted.merge_and_unload()


def _replace_full_modules(model: torch.nn.Module, source: Source, weights: dict[str, torch.Tensor]) -> None:
    """Copy the modules that were trained in full with the adapter (`modules_to_save`) into the model."""
    own = model.state_dict()
    modules = {key.removeprefix("base_model.model."): value for key, value in weights.items() if "lora_" not in key}
    modules = {key: value for key, value in modules.items() if key in own}
    misfit = next((key for key, value in modules.items() if value.shape != own[key].shape), None)
    if misfit is not None:
        raise InputError(
            f"adapter {source.name} has {misfit} of shape {tuple(modules[misfit].shape)}; "
            f"expected {tuple(own[misfit].shape)}, as in {source.folder.name}"
        )
    model.load_state_dict(modules, strict=False)


@contextmanager
def short_errors(name: str, part: str) -> Iterator[None]:
    """Silence the warnings and progress bars of transformers, and turn its exceptions into errors of one line."""
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError
    from transformers.utils import logging

    library_errors = (SafetensorError, StrictDataclassError)
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    except CloserLookError:
        raise
    except MemoryError:
        raise WorkError(f"encoder {name} does not fit into memory; choose a smaller encoder or another dtype") from None
    except torch.OutOfMemoryError:
        raise WorkError(f"encoder {name} does not fit into the device's memory; try device cpu") from None
    except (pickle.UnpicklingError, EOFError):  # torch's own message would suggest to run the code
        raise InputError(
            f"encoder {name}: its pickle file is damaged or contains more than weights, which could run code; it is "
            "not read, even with --allow-pickle: convert it to safetensors where you trust it"
        ) from None
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ImportError,
        RuntimeError,
        *library_errors,
    ) as error:
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
