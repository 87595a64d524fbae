"""Ledger through the client that HWI bundles, but not through HWI's own driver.

HWI's driver registers a vault at every signing and drops the proof: the person approves each order of keys in
the scripts, and each pass. Here the person approves a vault once, the caller keeps the proof, and one pass
signs all inputs.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Final

from firmware_bridge import operations
from firmware_bridge.errors import BridgeError, DeviceFault, Locked, Uninitialised, Unsupported, WrongApp
from firmware_bridge.hwi_client.base import OpenDevice, apostrophes, obstructed
from firmware_bridge.hwi_client.hwi import chain_of, parse_psbt
from firmware_bridge.hwi_client.ledger import library
from firmware_bridge.hwi_client.ledger.app import (
    Loading,
    OpenApp,
    account_path,
    proof_of,
    read_app,
    require_keys_of,
    require_network,
    to_version_2,
    wallet_of,
)
from firmware_bridge.hwi_client.ledger.link import (
    DENIED,
    NOT_SUPPORTED,
    UNKNOWN_POLICY,
    LedgerLink,
    Watch,
    ledger_failure,
    open_link,
    status_of,
)
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.protocol import DriverHost, WorkerCall
from multisig import Network

# Outcomes that a probe reports as the device's state; any other is a failure of the probe.
_OBSTACLES: Final = frozenset({Locked.code, Uninitialised.code, WrongApp.code, Unsupported.code})


class LedgerDevice(OpenDevice):
    family = Family.LEDGER
    _link: LedgerLink

    def __init__(self, link: LedgerLink, network: Network, caller: DriverHost, *, emulated: bool) -> None:
        self._link = link
        self._network = network
        self._caller = caller
        self._emulated = emulated
        self._app: OpenApp | None = None
        self._client: Any = None

    def begin(self, op: str) -> None:  # noqa: ARG002 - the same for each
        self._link.begin()

    def failure(self, error: Exception) -> BridgeError:
        return ledger_failure(error)

    def cancel(self) -> None:
        """Stop. A question on the screen stays there; approving it signs nothing."""
        self._link.give_up()

    def _ready(self) -> Any:
        """The client for the app that is open now: the person may have switched apps since the last
        operation.

        :raises BridgeError: it is not the Bitcoin app of our network.
        """
        app, self._app = self._app, None
        now = read_app(self._link)
        require_network(now, self._network)
        if self._client is None or now != app:
            self._client = library.NewClient(self._link, chain_of(self._network))
        require_keys_of(self._client, now, self._network)
        self._app = now
        return self._client

    def probe(self) -> operations.Probed:
        # The USB numbers tell the model; an emulator does not tell it.
        model = "Ledger" if self._emulated else ""
        try:
            master = self.fingerprint()
        except Exception as error:
            failed = error if isinstance(error, BridgeError) else ledger_failure(error)
            if failed.code not in _OBSTACLES:
                raise
            return obstructed(model, failed)
        firmware = None if self._app is None else self._app.version
        return operations.Probed(model, fingerprint=master, firmware=firmware)

    def fingerprint(self) -> str:
        return str(self._ready().get_master_fingerprint().hex())

    def xpubs(self, request: operations.Xpubs) -> operations.Keys:
        client = self._ready()
        xpubs = tuple(_read_xpub(client, path) for path in request.paths)
        return operations.Keys(client.get_master_fingerprint().hex(), xpubs)

    def sign(self, request: operations.Sign) -> str:
        policy = request.policy
        proof, wallet = proof_of(policy), wallet_of(policy)
        client = self._steady()
        psbt = parse_psbt(request.psbt)
        to_version_2(psbt)
        with self._asking_to_sign(len(psbt.inputs)):
            signatures = client.sign_psbt(psbt, wallet, proof)
        psbt.convert_to_v0()
        return str(_with_signatures(psbt, signatures).serialize())

    def sign_message(self, request: operations.SignMessage) -> str:
        client = self._steady()
        with self._asking(*operations.CONFIRM_MESSAGE):
            return str(client.sign_message(request.text, apostrophes(request.path)))

    def enrol(self, request: operations.Enrol) -> str:
        policy = request.policy
        wallet = wallet_of(policy)
        client = self._steady()
        if policy.hmac is not None and not request.again and _knows(client, policy):
            return policy.hmac
        with self._asking(*operations.CONFIRM_ENROLMENT):
            registered, proof = client.register_wallet(wallet)
        if registered != wallet.id:
            raise DeviceFault("it registered another vault")
        return str(proof.hex())

    def show_address(self, request: operations.ShowAddress) -> str:
        policy, chain, index = request.policy, request.chain, request.index
        proof, wallet = proof_of(policy), wallet_of(policy)
        client = self._steady()
        with self._asking(*operations.CONFIRM_ADDRESS):
            return str(client.get_wallet_address(wallet, proof, chain, index, display=True))

    def identify(self) -> None:
        """Show a key on the screen; the person presses either button."""
        client = self._steady()
        with self._asking("identify", "The device shows a key of its own: press either button on it"):
            try:
                client.get_extended_pubkey(account_path(self._network), display=True)
            except Exception as error:
                if status_of(error) != DENIED:
                    raise

    def _steady(self) -> Any:
        """The client, after a harmless command: the first command fails if an earlier host left one
        unfinished.
        """
        client = self._ready()
        client.get_master_fingerprint()
        return client

    def _asking_to_sign(self, inputs: int) -> AbstractContextManager[None]:
        """The person is asked when the transaction is loaded."""
        loading = Loading(self._caller, inputs, "" if self._app is None else self._app.version)
        return self._link.watched(
            Watch(
                loading.started,
                loading.requested,
                loading.may_ask,
                lambda: self._caller.tell(*operations.CONFIRM_TRANSACTION),
            )
        )

    def _asking(self, step: str, text: str) -> AbstractContextManager[None]:
        """The person is asked on the device."""
        self._caller.tell(step, text)
        return self._link.watched(Watch())


def open_device(
    endpoint: Endpoint,
    network: Network,
    caller: DriverHost,
    request: WorkerCall,  # noqa: ARG001 - every operation starts with a command that clears a cut-off one
) -> LedgerDevice:
    """Connect without sending a command: the device may be locked, or its app closed."""
    return LedgerDevice(open_link(endpoint), network, caller, emulated=endpoint.kind == "tcp")


def _read_xpub(client: Any, path: str) -> str:
    """:raises BridgeError: the app would show this path first; HWI would wait for a button."""
    try:
        return str(client.get_extended_pubkey(apostrophes(path), display=False))
    except Exception as error:
        if status_of(error) != NOT_SUPPORTED:
            raise
        raise Unsupported(detail=f"the Bitcoin app does not give the key at {path}") from error


def _knows(client: Any, policy: operations.PolicyText) -> bool:
    """Whether the device accepts the proof, checked with an address that it does not show."""
    try:
        client.get_wallet_address(wallet_of(policy), proof_of(policy), 0, 0, display=False)
    except Exception as error:
        if status_of(error) != UNKNOWN_POLICY:
            raise
        return False
    return True


def _with_signatures(psbt: library.PSBT, signatures: Iterable[tuple[Any, ...]]) -> library.PSBT:
    """Add the signatures where the device says. The bridge verifies them.

    HWI 3.2.0 gives (input, public key, signature), later ones (input, record of both).
    """
    for index, *fields in signatures:
        public_key, signature = fields if len(fields) == 2 else (fields[0].pubkey, fields[0].signature)
        psbt.inputs[index].partial_sigs[public_key] = signature
    return psbt
