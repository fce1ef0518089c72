"""The encoder of an extraction, by name or loaded; loaded only if vectors must be computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from closerlook.encoders.source import LARGE, EncoderInfo, Source, choose_dtype, resolve
from closerlook.encoders.template import parse_template
from closerlook.representations.space import Provenance
from closerlook.representations.store import Store, content_key

if TYPE_CHECKING:  # torch is imported only if a space must be computed
    from closerlook.encoders.encoder import Encoder


@dataclass(frozen=True)
class LoadingOptions:
    """Options for loading an encoder, see `extract`."""

    device: str = "auto"
    dtype: str = "auto"
    device_map: str | None = None
    template: str | None = None
    trust_remote_code: bool = False


@dataclass
class EncoderRequest:
    """The requested encoder. It is loaded only when needed, so that reading spaces from the store imports no torch."""

    provenance: Provenance
    source: Source | None
    encoder: Encoder | None
    options: LoadingOptions

    def info(self, store: Store, window: int | None) -> EncoderInfo:
        """The layers, window and other facts about the encoder, which extraction needs.

        They are read from the store. If they are missing, the model is loaded and they are saved in the store.
        """
        if self.encoder is not None:
            return self.encoder.info
        info = self.stored_info(store, window)
        if info is None:
            info = self.load(window).info
            store.save_info(self._info_key(window), info)
        return info

    def stored_info(self, store: Store, window: int | None) -> EncoderInfo | None:
        """The facts about the encoder in the store; None if they are missing."""
        return store.load_info(self._info_key(window))

    def _info_key(self, window: int | None) -> str:
        stated = None if self.source is None else self.source.sentence_pool  # in no file of the fingerprint
        own = {} if stated is None else {"sentence_pool": stated}
        return content_key({"facts": self.provenance.weights, "window": window, **own})

    def load(self, window: int | None) -> Encoder:
        """The loaded encoder; its files are read at the first call."""
        if self.encoder is None:
            from closerlook.encoders.encoder import Encoder

            assert self.source is not None  # noqa: S101 - for mypy: either an encoder or a source is given
            self.encoder = Encoder.load(
                self.source,
                device=self.options.device,
                dtype=self.provenance.dtype or "auto",
                device_map=self.options.device_map,
                window=window,
                template=self.options.template,
                trust_remote_code=self.options.trust_remote_code,
            )
        return self.encoder


def request_encoder(
    encoder: str | Encoder, options: LoadingOptions, *, seed: int, allow_pickle: bool
) -> EncoderRequest:
    """The requested encoder, whose files are found but not loaded. encoder: a name, or a loaded encoder."""
    if not isinstance(encoder, str):
        provenance = Provenance(
            encoder=encoder.name,
            weights=encoder.fingerprint,
            checkpoint=encoder.checkpoint,
            seed=encoder.seed,
            dtype=encoder.dtype,
            template=encoder.template,
        )
        return EncoderRequest(provenance, None, encoder, options)
    parse_template(options.template)
    source = resolve(encoder, seed=seed, allow_pickle=allow_pickle, trust_remote_code=options.trust_remote_code)
    provenance = Provenance(
        encoder=source.name,
        weights=source.fingerprint,
        checkpoint=source.revision,
        seed=source.random_seed,
        dtype=dtype_for(source, options.dtype, options.device),
        template=options.template,
    )
    return EncoderRequest(provenance, source, None, options)


@overload
def encoder_info(source: Source, store: Store, *, device: str = "auto") -> EncoderInfo: ...
@overload
def encoder_info(source: Source, store: Store, *, device: str = "auto", load: bool) -> EncoderInfo | None: ...
def encoder_info(source: Source, store: Store, *, device: str = "auto", load: bool = True) -> EncoderInfo | None:
    """The facts about an encoder that a plan needs, from the store or else from the model; writes nothing.

    load: whether the model may be loaded; if not, the result is None if the store does not have the facts.
    """
    provenance = Provenance(encoder=source.name, weights=source.fingerprint, dtype=dtype_for(source, "auto", device))
    request = EncoderRequest(provenance, source, None, LoadingOptions(device))
    return request.stored_info(store, None) or (request.load(None).info if load else None)


def dtype_for(source: Source, dtype: str, device: str) -> str:
    """The precision in which an encoder computes on a device, with 'auto' resolved."""
    return choose_dtype(dtype, source.half_parameters, on_cpu=_on_cpu(source, device))


def _on_cpu(source: Source, device: str) -> bool:
    """Whether the encoder runs on a CPU, as `choose_dtype` needs it.

    For an encoder that is not large, the answer makes no difference. It is then True, and no device is chosen, since
    that would import torch.
    """
    if source.half_parameters < LARGE:
        return True
    from closerlook.encoders.loading import choose_device

    return choose_device(device).type == "cpu"
