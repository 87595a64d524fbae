"""Jade through HWI, but without the network: HWI calls the maker's PIN server to unlock it, this driver never
does.

A vault must be registered on the device before it signs for it. HWI registers one under a name of its own
when it first shows an address; here `enrol` does it, under the vault's name. Later operations find the record
by its keys.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

from hwilib.common import AddressType, Chain
from hwilib.devices.jade import JadeClient
from hwilib.devices.jadepy.jade import JadeAPI, JadeInterface
from hwilib.devices.jadepy.jade_error import JadeError
from hwilib.devices.jadepy.jade_serial import JadeSerialImpl
from hwilib.devices.jadepy.jade_tcp import JadeTCPImpl
from hwilib.hwwclient import HardwareWalletClient

from firmware_bridge import operations
from firmware_bridge.errors import (
    BridgeError,
    Busy,
    Locked,
    NotEnrolled,
    Uninitialised,
    Unsupported,
    WrongApp,
)
from firmware_bridge.hwi_client import hwi
from firmware_bridge.hwi_client.base import obstructed
from firmware_bridge.hwi_client.hwi import HwiDevice, chain_of, parse_psbt
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.protocol import DriverHost, WorkerCall, receive_exactly
from multisig import Network

# From this version on a Jade lists the cosigners of its vaults. It signs whole PSBTs since 0.1.47; HWI
# accepts 0.1.32.
_OLDEST: Final = (1, 0, 23)
_BAUD: Final = 115200
_UNLOCK: Final = (
    "Unlock it first, with its companion app or by its QR PIN unlock: "
    "this program does not contact Jade's PIN server."
)
# JADE_STATE of get_version_info that is not ready for this connection.
_OBSTACLES: Final[Mapping[str, tuple[type[BridgeError], str | None]]] = {
    "LOCKED": (Locked, _UNLOCK),
    "UNSAVED": (Uninitialised, "Its new wallet is not saved yet: finish the set-up with its app."),
    "UNINIT": (Uninitialised, None),
}
_READY: Final = frozenset({"READY", "TEMP"})
# Answers to `ping`, which a Jade gives at once even when busy.
_BUSY: Final = {
    1: "It works for another program, or shows an unanswered question.",
    2: "Its menu is open: leave the menu.",
}
_MODELS: Final = {"JADE_V2": "Jade Plus"}
# JADE_NETWORKS: the networks that a wallet was bound to when first unlocked; "ALL" is not bound yet.
_BOUND: Final = {"MAIN": "main network", "TEST": "test networks"}
_VARIANT: Final = "wsh(multi(k))"


class _Tcp(JadeTCPImpl):  # type: ignore[misc]  # HWI is untyped
    """The emulator's socket. HWI's reads from a closed one in an endless loop."""

    def read(self, n: int) -> bytes:
        return receive_exactly(self.tcp_sock, n)


class _Interface(JadeInterface):  # type: ignore[misc]  # HWI is untyped
    """Drops late answers: to requests of a killed worker, and errors about its incomplete message."""

    def __init__(self, impl: Any) -> None:
        super().__init__(impl)
        self._asked: set[str] = set()

    def write_request(self, request: Any) -> None:
        self._asked.add(request["id"])
        super().write_request(request)

    def read_cbor_message(self) -> Any:
        while (message := super().read_cbor_message())["id"] not in self._asked:
            pass
        # HWI's library calls the server that any answer names.
        if isinstance(result := message.get("result"), Mapping) and "http_request" in result:
            raise Locked(detail=_UNLOCK)
        return message


class _Hwi(JadeClient):  # type: ignore[misc]  # HWI is untyped
    """HWI's client on our connection. HWI's constructor unlocks the device over the network."""

    def __init__(self, api: JadeAPI, network: Network) -> None:
        # HWI's table has testnet 3 only, which has the same keys and addresses as testnet 4.
        chain = Chain.TEST if network == Network.TESTNET4 else chain_of(network)
        HardwareWalletClient.__init__(self, "", None, expert=False, chain=chain)
        self.jade = api
        self.fw_version = None

    @property
    def network(self) -> str:
        return str(self._network())

    def sign_tx(self, tx: Any) -> Any:
        """As HWI's for firmware that takes a PSBT. Older firmware is not supported."""
        signed = self.jade.sign_psbt(self.network, b64decode(tx.serialize(), validate=True))
        return parse_psbt(b64encode(signed).decode())


class JadeDevice(HwiDevice):
    family = Family.JADE

    def __init__(self, hwi: _Hwi, network: Network, caller: DriverHost) -> None:
        self._hwi = self._link = hwi
        self._network = network
        self._caller = caller

    def probe(self) -> operations.Probed:
        if (busy := self._busy()) is not None:
            return obstructed("Jade", busy)
        info = self._hwi.jade.get_version_info()
        model, firmware = _MODELS.get(info.get("BOARD_TYPE"), "Jade"), info["JADE_VERSION"]
        if (obstacle := self._obstacle(info)) is not None:
            return obstructed(model, obstacle, firmware)
        if info["JADE_STATE"] == "READY" and info.get("JADE_NETWORKS") not in _BOUND:
            # Reading a key would bind the wallet to our kind of network. A person must decide that.
            return operations.Probed(model, firmware=firmware)
        return operations.Probed(model, fingerprint=self.fingerprint(), firmware=firmware)

    def _obstacle(self, info: Mapping[str, Any]) -> BridgeError | None:
        state, bound = info["JADE_STATE"], info.get("JADE_NETWORKS")
        if _version(info) < _OLDEST:
            old = f"Its firmware {info['JADE_VERSION']} is too old: update it to 1.0.23 or later."
            return Unsupported(detail=old)
        if state not in _READY:
            unknown = (Unsupported, f"Its state is {state}, which HWI does not know.")
            outcome, detail = _OBSTACLES.get(state, unknown)
            return outcome(detail=detail)
        if bound in _BOUND and (bound == "MAIN") != (self._network == Network.MAINNET):
            return WrongApp(f"bound to the {_BOUND[bound]}")
        return None

    def _busy(self) -> Busy | None:
        """Any other request would wait behind an open question, also another program's."""
        try:
            doing = _BUSY.get(self._hwi.jade.ping())
        except JadeError as error:
            if error.code != JadeError.UNKNOWN_METHOD:
                raise
            return None
        return None if doing is None else Busy(detail=doing)

    def wake(self) -> None:
        """Authorise an unlocked device for this connection; a locked one stays locked.

        :raises BridgeError: it is busy, locked, or for another network.
        """
        if (busy := self._busy()) is not None:
            raise busy
        if (obstacle := self._obstacle(self._hwi.jade.get_version_info())) is not None:
            raise obstacle
        if not self._hwi.jade.auth_user(self._hwi.network):
            raise Locked(detail=_UNLOCK)

    def unlock(self) -> operations.Unlocked:
        """After the PIN entry the device asks a server through the host: that is left to its own app."""
        return operations.Unlocked(self.fingerprint(), None)

    def require_known(self, policy: operations.PolicyText) -> None:
        """A Jade signs for an unknown vault as well, but shows the change as a payment."""
        if policy.is_vault:
            self._registered_name(policy)

    def enrol(self, request: operations.Enrol) -> None:
        self.wake()
        policy = request.policy
        known = self._name_of(policy)
        if known is not None and not request.again:
            return
        name = known or policy.name
        if known is None and name in self._hwi.jade.get_registered_multisigs():
            taken = f"the device knows another vault as {name}: delete that one, or choose another name"
            raise Unsupported(detail=taken)
        self._caller.tell(*operations.CONFIRM_ENROLMENT)
        self._hwi.jade.register_multisig(
            self._hwi.network,
            name,
            _VARIANT,
            sorted_keys=True,
            threshold=policy.threshold,
            signers=_signers(policy),
        )

    def show_address(self, request: operations.ShowAddress) -> str:
        self.wake()
        policy, chain, index = request.policy, request.chain, request.index
        if not policy.is_vault:
            self._caller.tell(*operations.CONFIRM_ADDRESS)
            path = hwi.key_path(policy, chain, index)
            return str(self._hwi.display_singlesig_address(path, AddressType.WIT))
        name = self._registered_name(policy)
        self._caller.tell(*operations.CONFIRM_ADDRESS)
        suffixes = [[chain, index] for _key in policy.keys]
        return str(self._hwi.jade.get_receive_address(self._hwi.network, suffixes, multisig_name=name))

    def _registered_name(self, policy: operations.PolicyText) -> str:
        """:raises BridgeError: the device does not know the vault."""
        name = self._name_of(policy)
        if name is None:
            raise NotEnrolled
        return name

    def _name_of(self, policy: operations.PolicyText) -> str | None:
        """The vault's name on the device. It is found by its keys, and may have been given by another
        program.
        """
        return next((name for name in self._candidates(policy) if self._is(policy, name)), None)

    def _candidates(self, policy: operations.PolicyText) -> list[str]:
        """Names of registrations of the vault's shape."""
        shape = (_VARIANT, True, policy.threshold, len(policy.keys))
        return [
            name
            for name, brief in self._hwi.jade.get_registered_multisigs().items()
            if (brief["variant"], brief["sorted"], brief["threshold"], brief["num_signers"]) == shape
        ]

    def _is(self, policy: operations.PolicyText, name: str) -> bool:
        registered = self._hwi.jade.get_registered_multisig(name)["descriptor"]
        signers = registered["signers"]
        if any(signer["path"] for signer in signers):
            return False
        theirs = {(bytes(one["fingerprint"]), tuple(one["derivation"]), one["xpub"]) for one in signers}
        ours = {(key.origin.fingerprint, tuple(key.origin.path), key.pubkey) for key in hwi.keys(policy)}
        return registered["threshold"] == policy.threshold and len(signers) == len(ours) and theirs == ours


def open_device(endpoint: Endpoint, network: Network, caller: DriverHost, request: WorkerCall) -> JadeDevice:  # noqa: ARG001 - a new connection starts afresh; late answers are dropped
    # Without timeouts: the bridge keeps the deadline. Reading ends when the device leaves.
    wire = (
        _Tcp(endpoint.address, None)
        if endpoint.kind == "tcp"
        else JadeSerialImpl(endpoint.place, _BAUD, None)
    )
    api = JadeAPI(_Interface(wire))
    api.connect()
    return JadeDevice(_Hwi(api, network), network, caller)


def _version(info: Mapping[str, Any]) -> tuple[int, ...]:
    """Without the suffix after a hyphen: a release candidate has what the release has."""
    return tuple(int(part) for part in info["JADE_VERSION"].partition("-")[0].split("."))


def _signers(policy: operations.PolicyText) -> list[dict[str, Any]]:
    return [
        {
            "fingerprint": key.origin.fingerprint,
            "derivation": list(key.origin.path),
            "xpub": key.pubkey,
            "path": [],
        }
        for key in hwi.keys(policy)
    ]
