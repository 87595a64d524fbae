"""The families of virtual devices, and how each is built and plugged in."""

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mnemonic import Mnemonic

from device_simulators.coldcard import VirtualColdcard
from device_simulators.errors import InvalidListenAddress, InvalidSeed
from device_simulators.faults import Faults
from device_simulators.ledger import VirtualLedger
from device_simulators.panel import Panel
from device_simulators.seed import Seed
from device_simulators.trezor import VirtualTrezor
from firmware_bridge.model import Endpoint, Family
from multisig import Fingerprint, Network

ENTROPY_BYTES = 16
_ANY_PORT = "127.0.0.1:0"
_COLDCARD_SOCKET = "coldcard-virtual.sock"
"""HWI splits the path at its last hyphen: a word must follow it."""


class VirtualDevice(Protocol):
    """What the makers' virtual devices have in common."""

    panel: Panel
    faults: Faults
    fingerprint: Fingerprint

    async def stop(self) -> None: ...

    def lock(self) -> None: ...

    def unlock(self) -> None: ...


@dataclass(frozen=True)
class DeviceSettings:
    """The settings of a device. A family ignores those that it does not have."""

    network: Network = Network.REGTEST
    listen: str | None = None
    """`host:port` for a Trezor or a Ledger, a socket path for a Coldcard; None picks an address that is free.
    """
    allow_keypress: bool = False
    label: str = ""
    pin: str | None = field(default=None, repr=False)
    passphrase_protection: bool = False
    wallets_file: Path | None = None
    app_name: str | None = None
    answer_seconds: float = 0.0


@dataclass(frozen=True)
class Plugged:
    """A device and how it is plugged in: at the same address each time."""

    device: VirtualDevice
    plug: Callable[[], Awaitable[Endpoint]]
    discard: Callable[[], None]
    """Remove what was made for it alone."""


def build(family: Family, seed: Seed, panel: Panel, settings: DeviceSettings) -> Plugged:
    """:raises InvalidListenAddress: not an address for this family.

    :raises ValueError: a PIN that the device cannot have, or a family without a virtual device.
    """
    builder = _BUILDERS.get(family)
    if builder is None:
        raise ValueError(f"there is no virtual {family}")
    return builder(seed, panel, settings)


def _trezor(seed: Seed, panel: Panel, settings: DeviceSettings) -> Plugged:
    device = VirtualTrezor(
        seed,
        panel,
        settings.network,
        label=settings.label,
        pin=settings.pin,
        passphrase_protection=settings.passphrase_protection,
        allow_keypress=settings.allow_keypress,
    )
    return _on_port(device, device.start, settings.listen)


def _ledger(seed: Seed, panel: Panel, settings: DeviceSettings) -> Plugged:
    device = VirtualLedger(
        seed,
        panel,
        settings.network,
        app_name=settings.app_name,
        answer_seconds=settings.answer_seconds,
    )
    return _on_port(device, device.start, settings.listen)


def _on_port(
    device: VirtualDevice, start: Callable[[str, int], Awaitable[Endpoint]], listen: str | None
) -> Plugged:
    """A port picked at the first time is kept."""
    host, port = _host_and_port(listen or _ANY_PORT)

    async def plug() -> Endpoint:
        nonlocal port
        endpoint = await start(host, port)
        _, port = _host_and_port(endpoint.place)
        return endpoint

    return Plugged(device, plug, lambda: None)


def _coldcard(seed: Seed, panel: Panel, settings: DeviceSettings) -> Plugged:
    device = VirtualColdcard(
        seed,
        panel,
        settings.network,
        allow_keypress=settings.allow_keypress,
        wallets_file=settings.wallets_file,
    )
    if settings.listen is not None:
        path = Path(settings.listen)
        return Plugged(device, lambda: device.start(path), lambda: None)
    folder = Path(tempfile.mkdtemp(prefix="virtual-"))
    return Plugged(
        device,
        lambda: device.start(folder / _COLDCARD_SOCKET),
        lambda: shutil.rmtree(folder, ignore_errors=True),
    )


_BUILDERS: dict[Family, Callable[[Seed, Panel, DeviceSettings], Plugged]] = {
    Family.TREZOR: _trezor,
    Family.COLDCARD: _coldcard,
    Family.LEDGER: _ledger,
}
FAMILIES = tuple(_BUILDERS)


def _host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit():
        raise InvalidListenAddress(f"{text!r} is not host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def load_seed(path: Path | None) -> Seed:
    """The seed of this file's words; a missing file is created with new words, readable by its owner only.

    Without a file the seed is new and forgotten at the end.

    :raises InvalidSeed: the file holds no mnemonic, others may read it, or it cannot be read or created.
    """
    words = Mnemonic("english").to_mnemonic(secrets.token_bytes(ENTROPY_BYTES))
    if path is None:
        return Seed.from_mnemonic(words)
    try:
        with contextlib.suppress(FileExistsError):
            _write_new(path, words)
        return Seed.from_mnemonic(_read_private(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSeed(f"the seed file {path} cannot be used: {error}") from error


def _write_new(path: Path, words: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(words + "\n")


def _read_private(path: Path) -> str:
    with path.open(encoding="ascii") as file:
        # Elsewhere the mode says nothing about who may read.
        if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise InvalidSeed(f"others may read the seed file {path}: restrict it (chmod 600)")
        return file.read()
