"""PEFT adapters are merged in, wherever they were trained, and never silently ignored."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import peft
import pytest
import torch
import transformers as hf

from closerlook.encoders.encoder import Encoder
from closerlook.encoders.source import resolve
from closerlook.errors import InputError
from tests.encoders.test_encoder import TEXTS, vectors

Folder = Callable[[str], Path]


def adapter(base: Path, folder: Path, *, head: bool) -> Path:
    """A LoRA adapter with weights that change something, saved as PEFT does."""
    kind = hf.AutoModelForTokenClassification if head else hf.AutoModel
    model = kind.from_pretrained(base, **({"num_labels": 3} if head else {}))
    config = peft.LoraConfig(r=2, target_modules=["query", "value"], task_type="TOKEN_CLS" if head else None)
    adapted = peft.get_peft_model(model, config)
    torch.manual_seed(1)
    with torch.no_grad():
        for key, value in adapted.named_parameters():
            if "lora_B" in key:
                value.normal_()
    adapted.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("head", [False, True])
def test_an_adapter_changes_the_vectors_as_peft_does(family: Folder, tmp_path: Path, head: bool) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=head)
    loaded = Encoder.load(str(folder))
    kind = hf.AutoModelForTokenClassification if head else hf.AutoModel
    base = kind.from_pretrained(family("bert"), **({"num_labels": 3} if head else {}))
    reference = peft.PeftModel.from_pretrained(base, folder).eval()
    ids = loaded.tokenizer("The quick brown fox", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = reference(ids, output_hidden_states=True).hidden_states
        found = loaded.hidden_states(ids.tolist())
    torch.testing.assert_close(found[-1], expected[-1])
    assert not np.allclose(vectors(loaded, TEXTS[:1]), vectors(Encoder.load(str(family("bert"))), TEXTS[:1]))
    assert loaded.name == "lora"


def test_fingerprint_follows_base_and_adapter(family: Folder, tmp_path: Path) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=False)
    assert resolve(str(folder)).fingerprint != resolve(str(family("bert"))).fingerprint
    before = resolve(str(folder)).fingerprint
    blob = bytearray((folder / "adapter_model.safetensors").read_bytes())
    blob[-1] ^= 1
    (folder / "adapter_model.safetensors").write_bytes(blob)
    assert resolve(str(folder)).fingerprint != before


def test_an_adapter_for_another_encoder_is_refused(family: Folder, tmp_path: Path) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=False)
    other = shutil.copytree(family("bert"), tmp_path / "deeper")
    config = hf.BertConfig.from_pretrained(other, num_hidden_layers=5)
    hf.BertModel(config).save_pretrained(other)
    described = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(described | {"base_model_name_or_path": str(other)}))
    with pytest.raises(InputError, match="adapter lora was made for another encoder: 8 of its 20 weights are missing"):
        Encoder.load(str(folder))


def test_a_pickled_adapter_is_refused(family: Folder, tmp_path: Path) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=False)
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(InputError, match="pass --allow-pickle"):
        Encoder.load(str(folder))


def test_a_prompt_adapter_is_refused(family: Folder, tmp_path: Path) -> None:
    model = hf.AutoModelForTokenClassification.from_pretrained(family("bert"), num_labels=3)
    config = peft.PrefixTuningConfig(task_type="TOKEN_CLS", num_virtual_tokens=2)
    peft.get_peft_model(model, config).save_pretrained(tmp_path / "prefix")
    with pytest.raises(InputError, match="only those that change weights can be read"):
        Encoder.load(str(tmp_path / "prefix"))


def test_an_adapter_without_base_is_refused(family: Folder, tmp_path: Path) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=False)
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(InputError, match=r"adapter_config.json names no base_model_name_or_path"):
        resolve(str(folder))
    (folder / "adapter_config.json").write_text("[")
    with pytest.raises(InputError, match="cannot be read as JSON"):
        resolve(str(folder))
