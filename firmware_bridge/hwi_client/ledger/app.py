"""Which app is open on a Ledger, and whether it is the Bitcoin app of the right network (S14).

A person can switch apps at any time, and HWI never compares the app with its `--chain`: a client for mainnet signs with
the testnet app. The question costs one exchange, so that it stands before everything else that a device is asked.
"""

from dataclasses import dataclass
from typing import Any, Final

from hwilib.devices.ledger_bitcoin.client import createClient
from hwilib.devices.ledger_bitcoin.client_base import Client
from hwilib.devices.ledger_bitcoin.client_legacy import LegacyClient

from firmware_bridge.errors import Busy, DeviceFault, Locked, WrongApp
from firmware_bridge.hwi_client.base import chain_of
from firmware_bridge.hwi_client.ledger.link import Link
from firmware_bridge.hwi_client.ledger.status import DENIED, INTERRUPTED, NOT_SUPPORTED, OK, status_of
from firmware_bridge.port import DeviceFailure
from multisig import Network, NetworkKind

_MAINNET_APPS: Final = frozenset({"Bitcoin", "Bitcoin Legacy"})
_TESTNET_APPS: Final = frozenset({"Bitcoin Test", "Bitcoin Test Legacy"})
# What an emulator says that was started without the app's name: the keys have to tell the network.
_NAMELESS: Final = "app"


@dataclass(frozen=True)
class App:
    name: str
    version: str


# What no app says to this question in any other case: the system's own software while the device is locked, and an app
# whose earlier host was killed, where the person has answered that host's question just now.
_ANSWERS_OF_NO_APP: Final = {
    NOT_SUPPORTED: (Locked.code, None),
    DENIED: (Busy.code, None),
    INTERRUPTED: (Busy.code, None),
    OK: (DeviceFault.code, "it does not say which app is open"),
}


def read_app(link: Link) -> App:
    """:raises DeviceFailure: the device is locked, or still busy with somebody else's command."""
    try:
        name, version, _flags = Client(link).get_version()
    except Exception as error:
        status = status_of(error)
        if status not in _ANSWERS_OF_NO_APP:
            raise
        raise DeviceFailure(*_ANSWERS_OF_NO_APP[status]) from error
    return App(name, version)


def require_network(app: App, network: Network) -> None:
    """:raises DeviceFailure: another app is open, or that of another network; a device without any app names its dashboard."""
    wanted = _MAINNET_APPS if network.kind == NetworkKind.MAINNET else _TESTNET_APPS
    if app.name not in wanted and app.name != _NAMELESS:
        raise DeviceFailure(WrongApp.code, app.name)


def make_client(link: Link, network: Network) -> Any:
    """HWI's client for what is open: versions 1.x and 2.0.x, and those that say "Legacy", speak another protocol."""
    return createClient(link, chain_of(network))


def is_legacy(client: Any) -> bool:
    return isinstance(client, LegacyClient)


def require_keys_of(client: Any, app: App, network: Network) -> None:
    """An app without a name is known by the form of its keys, and by the paths that it knows.

    :raises DeviceFailure: it is for another network.
    """
    if app.name != _NAMELESS:
        return
    try:
        key = client.get_extended_pubkey(account_path(network))
    except Exception as error:
        if status_of(error) == NOT_SUPPORTED:
            raise DeviceFailure(WrongApp.code, app.name) from error
        raise
    if key[:4] != ("xpub" if network.kind == NetworkKind.MAINNET else "tpub"):
        raise DeviceFailure(WrongApp.code, app.name)


def account_path(network: Network) -> str:
    """The first single-signature account (BIP-84), in the app's spelling."""
    return f"m/84'/{network.kind.coin_type}'/0'"
