"""A KeepKey: the virtual Trezor One renamed, without sessions, with features that tell what is cached."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from device_simulators.panel import Panel
from device_simulators.seed import Seed
from device_simulators.trezor.device import DEFAULT_HOST, VirtualTrezor
from device_simulators.trezor.dispatch import Dispatcher
from device_simulators.trezor.messages import NUMBERS, Features, Initialize
from device_simulators.trezor.wire import Kind, Message, encode, optional, to_chunks
from device_simulators.trezor.work import Work
from firmware_bridge.model import Endpoint, Family
from multisig import Network

_THE_SESSION = b"\x00" * 32


@dataclass(frozen=True, kw_only=True)
class KeepKeyFeatures(Features):
    passphrase_cached: bool | None = optional(17, Kind.BOOL)


class _Dispatcher(Dispatcher):
    """One session for all hosts; `Initialize` ends it (fsm_msgInitialize of the firmware)."""

    @property
    def features(self) -> Features:
        return replace(
            super().features, passphrase_cached=self._access._sessions.get(_THE_SESSION) is not None
        )

    def _session(self, _wanted: bytes | None) -> bytes:
        self._access._sessions.setdefault(_THE_SESSION, None)
        return _THE_SESSION

    def _initialize(self, _work: Work, _message: Initialize) -> Features:
        self._access._sessions.clear()
        return self.features


class VirtualKeepKey(VirtualTrezor):
    def __init__(self, seed: Seed, panel: Panel, network: Network, **options: Any) -> None:
        vendor = options.pop("vendor", "keepkey.com")
        super().__init__(seed, panel, network, **options)
        told = self._dispatcher._features
        self._dispatcher = _Dispatcher(
            model=self._dispatcher._model,
            features=KeepKeyFeatures(
                **{
                    **_values(told),
                    "vendor": vendor,
                    "model": "K1-14AM",
                    "capabilities": (),
                    "major_version": 7,
                    "minor_version": 10,
                    "patch_version": 0,
                }
            ),
            access=self._access,
            panel=panel,
            around=self._dispatcher._around,
        )

    async def start(self, host: str = DEFAULT_HOST, port: int = 0) -> Endpoint:
        return Endpoint(Family.KEEPKEY, (await super().start(host, port)).address)

    def _send(self, message: Message) -> None:
        if not isinstance(message, KeepKeyFeatures):
            super()._send(message)
            return
        for chunk in to_chunks(NUMBERS[Features], encode(message)):
            self._write(chunk)


def _values(message: Message) -> Mapping[str, Any]:
    return {field.name: getattr(message, field.name) for field in fields(message)}
