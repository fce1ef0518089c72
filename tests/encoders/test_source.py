"""Names of encoders are resolved to files; what cannot be used is refused before anything is loaded."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from closerlook.encoders.encoder import Encoder
from closerlook.encoders.source import resolve
from closerlook.errors import InputError, WorkError

Folder = Callable[[str], Path]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "encoder '' is an empty name"),
        ("random: ", "encoder 'random: ' is an empty name"),
        ("~nobody/x", "encoder ~nobody/x: there is no such folder"),
        ("x" * 300, "is neither a folder here nor a repository"),
        ("./nowhere", "encoder ./nowhere: there is no such folder"),
        ("a/b/c", "encoder a/b/c: there is no such folder"),
        ("white space", "is neither a folder here nor a repository on the hub"),
    ],
)
def test_names_that_lead_nowhere_are_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve(name)


def test_an_encoder_that_is_not_cached_needs_the_hub() -> None:
    message = r"encoder nobody/nothing cannot be downloaded from the hub \(\w+\), and is not complete in the local hub"
    with pytest.raises(WorkError, match=message):
        resolve("nobody/nothing")


def test_a_download_that_the_disk_refuses_is_not_blamed_on_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("huggingface_hub.snapshot_download", full)
    with pytest.raises(WorkError, match=r"cannot be downloaded from the hub \(No space left on device\)"):
        resolve("nobody/nothing")


def test_a_file_or_a_folder_without_configuration_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; expected its folder"):
        resolve(str(tmp_path / "file"))
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match=r"no config.json in"):
        resolve(str(tmp_path))


def test_a_folder_without_a_tokenizer_is_refused(family: Folder, tmp_path: Path) -> None:
    """transformers would make one that knows no word, and every word would be the same."""
    folder = shutil.copytree(family("bert"), tmp_path / "bare")
    for file in ("tokenizer.json", "vocab.txt"):
        (folder / file).unlink(missing_ok=True)
    with pytest.raises(
        InputError, match=r"has no tokenizer in .*bare .*; save it there too: tokenizer.save_pretrained"
    ):
        resolve(str(folder))


def test_a_folder_without_weights_is_not_taken_for_a_pickle(family: Folder, tmp_path: Path) -> None:
    folder = shutil.copytree(family("bert"), tmp_path / "bare")
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"has no weights in .*; expected model.safetensors or pytorch_model.bin"):
        resolve(str(folder))


def test_hub_id_and_revision_are_read_from_the_hub_cache(family: Folder, tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    home = tmp_path / "models--owner--name"
    shutil.copytree(family("bert"), home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)
    (home / "refs" / "v1").write_text(commit)
    code = (
        "from closerlook.encoders.source import resolve\n"
        "for name in ('owner/name', 'owner/name@v1', 'random:owner/name@v1'):\n"
        "    source = resolve(name); print(source.name, source.revision, source.random_seed)\n"
    )
    environment = os.environ | {"HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    expected = ["owner/name None None", "owner/name@v1 v1 None", "random:owner/name@v1 v1 0"]
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", "[1]", "config.json contains a list; expected a JSON object"),
        (
            "config.json",
            '{"model_type": "bert", "num_hidden_layers": "many"}',
            "encoder odd cannot be used: .*num_hidden_layers",
        ),
        ("config.json", '{"model_type": "nonsense"}', "the (model|tokenizer) of encoder odd cannot be used"),
        ("tokenizer.json", "{}", "the tokenizer of encoder odd cannot be used"),
    ],
)
def test_odd_files_are_refused(family: Folder, tmp_path: Path, file: str, content: str, message: str) -> None:
    folder = shutil.copytree(family("bert"), tmp_path / "odd")
    (folder / file).write_text(content)
    with pytest.raises(InputError, match=message):
        Encoder.load(str(folder))


def test_an_odd_index_of_shards_is_refused(family: Folder, tmp_path: Path) -> None:
    folder = shutil.copytree(family("bert"), tmp_path / "odd")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text('{"weight_map": ["a"]}')
    with pytest.raises(InputError, match="has no weight_map; download the encoder again"):
        resolve(str(folder))


def test_the_folder_of_a_training_names_its_checkpoints(family: Folder, tmp_path: Path) -> None:
    for step in (1000, 500, 20):
        shutil.copytree(family("bert"), tmp_path / "run" / f"checkpoint-{step}")
    (tmp_path / "run" / "checkpoint-best").mkdir()
    message = (
        r"run is the folder of a training, with checkpoint-20, checkpoint-500, checkpoint-1000; give one of these "
    )
    with pytest.raises(InputError, match=message + r"folders, such as .*run/checkpoint-1000$"):
        resolve(str(tmp_path / "run"))


@pytest.mark.parametrize("prefix", ["", "random:"])
def test_a_folder_called_model_is_shown_by_its_parent(family: Folder, tmp_path: Path, prefix: str) -> None:
    folder = shutil.copytree(family("bert"), tmp_path / "mine" / "model")
    assert resolve(f"{prefix}{folder}").name == f"{prefix}mine"
