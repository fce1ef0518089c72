"""PEFT adapters are merged in, wherever they were trained, and never silently ignored."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import peft
import pytest
import torch
import transformers as hf

from closerlook.encoders.encoder import Encoder
from closerlook.encoders.source import resolve
from closerlook.errors import InputError, WorkError
from tests.encoders.test_encoder import TEXTS, vectors

Folder = Callable[[str], Path]


def adapter(base: Path, folder: Path, *, head: bool, whole: list[str] | None = None) -> Path:
    """A LoRA adapter with weights that change something, saved as PEFT does."""
    kind = hf.AutoModelForTokenClassification if head else hf.AutoModel
    model = kind.from_pretrained(base, **({"num_labels": 3} if head else {}))
    config = peft.LoraConfig(
        r=2, target_modules=["query", "value"], task_type="TOKEN_CLS" if head else None, modules_to_save=whole
    )
    adapted = peft.get_peft_model(model, config)
    torch.manual_seed(1)
    with torch.no_grad():
        for key, value in adapted.named_parameters():
            if "lora_B" in key or "modules_to_save" in key:
                value.normal_()
    adapted.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("whole", [None, ["word_embeddings"]])
@pytest.mark.parametrize("head", [False, True])
def test_an_adapter_changes_the_vectors_as_peft_does(
    family: Folder, tmp_path: Path, head: bool, whole: list[str] | None
) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=head, whole=whole)
    loaded = Encoder.load(str(folder))
    kind = hf.AutoModelForTokenClassification if head else hf.AutoModel
    base = kind.from_pretrained(family("bert"), **({"num_labels": 3} if head else {}))
    reference = peft.PeftModel.from_pretrained(base, folder).eval()
    ids = loaded.tokenizer("The quick brown fox", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = reference(ids, output_hidden_states=True).hidden_states
        result = loaded.hidden_states(ids.tolist())
    for states, expected_states in zip(result, expected, strict=True):
        torch.testing.assert_close(states, expected_states)
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
    with pytest.raises(InputError, match="adapter lora was made for a different encoder: it lacks 8 of the 20 weights"):
        Encoder.load(str(folder))


def test_a_pickled_adapter_is_refused(family: Folder, tmp_path: Path) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=False)
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(InputError, match="pass --allow-pickle"):
        Encoder.load(str(folder))


def test_an_adapter_without_weights_names_the_files_of_adapters(family: Folder, tmp_path: Path) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=False)
    (folder / "adapter_model.safetensors").unlink()
    for allow_pickle in (False, True):
        with pytest.raises(InputError, match=r"expected adapter_model\.safetensors or adapter_model\.bin$"):
            resolve(str(folder), allow_pickle=allow_pickle)


def test_a_prompt_adapter_is_refused(family: Folder, tmp_path: Path) -> None:
    model = hf.AutoModelForTokenClassification.from_pretrained(family("bert"), num_labels=3)
    config = peft.PrefixTuningConfig(task_type="TOKEN_CLS", num_virtual_tokens=2)
    peft.get_peft_model(model, config).save_pretrained(tmp_path / "prefix")
    with pytest.raises(InputError, match="only adapters that change weights are supported"):
        Encoder.load(str(tmp_path / "prefix"))


def test_an_adapter_without_base_is_refused(family: Folder, tmp_path: Path) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=False)
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(InputError, match=r"adapter_config.json names no base_model_name_or_path"):
        resolve(str(folder))
    (folder / "adapter_config.json").write_text("[")
    with pytest.raises(InputError, match="cannot be read as JSON"):
        resolve(str(folder))


def test_an_adapter_on_an_adapter_is_refused(family: Folder, tmp_path: Path) -> None:
    inner = adapter(family("bert"), tmp_path / "inner", head=False)
    outer = shutil.copytree(inner, tmp_path / "outer")
    described = json.loads((outer / "adapter_config.json").read_text())
    for base in (inner, outer):
        (outer / "adapter_config.json").write_text(json.dumps(described | {"base_model_name_or_path": str(base)}))
        with pytest.raises(InputError, match="adapter .* has another adapter as its base"):
            resolve(str(outer))


def test_a_folder_with_a_model_and_an_adapter_is_refused(family: Folder, tmp_path: Path) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=False)
    shutil.copy(family("bert") / "config.json", folder)
    with pytest.raises(InputError, match="contains both a model and an adapter"):
        resolve(str(folder))


def test_the_adapters_own_tokenizer_is_used_and_part_of_the_fingerprint(family: Folder, tmp_path: Path) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=False)
    before = resolve(str(folder)).fingerprint
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(family("bert-cased") / file, folder)
    assert resolve(str(folder)).fingerprint != before
    assert Encoder.load(str(folder)).tokenizer.tokenize("The") == ["The"]


def test_the_revision_of_the_base_is_requested(family: Folder, tmp_path: Path) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=False)
    described = json.loads((folder / "adapter_config.json").read_text())
    described |= {"base_model_name_or_path": "owner/name", "revision": "v7"}
    (folder / "adapter_config.json").write_text(json.dumps(described))
    with pytest.raises(WorkError, match="encoder owner/name@v7 cannot be downloaded from the hub"):
        resolve(str(folder))


def test_a_wrapped_peft_model_is_read_with_its_adapter(family: Folder, tmp_path: Path) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=True)
    base = hf.AutoModelForTokenClassification.from_pretrained(family("bert"), num_labels=3)
    model = peft.PeftModel.from_pretrained(base, folder)
    encoder = Encoder.wrap(model, hf.AutoTokenizer.from_pretrained(family("bert")), name="mine")
    np.testing.assert_allclose(vectors(encoder, TEXTS), vectors(Encoder.load(str(folder)), TEXTS), atol=1e-5)


def test_without_peft_the_message_says_how_to_install_it(
    family: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = adapter(family("bert"), tmp_path / "lora", head=False)
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(InputError, match=r"install PEFT with `pip install closerlook\[peft\]`"):
        Encoder.load(str(folder))
