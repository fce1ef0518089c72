"""Encoders that are large for the machine: smaller batches when memory runs out, devices, disk, quantised weights."""

import logging
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from transformers.integrations import accelerate

from closerlook.encoders.encoder import LARGE_ON_CPU, Encoder
from closerlook.encoders.source import EMBEDDED, resolve
from closerlook.errors import InputError, WorkError
from closerlook.representations.extract import extract
from closerlook.tasks.task import Task

Folder = Callable[[str], Path]

TEXTS = [f"The quick brown fox number {i} ran back to the house" for i in range(40)]
TASK = Task.build("t", "sentence", {"train": [(text, [((), f"L{i % 2}")]) for i, text in enumerate(TEXTS)]})
CLOSE = 4e-5


def limited(encoder: Encoder, tokens: int) -> list[int]:
    """Let the encoder run out of memory for more than that many tokens; the sizes of all its batches."""
    sizes: list[int] = []

    def refuse(_: torch.nn.Module, arguments: Any, named: dict[str, Any]) -> None:
        sizes.append(named["input_ids"].numel())
        if sizes[-1] > tokens:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    encoder.model.register_forward_pre_hook(refuse, with_kwargs=True)
    return sizes


def test_batches_are_halved_when_memory_runs_out(family: Folder, caplog: pytest.LogCaptureFixture) -> None:
    folder = str(family("llama"))
    expected = extract(folder, TASK, layers="last", pool="last")[0].X
    encoder = Encoder.load(folder)
    sizes = limited(encoder, 100)
    with caplog.at_level(logging.WARNING, logger="closerlook"):
        space = extract(encoder, TASK, layers="last", pool="last+normalized", batch_tokens=1000)[0]
    assert max(sizes) > 400  # the first batches did not fit
    assert sum(size > 100 for size in sizes) == len(caplog.messages) < 5
    assert "out of memory with" in caplog.text
    np.testing.assert_allclose(space.X, expected / np.linalg.norm(expected, axis=1)[:, None], atol=CLOSE)


def test_a_text_that_does_not_fit_alone_is_one_clear_line(family: Folder) -> None:
    encoder = Encoder.load(str(family("llama")))
    limited(encoder, 5)
    with pytest.raises(WorkError, match="cpu is out of memory even with one text in a batch"):
        extract(encoder, TASK, layers="last")


def test_other_errors_are_not_taken_for_a_lack_of_memory(family: Folder) -> None:
    encoder = Encoder.load(str(family("bert")))

    def fail(*_: Any) -> None:
        raise RuntimeError("shapes do not match")

    encoder.model.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        extract(encoder, TASK, layers="last")


def test_large_encoders_have_small_batches_on_a_cpu() -> None:
    encoder = Encoder.load(EMBEDDED)
    assert encoder.info.parameters < LARGE_ON_CPU[0]
    assert encoder.batch_tokens == 2048
    encoder.info.__dict__["parameters"] = LARGE_ON_CPU[0]
    assert encoder.batch_tokens == LARGE_ON_CPU[1]


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_spread_model_gives_the_same_vectors(
    family: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: bool
) -> None:
    """Also if most of its layers are on disk, because memory is too small for them."""
    folder = str(family("llama"))
    if on_disk:
        size = (family("llama") / "model.safetensors").stat().st_size
        monkeypatch.setattr(accelerate, "get_max_memory", lambda *_: {"cpu": int(size * 0.7)})
    expected = [space.X for space in extract(folder, TASK)]
    encoder = Encoder.load(folder, device="cpu", device_map="auto")
    is_on_disk = [parameter.is_meta for parameter in encoder.model.parameters()]
    assert any(is_on_disk) == on_disk
    assert encoder.fingerprint == resolve(folder).fingerprint
    for space, rows in zip(extract(encoder, TASK, store=tmp_path), expected, strict=True):
        np.testing.assert_allclose(space.X, rows, atol=CLOSE)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("bert", {"device_map": "balanced"}, "device_map 'balanced' requested; expected auto"),
        ("random:bert", {"device_map": "auto"}, "device_map auto requested for random:bert, which is random weights"),
        ("random:bert", {"dtype": "int8"}, "dtype int8 requested for random:bert, which is random weights"),
    ],
)
def test_placements_that_cannot_be_made_are_refused(
    family: Folder, name: str, options: dict[str, Any], message: str
) -> None:
    folder = name.replace("bert", str(family("bert")))
    with pytest.raises(InputError, match=message):
        Encoder.load(folder, **options)


@pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed")
@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_quantised_weights_need_bitsandbytes(family: Folder, dtype: str) -> None:
    with pytest.raises(InputError, match=f"dtype {dtype} requested; install bitsandbytes with `pip install bitsandb"):
        Encoder.load(str(family("llama")), dtype=dtype)


@pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed")
@pytest.mark.parametrize(("dtype", "option"), [("int8", "load_in_8bit"), ("int4", "load_in_4bit")])
def test_quantised_weights_give_the_vectors_of_a_plain_quantised_model(dtype: str, option: str) -> None:
    folder = str(resolve(EMBEDDED).folder)
    spaces = [extract(folder, TASK, layers="last", pool="cls+normalized", dtype=kind)[0] for kind in ("float32", dtype)]
    assert spaces[1].provenance.dtype == dtype
    config = hf.BitsAndBytesConfig(
        **{option: True},
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=torch.bfloat16,
        llm_int8_skip_modules=["pooler"],
    )
    model = hf.AutoModel.from_pretrained(
        folder, quantization_config=config, device_map={"": "cpu"}, dtype=torch.bfloat16
    )
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        rows = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 0].float() for text in TEXTS]
    expected = torch.stack([row / row.norm() for row in rows]).numpy()
    np.testing.assert_allclose(spaces[1].X, expected, atol=0.01)
    assert np.abs(spaces[0].X - expected).max() > 0.005  # the vectors of exact weights are different


MEMORY = """
import resource, sys
from closerlook.representations.extract import extract
from closerlook.tasks.task import Task

text = "rain falls on the stone house near the river " * 6
task = Task.build("t", "sentence", {"train": [(f"{text} {i}", [((), f"L{i % 2}")]) for i in range(12)]})
extract(sys.argv[1], task, dtype="bfloat16", device="cpu", pool="last", store=sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.slow
def test_a_decoder_of_a_billion_parameters_takes_little_more_memory_than_its_weights(tmp_path: Path) -> None:
    config = hf.LlamaConfig(
        vocab_size=30522,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=512,
    )
    with torch.device("meta"):
        model = hf.AutoModel.from_config(config, dtype=torch.bfloat16)
    model = model.to_empty(device="cpu")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.02) if parameter.ndim > 1 else parameter.fill_(1.0)
    model.save_pretrained(tmp_path / "llama")
    hf.AutoTokenizer.from_pretrained(resolve(EMBEDDED).folder).save_pretrained(tmp_path / "llama")
    weights = sum(parameter.numel() for parameter in model.parameters()) * 2
    del model
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "llama"), str(tmp_path / "store")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert weights > 2e9
    assert int(run.stdout.split()[-1]) < 1.3 * weights
