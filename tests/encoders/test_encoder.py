"""Every family of models loads by the same function, and its vectors are those that transformers computes."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

from closerlook.encoders.alignment import range_pooling
from closerlook.encoders.encoder import Encoder
from closerlook.encoders.loading import choose_device
from closerlook.encoders.source import LARGE, EncoderInfo, choose_dtype, resolve
from closerlook.errors import InputError
from tests.encoders.families import FAMILIES

Folder = Callable[[str], Path]
Load = Callable[[str], Encoder]
TEXTS = [("The", "quick", "brown", "fox"), ("She", "ran"), "a raw text of the dog", ("dog",) * 90]


def vectors(encoder: Encoder, texts: list[Any], batch_tokens: int | None = None) -> np.ndarray:
    """Every word's mean vector at every layer."""
    alignment = encoder.align(texts)
    pooling = range_pooling(alignment, alignment.word_first, alignment.word_stop, "mean")
    out = np.zeros((encoder.info.layers + 1, pooling.n, encoder.info.width), dtype=np.float32)
    for numbers, part in encoder.pooled(alignment, pooling, range(encoder.info.layers + 1), batch_tokens):
        out[:, numbers] += np.stack(part)
    return out


@pytest.mark.parametrize("name", FAMILIES)
def test_info_is_that_of_the_configuration(encoder: Load, name: str) -> None:
    has_cls = name not in {"gpt2", "llama", "t5"}
    loaded = encoder(name)
    parameters = sum(parameter.numel() for parameter in loaded.model.parameters())
    window = 512 if name == "t5" else 64
    assert loaded.info == EncoderInfo(layers=3, width=32, window=window, has_cls=has_cls, parameters=parameters)


@pytest.mark.parametrize("name", FAMILIES)
def test_layers_are_what_transformers_returns(encoder: Load, family: Folder, name: str) -> None:
    loaded = encoder(name)
    model = hf.AutoModel.from_pretrained(family(name)).eval()
    model = model.get_encoder() if name == "t5" else model
    ids = loaded.tokenizer("The quick brown fox", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = model(ids, output_hidden_states=True)
        result = loaded.hidden_states(ids.tolist())
    assert len(result) == 4
    torch.testing.assert_close(result[-1], expected.last_hidden_state)
    for layer in range(3):
        torch.testing.assert_close(result[layer], expected.hidden_states[layer])
        assert not torch.allclose(result[layer], result[layer + 1], atol=1e-3)


@pytest.mark.parametrize("name", FAMILIES)
def test_layer_zero_is_the_embedding_output(encoder: Load, name: str) -> None:
    loaded = encoder(name)
    ids = torch.tensor([[7, 8, 9]])
    with torch.no_grad():
        if hasattr(loaded.model, "embeddings"):
            words = loaded.model.embeddings(ids)
        else:
            words = loaded.model.get_input_embeddings()(ids)
            words = words + loaded.model.wpe(torch.arange(3)) if name == "gpt2" else words
        torch.testing.assert_close(loaded.hidden_states(ids.tolist())[0], words)


@pytest.mark.parametrize("name", FAMILIES)
def test_vectors_do_not_depend_on_the_batch(encoder: Load, name: str) -> None:
    together, alone = vectors(encoder(name), TEXTS), vectors(encoder(name), TEXTS, batch_tokens=1)
    np.testing.assert_allclose(together, alone, atol=2e-5)


def test_a_word_in_several_windows_of_different_batches_is_added_up(encoder: Load) -> None:
    long = [("internationalization",) * 40]
    np.testing.assert_allclose(vectors(encoder("bert"), long), vectors(encoder("bert"), long, 64), atol=2e-5)


def test_random_weights_depend_on_the_seed_alone(family: Folder) -> None:
    name = f"random:{family('bert')}"
    first, again, other = (Encoder.load(name, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(vectors(first, TEXTS[:1]), vectors(again, TEXTS[:1]))
    assert not np.allclose(vectors(first, TEXTS[:1]), vectors(other, TEXTS[:1]))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert (first.name, first.seed) == ("random:bert", 0)


def test_drawing_random_weights_leaves_the_global_generator_alone(family: Folder) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    Encoder.load(f"random:{family('bert')}")
    assert torch.equal(torch.get_rng_state(), before)


def test_random_needs_no_weights(family: Folder, tmp_path: Path) -> None:
    folder = shutil.copytree(family("bert"), tmp_path / "bare")
    (folder / "model.safetensors").unlink()
    assert Encoder.load(f"random:{folder}").info.layers == 3


def test_half_precision_files_are_computed_in_single_precision_on_a_cpu(family: Folder, tmp_path: Path) -> None:
    folder = shutil.copytree(family("bert"), tmp_path / "half")
    weights = {key: value.half() for key, value in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    loaded = Encoder.load(str(folder), device="cpu")
    assert loaded.dtype == "float32"
    assert vectors(loaded, TEXTS[:1]).dtype == np.float32
    assert Encoder.load(str(folder), device="cpu", dtype="float16").dtype == "float16"


def test_only_large_half_precision_encoders_leave_single_precision_and_only_on_an_accelerator() -> None:
    assert choose_dtype("auto", LARGE, on_cpu=False) == "bfloat16"
    assert choose_dtype("auto", LARGE, on_cpu=True) == "float32"
    assert choose_dtype("auto", LARGE - 1, on_cpu=False) == "float32"
    assert choose_dtype("float16", 0, on_cpu=True) == "float16"
    with pytest.raises(InputError, match="dtype 'int3' is unknown; expected auto, float32"):
        choose_dtype("int3", 0, on_cpu=True)


def test_fingerprint_follows_the_content_not_the_place(family: Folder, tmp_path: Path) -> None:
    copy = shutil.copytree(family("bert"), tmp_path / "elsewhere")
    before = resolve(str(family("bert"))).fingerprint
    assert resolve(str(copy)).fingerprint == before
    blob = bytearray((copy / "model.safetensors").read_bytes())
    blob[-1] ^= 1
    (copy / "model.safetensors").write_bytes(blob)
    assert resolve(str(copy)).fingerprint != before


def test_fingerprint_follows_the_tokenizer(family: Folder, tmp_path: Path) -> None:
    copy = shutil.copytree(family("bert"), tmp_path / "other")
    text = (copy / "tokenizer.json").read_text().replace('"lowercase": true', '"lowercase": false')
    (copy / "tokenizer.json").write_text(text)
    assert resolve(str(copy)).fingerprint != resolve(str(family("bert"))).fingerprint


def test_sharded_weights_are_found(family: Folder, tmp_path: Path) -> None:
    folder = shutil.copytree(family("bert"), tmp_path / "sharded")
    (folder / "model.safetensors").unlink()
    hf.AutoModel.from_pretrained(family("bert")).save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    np.testing.assert_array_equal(
        vectors(Encoder.load(str(folder)), TEXTS[:1]), vectors(Encoder.load(str(family("bert"))), TEXTS[:1])
    )
    sorted(folder.glob("model-*.safetensors"))[0].unlink()
    with pytest.raises(InputError, match=r"lists model-00001-of-\d+.safetensors, which is missing; download"):
        resolve(str(folder))


def pickled(family: Folder, tmp_path: Path) -> Path:
    folder = shutil.copytree(family("bert"), tmp_path / "pickled")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def test_a_pickle_checkpoint_is_refused_and_the_option_named(family: Folder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no safetensors weights .* pass --allow-pickle"):
        Encoder.load(str(pickled(family, tmp_path)))


def test_a_pickle_checkpoint_is_read_when_allowed(family: Folder, tmp_path: Path) -> None:
    loaded = Encoder.load(str(pickled(family, tmp_path)), allow_pickle=True)
    np.testing.assert_array_equal(vectors(loaded, TEXTS[:1]), vectors(Encoder.load(str(family("bert"))), TEXTS[:1]))


def remote_code(family: Folder, tmp_path: Path) -> Path:
    folder = shutil.copytree(family("bert"), tmp_path / "remote")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(
        "from transformers import BertConfig, BertModel\n"
        "class OwnConfig(BertConfig):\n    model_type = 'own'\n"
        "class OwnModel(BertModel):\n    config_class = OwnConfig\n"
    )
    return folder


def test_remote_code_is_refused_and_the_option_named(family: Folder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"needs code that comes with it; .* pass --trust-remote-code"):
        Encoder.load(str(remote_code(family, tmp_path)))


def test_remote_code_runs_when_trusted(family: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    loaded = Encoder.load(str(remote_code(family, tmp_path)), trust_remote_code=True)
    np.testing.assert_array_equal(vectors(loaded, TEXTS[:1]), vectors(Encoder.load(str(family("bert"))), TEXTS[:1]))


def test_weights_of_another_architecture_are_refused(family: Folder, tmp_path: Path) -> None:
    folder = shutil.copytree(family("bert"), tmp_path / "mixed")
    shutil.copy(family("gpt2") / "model.safetensors", folder)
    with pytest.raises(InputError, match=r"its weights lack \d+ of the model's parameters"):
        Encoder.load(str(folder))


def test_truncated_weights_are_refused(family: Folder, tmp_path: Path) -> None:
    folder = shutil.copytree(family("bert"), tmp_path / "torn")
    blob = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(blob[: len(blob) // 2])
    with pytest.raises(InputError, match=r"model.safetensors is truncated: it has 86,164 bytes, expected 172,328"):
        Encoder.load(str(folder))
    (folder / "model.safetensors").write_bytes(blob + b"more")
    with pytest.raises(InputError, match=r"model.safetensors is damaged: it has 172,332 bytes, expected 172,328"):
        Encoder.load(str(folder))
    (folder / "model.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(InputError, match=r"model.safetensors is truncated or not a safetensors file"):
        Encoder.load(str(folder))


@pytest.mark.parametrize("device", ["auto", "cuda:0"])
@pytest.mark.parametrize("own", ["", ":16:8"])
def test_cublas_is_asked_for_reproducible_results_as_soon_as_a_gpu_is_chosen(
    device: str, own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", own)
    if not own:
        monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    assert choose_device(device).type == "cuda"
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == (own or ":4096:8")


@pytest.mark.parametrize("device", ["cuda:99", "tpu!", "mps", "meta"])
def test_a_device_that_is_not_here_is_refused(device: str) -> None:
    if device == "mps" and torch.backends.mps.is_available():
        pytest.skip("this machine has MPS")
    with pytest.raises(InputError, match=r"device .* (is unknown|requested)"):
        Encoder.load("bert-tiny", device=device)


def test_window_can_be_narrowed_but_not_widened(family: Folder) -> None:
    folder = str(family("bert"))
    assert Encoder.load(folder, window=16).info.window == 16
    with pytest.raises(InputError, match="window 65 requested; encoder bert reads 6 to 64 tokens at a time"):
        Encoder.load(folder, window=65)
    with pytest.raises(InputError, match="window 3 requested"):
        Encoder.load(folder, window=3)


def wrapped(family: Folder, **changes: Any) -> tuple[Any, Encoder]:
    model = hf.AutoModel.from_pretrained(family("bert"), **changes)
    return model, Encoder.wrap(model, hf.AutoTokenizer.from_pretrained(family("bert")), name="mine", checkpoint="10")


def test_wrapping_a_model_gives_the_same_vectors(family: Folder) -> None:
    np.testing.assert_array_equal(vectors(wrapped(family)[1], TEXTS), vectors(Encoder.load(str(family("bert"))), TEXTS))


def test_a_model_in_training_is_read_without_dropout_and_left_in_training(family: Folder) -> None:
    model, encoder = wrapped(family)
    model.train()
    np.testing.assert_array_equal(vectors(encoder, TEXTS), vectors(Encoder.load(str(family("bert"))), TEXTS))
    assert model.training


def test_a_model_with_a_head_is_read_below_its_head(family: Folder) -> None:
    model = hf.AutoModelForTokenClassification.from_pretrained(family("bert"), num_labels=2)
    encoder = Encoder.wrap(model, hf.AutoTokenizer.from_pretrained(family("bert")), name="mine")
    np.testing.assert_array_equal(vectors(encoder, TEXTS), vectors(Encoder.load(str(family("bert"))), TEXTS))


def test_fingerprint_follows_the_weights_whether_wrapped_or_loaded(family: Folder) -> None:
    loaded = Encoder.load(str(family("bert")))
    assert loaded.fingerprint == resolve(str(family("bert"))).fingerprint
    for model, encoder in (wrapped(family), (loaded.model, loaded)):
        before = encoder.fingerprint
        assert encoder.fingerprint == before
        with torch.no_grad():
            next(model.parameters())[0, 0] += 1e-3
        assert encoder.fingerprint != before


def test_fingerprint_of_a_wrapped_model_follows_its_configuration_but_not_the_tokenizers_mood(family: Folder) -> None:
    model, encoder = wrapped(family)
    before = encoder.fingerprint
    vectors(encoder, TEXTS)  # sets truncation
    encoder.tokenizer(["a", "b c"], padding=True)
    assert encoder.fingerprint == before
    assert wrapped(family)[1].fingerprint == before
    model.config.hidden_act = "relu"
    assert encoder.fingerprint != before


def test_wrapping_leaves_the_callers_tokenizer_alone(family: Folder) -> None:
    tokenizer = hf.AutoTokenizer.from_pretrained(family("bert"))
    before = tokenizer.backend_tokenizer.to_str()
    vectors(Encoder.wrap(hf.AutoModel.from_pretrained(family("bert")), tokenizer, name="mine"), TEXTS)
    assert tokenizer.backend_tokenizer.to_str() == before


def other_model(family: Folder, tmp_path: Path, model: Any) -> str:
    folder = shutil.copytree(family("bert"), tmp_path / "other")
    model.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("layer", [0, 1])
def test_an_encoder_with_nan_weights_is_refused_with_the_layer(family: Folder, tmp_path: Path, layer: int) -> None:
    model = hf.AutoModel.from_pretrained(family("bert"))
    broken = model.embeddings if layer == 0 else model.encoder.layer[layer - 1]
    with torch.no_grad():
        list(broken.parameters())[-1].fill_(float("nan"))
    message = f"encoder other gives NaN or infinity at layer {layer} for the text 'a word' in float32; its weights may"
    with pytest.raises(InputError, match=message):
        Encoder.load(other_model(family, tmp_path, model))


def test_an_encoder_that_ignores_padding_is_refused(family: Folder, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = hf.FNetConfig(
        vocab_size=400, hidden_size=32, num_hidden_layers=2, intermediate_size=64, tpu_short_seq_length=8
    )
    with pytest.raises(InputError, match="encoder other ignores the attention mask"):
        Encoder.load(other_model(family, tmp_path, hf.FNetModel(config)))


def test_an_encoder_that_shortens_the_sequence_is_refused(family: Folder, tmp_path: Path) -> None:
    config = hf.FunnelConfig(vocab_size=400, block_sizes=[1, 1], d_model=32, n_head=2, d_head=16, d_inner=64)
    with pytest.raises(InputError, match="encoder other (changes length or width between layers|cannot be)"):
        Encoder.load(other_model(family, tmp_path, hf.FunnelBaseModel(config)))


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(family: Folder, tmp_path: Path) -> None:
    config = hf.BertConfig.from_pretrained(family("bert"), vocab_size=5)  # the special tokens alone
    with pytest.raises(
        InputError, match=r"encoder other: the tokenizer gives token \d+, the model has 5 tokens; they do not match"
    ):
        Encoder.load(other_model(family, tmp_path, hf.BertModel(config)))


def test_a_token_beyond_the_model_matters_only_where_it_occurs(family: Folder) -> None:
    model = hf.AutoModel.from_pretrained(family("bert"))
    tokenizer = hf.AutoTokenizer.from_pretrained(family("bert"))
    tokenizer.add_tokens([f"<extra{i}>" for i in range(300)])
    tokenizer.pad_token = "<extra299>"
    encoder = Encoder.wrap(model, tokenizer, name="mine")
    np.testing.assert_array_equal(vectors(encoder, TEXTS), vectors(Encoder.load(str(family("bert"))), TEXTS))
    with pytest.raises(InputError, match=r"encoder mine: the tokenizer gives token \d+, the model has 400 tokens"):
        vectors(encoder, [("<extra299>",)])


def test_a_model_that_is_no_language_model_is_refused(family: Folder, tmp_path: Path) -> None:
    config = hf.ViTConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, image_size=8, patch_size=4
    )
    with pytest.raises(InputError, match="the model of encoder other cannot be used"):
        Encoder.load(other_model(family, tmp_path, hf.ViTModel(config)))


def test_a_slow_tokenizer_is_refused(family: Folder) -> None:
    with pytest.raises(InputError, match="its tokenizer is slow; expected a fast tokenizer"):
        Encoder.wrap(hf.AutoModel.from_pretrained(family("bert")), hf.ByT5Tokenizer(), name="mine")


def test_code_that_is_trusted_is_part_of_the_fingerprint(family: Folder, tmp_path: Path) -> None:
    folder = remote_code(family, tmp_path)
    before, untrusted = (resolve(str(folder), trust_remote_code=trust).fingerprint for trust in (True, False))
    (folder / "own.py").write_text((folder / "own.py").read_text() + "\n")
    assert resolve(str(folder), trust_remote_code=True).fingerprint != before
    assert resolve(str(folder)).fingerprint == untrusted


def test_embedded_encoder_is_the_default() -> None:
    loaded = Encoder.load()
    assert loaded.name == "bert-tiny"
    assert (loaded.info.layers, loaded.info.width, loaded.info.window) == (2, 128, 512)


def test_transformers_is_left_as_talkative_as_it_was(family: Folder) -> None:
    hf.logging.set_verbosity_info()
    try:
        Encoder.load(str(family("bert")))
        assert hf.logging.get_verbosity() == hf.logging.INFO
        assert hf.logging.is_progress_bar_enabled()
    finally:
        hf.logging.set_verbosity_warning()
