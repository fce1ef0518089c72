"""TuningSettings: one object with all settings, checked when it is made, resolved for an encoder, stored as JSON."""

import json
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest

from closerlook.encoders.source import EncoderInfo
from closerlook.errors import InputError
from closerlook.study.kinds.tune import NOT_IN_TUNING, Tuning
from closerlook.tuning import TuningSettings
from closerlook.tuning.settings import DEFAULTS_BY_SIZE
from tests.tuning.tasks import small


def encoder(parameters: int = 4_000_000, layers: int = 2) -> EncoderInfo:
    return EncoderInfo(layers=layers, width=128, window=512, has_cls=True, parameters=parameters)


def test_defaults_depend_on_the_size_and_on_lora() -> None:
    sizes = (4_000_000, 110_000_000, 335_000_000)
    rates = [TuningSettings().resolve(encoder(size), "e").learning_rate for size in sizes]
    assert rates == [3e-4, 5e-5, 2e-5] == [size.learning_rate for size in DEFAULTS_BY_SIZE]
    with_lora = TuningSettings(lora=True).resolve(encoder(), "e")
    assert (with_lora.lora, with_lora.learning_rate, with_lora.batch_size) == (8, 3e-3, 32)


def test_resolving_keeps_what_was_set_and_is_the_same_twice() -> None:
    settings = TuningSettings(epochs=3, batch_size=7, layers="0,2", snapshot_layers="last").resolve(encoder(), "e")
    assert (settings.epochs, settings.batch_size, settings.layers, settings.snapshot_layers) == (3.0, 7, [0, 2], [2])
    assert settings.resolve(encoder(), "e") == settings


def test_snapshots_store_the_same_layers_as_the_ends_by_default() -> None:
    assert TuningSettings(layers=[1]).resolve(encoder(), "e").snapshot_layers == [1]


def test_resolving_names_a_layer_that_the_encoder_lacks() -> None:
    with pytest.raises(InputError, match="layer 3 requested; e has layers 0 to 2"):
        TuningSettings(snapshot_layers=3).resolve(encoder(), "e")


def test_equivalent_spellings_are_equal() -> None:
    first = TuningSettings(snapshots="every:5", splits="train", lora=True, layers=range(2), epochs=2)
    second = TuningSettings(snapshots="every: 5", splits=["train"], lora=8, layers=[0, 1], epochs=2.0)
    assert first == second
    assert TuningSettings(lora=False) == TuningSettings(lora=None)


def test_settings_cannot_be_changed_in_place() -> None:
    with pytest.raises(FrozenInstanceError):
        TuningSettings().epochs = 3  # type: ignore[misc]


def test_changing_an_unknown_setting_suggests_a_known_one() -> None:
    with pytest.raises(InputError, match=r"setting 'epoch' is unknown; did you mean epochs\?"):
        TuningSettings().change(epoch=3)
    with pytest.raises(InputError, match="setting 'zzz' is unknown; expected one of seed, epochs, "):
        TuningSettings().change(zzz=3)


@pytest.mark.parametrize("probe", [None, "toy-pos", ["toy-pos", "toy-dep"], {"toy-pos": "abc"}])
def test_settings_are_the_same_through_json(probe: Any) -> None:
    settings = TuningSettings(seed=3, probe=probe, layers=[0], snapshots=[4], trainer_arguments={"bf16": True})
    assert TuningSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


def test_changing_the_dictionary_does_not_change_the_settings() -> None:
    settings = TuningSettings(layers=[0], trainer_arguments={"bf16": True})
    values: dict[str, Any] = settings.to_dict()
    values["layers"].append(1)
    values["trainer_arguments"]["bf16"] = False
    assert settings == TuningSettings(layers=[0], trainer_arguments={"bf16": True})


def test_probed_tasks_are_written_by_name() -> None:
    assert TuningSettings(probe=small()).to_dict()["probe"] == "small-token"
    assert TuningSettings(probe=[small(), Path("a.csv")]).to_dict()["probe"] == ["small-token", "a.csv"]


def test_settings_of_older_files_call_snapshot_layers_between() -> None:
    values = TuningSettings(snapshot_layers=[2]).to_dict()
    values["between"] = values.pop("snapshot_layers")
    assert TuningSettings.from_dict(values).snapshot_layers == [2]


def test_settings_of_older_files_have_no_template_and_single_precision() -> None:
    values = TuningSettings().to_dict()
    del values["template"], values["dtype"]
    assert TuningSettings.from_dict(values) == TuningSettings()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "float16"}, "dtype is 'float16'; expected float32, or bfloat16 with lora"),
        ({"dtype": "bfloat16"}, "dtype bfloat16 requested without lora"),
        ({"template": "Question:"}, "template 'Question:' given; expected a text with {text} once"),
    ],
)
def test_precisions_and_templates_that_cannot_be_used_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TuningSettings(**changes)


def test_a_cells_key_contains_every_setting_and_the_content_of_the_probed_tasks() -> None:
    content = TuningSettings(probe={"a": "2", "b": "1"}).resolve(encoder(), "e").key_content()
    names = {field.name for field in fields(TuningSettings)}
    assert set(content) == names - {"snapshot_layers", "template", "dtype"} | {"between"}
    assert content["probe"] == ["1", "2"]
    changed = TuningSettings(probe={}, template="Q: {text}", lora=4, dtype="bfloat16").resolve(encoder(), "e")
    assert changed.key_content()["template"] == "Q: {text}"
    assert changed.key_content()["dtype"] == "bfloat16"
    with pytest.raises(ValueError, match="probe holds no content hashes"):
        TuningSettings(probe="toy-pos").key_content()


def test_epochs_that_are_not_resolved_are_not_taken_for_a_number() -> None:
    with pytest.raises(ValueError, match="call resolve first"):
        _ = TuningSettings(batch_size=3).epochs_and_batch_size


def test_the_plans_tuning_has_the_fields_of_the_settings_and_their_defaults() -> None:
    names = {field.name for field in fields(TuningSettings)}
    assert names >= NOT_IN_TUNING
    assert set(Tuning.model_fields) == (names - NOT_IN_TUNING) | {"methods"}
    assert TuningSettings(**Tuning().model_dump(exclude={"methods"})) == TuningSettings()


def test_trainer_arguments_must_be_names_and_values() -> None:
    with pytest.raises(InputError, match=r"trainer_arguments is \['bf16'\]; expected names and values"):
        TuningSettings(trainer_arguments=["bf16"])  # type: ignore[arg-type]
