"""Ledger through HWI's own client, as far as HWI goes: it registers a vault anew at every signing."""

from collections.abc import Mapping
from typing import Any, Final

from hwilib.devices.ledger import LedgerClient

from firmware_bridge.errors import WrongApp
from firmware_bridge.hwi_client.base import Args, OpenDevice, Operation, chain_of, parse_psbt, probed
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.port import Caller, DeviceFailure, Opening
from multisig import Network

# HWI does not compare the app with the chain: a client for mainnet signs with the testnet app (S14). "app" is Speculos.
_MAINNET_APPS: Final = frozenset({"Bitcoin", "Bitcoin Legacy"})
_TESTNET_APPS: Final = frozenset({"Bitcoin Test", "Bitcoin Test Legacy"})
_ANY_APP: Final = "app"


class LedgerDevice(OpenDevice):
    family = Family.LEDGER

    def __init__(self, hwi: LedgerClient, network: Network, caller: Caller) -> None:
        self._hwi = hwi
        self._network = network
        self._caller = caller

    def operations(self) -> Mapping[str, Operation]:
        return {
            "probe": self._probe,
            "fingerprint": self._fingerprint,
            "xpubs": self._xpubs,
            "sign": self._sign,
            "sign_message": self._sign_message,
        }

    def close(self) -> None:
        self._hwi.close()

    def check_app(self) -> None:
        """:raises DeviceFailure: the open app is for another network."""
        name, _version, _flags = self._hwi.client.get_version()
        wanted = _MAINNET_APPS if self._network == Network.MAINNET else _TESTNET_APPS
        if name not in wanted and name != _ANY_APP:
            raise DeviceFailure(WrongApp.code, name)

    def _probe(self, args: Args) -> Any:
        return probed("", fingerprint=self._fingerprint(args))

    def _fingerprint(self, _args: Args) -> Any:
        return self._hwi.get_master_fingerprint().hex()

    def _xpubs(self, args: Args) -> Any:
        xpubs = [self._hwi.get_pubkey_at_path(path).to_string() for path in args["paths"]]
        return {"fingerprint": self._fingerprint(args), "xpubs": xpubs}

    def _sign(self, args: Args) -> Any:
        self._caller.tell("confirm-transaction", "Confirm the vault and the transaction on the device")
        return self._hwi.sign_tx(parse_psbt(args["psbt"])).serialize()

    def _sign_message(self, args: Args) -> Any:
        self._caller.tell("confirm-message", "Confirm the message on the device")
        return self._hwi.sign_message(args["text"], args["path"])


def open_ledger(endpoint: Endpoint, network: Network, caller: Caller, opening: Opening) -> LedgerDevice:  # noqa: ARG001 - a Ledger clears a cut-off command at the next one
    path = endpoint.address if endpoint.kind == "tcp" else endpoint.place
    device = LedgerDevice(LedgerClient(path, chain=chain_of(network)), network, caller)
    device.check_app()
    return device
