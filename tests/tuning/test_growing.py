"""When the training of a folder is over, by files as a Trainer writes them."""

import json
import os
from pathlib import Path

from closerlook.tuning.growing import checkpoint_folders, ended, has_checkpoint, list_files


def checkpoint(out: Path, step: int, last: int = 6) -> Path:
    folder = out / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step, "max_steps": last}))
    os.utime(folder / "trainer_state.json", (1000 + step, 1000 + step))
    return folder


def test_a_training_is_over_at_its_last_step(tmp_path: Path) -> None:
    assert ended(str(tmp_path)) is None
    checkpoint(tmp_path, 2)
    assert ended(str(tmp_path)) is None
    checkpoint(tmp_path, 6)
    assert ended(str(tmp_path)) == "checkpoint-6 is at the last step, 6"
    assert ended(f"{tmp_path}/checkpoint-*") == "checkpoint-6 is at the last step, 6"
    assert ended([f"{tmp_path}/checkpoint-2"]) is None


def test_a_training_that_stopped_early_is_over_when_its_final_weights_are_newer_than_its_checkpoints(
    tmp_path: Path,
) -> None:
    checkpoint(tmp_path, 4)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"weights")
    os.utime(weights, (1003, 1003))  # of an earlier training in the same folder
    assert ended(str(tmp_path)) is None
    os.utime(weights, (1005, 1005))
    assert "model.safetensors was written after the last checkpoint" in str(ended(str(tmp_path)))


def test_a_finished_run_of_tune_is_over(tmp_path: Path) -> None:
    assert not has_checkpoint(str(tmp_path))
    (tmp_path / "tuned.json").write_text("{}")
    assert has_checkpoint(str(tmp_path))
    assert "tuned.json" in str(ended(str(tmp_path)))


def test_a_checkpoint_without_a_state_or_with_half_of_it_does_not_end_a_training(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, 6)
    (folder / "trainer_state.json").write_text('{"global_step": 6, "max')
    assert ended(str(tmp_path)) is None
    (folder / "trainer_state.json").unlink()
    assert ended(str(tmp_path)) is None
    assert ended(str(tmp_path / "nowhere")) is None


def test_folders_are_in_the_order_of_steps_and_growing_files_are_seen(tmp_path: Path) -> None:
    for step in (10, 2):
        checkpoint(tmp_path, step)
    assert [folder.name for folder in checkpoint_folders(str(tmp_path))] == ["checkpoint-2", "checkpoint-10"]
    before = list_files(str(tmp_path))
    assert list_files(str(tmp_path)) == before
    (tmp_path / "log.txt").write_text("not part of a checkpoint")
    assert list_files(str(tmp_path)) == before
    (tmp_path / "checkpoint-2" / "model.safetensors").write_bytes(b"w")
    assert list_files(str(tmp_path)) != before
