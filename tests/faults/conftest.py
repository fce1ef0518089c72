"""The small study that faults are injected into, run once without any."""

from collections.abc import Iterator

import pytest

from closerlook.encoders.encoder import Encoder
from tests.faults.small import CELLS, Study, prepare
from tests.threads import one_torch_thread


@pytest.fixture(autouse=True, scope="package")
def quick() -> Iterator[None]:
    """One torch thread, and the encoder loaded once: it takes longer than the whole study."""
    plain = Encoder.load
    loaded: dict[str, Encoder] = {}

    def load_once(source: object, **options: object) -> Encoder:
        key = f"{source} {options}"
        if key not in loaded:
            loaded[key] = plain(source, **options)  # type: ignore[arg-type]
        return loaded[key]

    with pytest.MonkeyPatch.context() as patch, one_torch_thread():
        patch.setattr(Encoder, "load", load_once)
        yield


@pytest.fixture(scope="package")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study without fine-tuning."""
    return prepare(tmp_path_factory.mktemp("faults"), tuning=None, **CELLS)
