"""Hostile model folders: files outside the folder are not read, and damaged ones are refused in one line."""

import io
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from closerlook.encoders.encoder import Encoder
from closerlook.encoders.source import resolve
from closerlook.errors import InputError

Folder = Callable[[str], Path]


def sharded(family: Folder, folder: Path, *shards: object) -> Path:
    """A copy of the model whose index lists these shards."""
    shutil.copytree(family("bert"), folder)
    (folder / "model.safetensors").rename(folder / "weights.safetensors")
    listed = {f"weight {at}": shard for at, shard in enumerate(shards)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": listed}))
    return folder


@pytest.mark.parametrize(
    "shard", ["../outside.safetensors", "/etc/hostname", "sub/../../x", "..", "", ".", "a\\b", "a\0", 5, None, ["x"]]
)
def test_shards_outside_the_folder_are_refused(family: Folder, tmp_path: Path, shard: object) -> None:
    folder = sharded(family, tmp_path / "model", "weights.safetensors", shard)
    (tmp_path / "outside.safetensors").write_bytes(b"secret")
    with pytest.raises(InputError, match="which is not a file in .*; expected names of files there"):
        resolve(str(folder))


def test_a_shard_that_links_out_of_the_folder_is_refused(family: Folder, tmp_path: Path) -> None:
    folder = sharded(family, tmp_path / "model", "link.safetensors")
    outside = tmp_path / "outside.safetensors"
    (folder / "weights.safetensors").rename(outside)
    (folder / "link.safetensors").symlink_to(outside)
    with pytest.raises(InputError, match="'link.safetensors', which is not a file in"):
        resolve(str(folder))


def test_the_links_of_the_hub_cache_are_read(family: Folder, tmp_path: Path) -> None:
    folder = sharded(family, tmp_path / "models--a--b" / "snapshots" / "1234", "model-1.safetensors")
    blobs = tmp_path / "models--a--b" / "blobs"
    blobs.mkdir()
    (folder / "weights.safetensors").rename(blobs / "abcd")
    (folder / "model-1.safetensors").symlink_to(os.path.join("..", "..", "blobs", "abcd"))
    assert resolve(str(folder)).fingerprint
    (folder / "model-1.safetensors").unlink()
    (folder / "model-1.safetensors").symlink_to(family("bert") / "model.safetensors")
    with pytest.raises(InputError, match="which is not a file in"):
        resolve(str(folder))


HALF = {"dtype": "F16", "data_offsets": [0, 2]}


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 300_000,
        b"5",
        json.dumps({"w": HALF | {"shape": "a"}}).encode(),
        json.dumps({"w": HALF | {"shape": [2**80]}}).encode(),
        json.dumps({"w": HALF | {"shape": [9] * 100_000}}).encode(),
        json.dumps({"w": HALF | {"shape": [1.5]}}).encode(),
        json.dumps({"w": 5}).encode(),
    ],
)
def test_malformed_headers_of_weights_are_refused(family: Folder, tmp_path: Path, header: bytes) -> None:
    folder = shutil.copytree(family("bert"), tmp_path / "model")
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(InputError, match="is truncated or not a safetensors file; download it again"):
        resolve(str(folder))


class RunsCode:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


def test_a_malicious_pickle_is_refused_and_runs_nothing(family: Folder, tmp_path: Path) -> None:
    folder = shutil.copytree(family("bert"), tmp_path / "model")
    (folder / "model.safetensors").unlink()
    saved = io.BytesIO()
    torch.save({"w": RunsCode(tmp_path / "ran")}, saved)
    code = pickle.dumps({"w": RunsCode(tmp_path / "ran")}, protocol=2)
    for content in (saved.getvalue(), code, b"", b"\x80", b"\x80\x02.", saved.getvalue()[:200]):
        (folder / "pytorch_model.bin").write_bytes(content)
        with pytest.raises(InputError, match="encoder test_a_malicious") as caught:
            Encoder.load(str(folder), allow_pickle=True)
        assert "\n" not in str(caught.value)
        assert "weights_only=False" not in str(caught.value)
        assert not (tmp_path / "ran").exists()
