"""enumerate, and the device that a command means: from the daemon's memory, without asking a device."""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from signerd import shapes
from signerd.client import DaemonClient
from signerd.errors import HwiCode
from signerd.hwi.codes import FAMILIES, REFUSED, HwiError

# HWI's names of models, by ours. A Ledger's follows from ours.
MODELS: Mapping[str, str] = {
    "Trezor One": "trezor_1",
    "Trezor Model T": "trezor_t",
    "Trezor Safe 3": "trezor_safe 3",
    "Trezor Safe 5": "trezor_safe 5",
}
# An emulator reports only its app, and HWI takes it for this model.
_EMULATED_LEDGER: Final = "ledger_nano_s"
# Our names of networks, by HWI's. Testnets 3 and 4 share their keys and addresses.
NETWORKS: Mapping[str, str] = MappingProxyType(
    {"main": "mainnet", "test": "testnet4", "testnet4": "testnet4", "signet": "signet", "regtest": "regtest"}
)
# Devices whose PIN is typed on the host, as places of a matrix.
PIN_AT_THE_HOST: Final = frozenset({"trezor"})
_ON_ANY_CHAIN: Final = frozenset({*REFUSED, "promptpin", "sendpin"})
# HWI does not list devices with another app open, or that it cannot drive.
_PASSED_OVER: Final = frozenset({"absent", "wrong-app", "unsupported"})
_STATES: Mapping[str, HwiCode] = {
    "present": HwiCode.DEVICE_CONN_ERROR,
    "probing": HwiCode.DEVICE_BUSY,
    "busy": HwiCode.DEVICE_BUSY,
    "locked": HwiCode.DEVICE_NOT_READY,
    "uninitialised": HwiCode.DEVICE_NOT_INITIALIZED,
    "needs-passphrase": HwiCode.DEVICE_NOT_READY,
    "no-permission": HwiCode.DEVICE_CONN_ERROR,
    "ready": HwiCode.UNKNOWN_ERROR,
}
# Besides udp and webusb, the transports whose paths begin with their name (``get_path`` of trezorlib;
# SIMULATOR_PATH).
_NAMED: Final = frozenset({("tcp", "ledger"), ("tcp", "jade"), ("hid", "trezor")})
_UNKNOWN: Final = "Could not open client or get fingerprint information:"


@dataclass(frozen=True)
class Chosen:
    """The device that a command means. ``device``: None for the registered one while it is not connected.

    ``accounts``: the registered keys. ``fingerprint``: None for a device that has not reported it yet.
    """

    accounts: "shapes.AccountKeys"
    fingerprint: str | None
    device: "shapes.DeviceView | None"

    @property
    def registered(self) -> bool:
        return self.fingerprint is not None and self.fingerprint == self.accounts.fingerprint

    def require_registered(self) -> None:
        """Raises HwiError for any device but the registered one."""
        if self.accounts.fingerprint is None:
            raise HwiError(
                "no device is registered here. Connect it and run `signerd register`.",
                HwiCode.DEVICE_NOT_READY,
            )
        if not self.registered:
            raise HwiError(
                f"the registered device is {self.accounts.fingerprint}, and this is "
                f"{self.fingerprint or 'one of unknown fingerprint'}: signerd signs and shows "
                "addresses with the registered one only"
            )


def key_of(accounts: "shapes.AccountKeys", purpose: str, account: int) -> "shapes.KeyView | None":
    """``purpose``: "vault" or "profile"."""
    return next((key for key in accounts.keys if (key.purpose, key.account) == (purpose, account)), None)


def listed(daemon: DaemonClient, _chosen: None, args: Namespace) -> list[dict[str, Any]]:
    """HWI's rows. With ``--fingerprint``, only that device's: Core cannot choose between two, and stops at
    an error's row.
    """
    devices = (device for device in _devices(daemon) if _visible(device, args))
    return [_row(device) for device in devices if args.fingerprint in {None, device.fingerprint}]


def choose(daemon: DaemonClient, args: Namespace) -> Chosen:
    """Raises HwiError."""
    if not args.fingerprint and not args.device_type:
        raise HwiError(
            "You must specify a device type or fingerprint for all commands except enumerate",
            HwiCode.NO_DEVICE_TYPE,
        )
    # As HWI: beside a path only the family of a model's name counts.
    family = args.device_type.partition("_")[0].lower() if args.device_type and args.device_path else None
    if family not in {None, *FAMILIES}:
        raise HwiError("Unknown device type specified", HwiCode.UNKNOWN_DEVICE_TYPE)
    accounts = daemon.accounts()
    if args.command not in _ON_ANY_CHAIN and NETWORKS[args.chain] != (ours := accounts.network):
        name = next(name for name, network in NETWORKS.items() if network == ours)
        raise HwiError(f"signerd runs on {ours} here, and --chain says {args.chain}: give --chain {name}")
    devices = _devices(daemon)
    for device in devices:
        if _meant(device, args, family or args.device_type) and _visible(device, args):
            return Chosen(accounts, device.fingerprint, device)
    # The registered keys need no device; a connected one is not the one that is meant.
    is_connected = any(device.fingerprint == args.fingerprint for device in devices)
    if args.fingerprint and args.fingerprint == accounts.fingerprint and not is_connected:
        return Chosen(accounts, args.fingerprint, None)
    raise HwiError("Could not find device with specified fingerprint or type", HwiCode.DEVICE_CONN_ERROR)


def present(chosen: Chosen) -> "shapes.DeviceView":
    """Raises HwiError."""
    if chosen.device is None:
        raise HwiError(f"the device {chosen.fingerprint} is not connected", HwiCode.DEVICE_CONN_ERROR)
    return chosen.device


def path_of(device: "shapes.DeviceView") -> str:
    """As HWI writes it: with the transport's name for some, else the path alone."""
    _family, kind, place = device.endpoint.split(":", 2)
    named = kind in {"udp", "webusb"} or (kind, device.family) in _NAMED
    return f"{kind}:{place}" if named else place


def model_of(device: "shapes.DeviceView") -> str:
    name = device.model.removesuffix(" (emulator)")
    if device.family == "ledger":
        model = _EMULATED_LEDGER if device.emulator else name.lower().replace(" ", "_")
    else:
        model = MODELS.get(name, device.family)
    return f"{model}_simulator" if device.emulator else model


def _devices(daemon: DaemonClient) -> "tuple[shapes.DeviceView, ...]":
    return tuple(device for device in daemon.devices() if device.state not in _PASSED_OVER)


def _row(device: "shapes.DeviceView") -> dict[str, Any]:
    asks = device.family in PIN_AT_THE_HOST
    row: dict[str, Any] = {
        "type": device.family,
        "path": path_of(device),
        "label": device.label,
        "model": model_of(device),
        "needs_pin_sent": asks and device.state == "locked",
        "needs_passphrase_sent": asks and device.state == "needs-passphrase",
    }
    if device.fingerprint is not None:
        return {**row, "fingerprint": device.fingerprint}
    why = device.detail or device.advice or f"the device is {device.state}"
    return {**row, "error": f"{_UNKNOWN} {why}", "code": _STATES[device.state]}


def _visible(device: "shapes.DeviceView", args: Namespace) -> bool:
    """As HWI: an emulator where ``--emulators`` is given, or its type and path are."""
    return not device.emulator or args.emulators or bool(args.device_type and args.device_path)


def _meant(device: "shapes.DeviceView", args: Namespace, kind: str | None) -> bool:
    return (
        args.fingerprint in {None, device.fingerprint}
        and kind in {None, device.family, model_of(device)}
        and args.device_path in {None, path_of(device)}
    )
