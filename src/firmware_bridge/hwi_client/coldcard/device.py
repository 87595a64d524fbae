"""Coldcard through the ckcc library that HWI bundles: HWI's own client has no enrolment and polls without an end.

A new handshake re-keys the device's one session, so whoever connects second breaks what the first one does; but the device
keeps its question and its result until somebody collects them, and a later session can.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hwilib.devices.ckcc.constants import AF_CLASSIC, MAX_BLK_LEN, MAX_TXN_LEN, MAX_TXN_LEN_MK4
from hwilib.devices.ckcc.protocol import CCFramingError, CCProtoError, CCUserRefused
from hwilib.devices.ckcc.protocol import CCProtocolPacker as Packer

from firmware_bridge.errors import Cancelled, NotEnrolled, Unsupported
from firmware_bridge.hwi_client.base import (
    Args,
    OpenDevice,
    Operation,
    decode_base64,
    encode_base64,
    probed,
)
from firmware_bridge.hwi_client.coldcard.address import (
    KNOWN,
    address_command,
    greeting_command,
    question_command,
    spelled,
)
from firmware_bridge.hwi_client.coldcard.cipher import Ckcc
from firmware_bridge.hwi_client.coldcard.pipe import connect
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.port import TAKEN, Caller, DeviceFailure, Opening
from multisig import ExtendedPublicKey, MultisigError, Network, Psbt, hash160

# HWI polls every 250 ms; a person's OK is noticed sooner here, and a poll costs the device next to nothing.
_POLL_SECONDS: Final = 0.1
# ckcc waits twice this long. A Coldcard that validates or signs 250 inputs answers nobody for several seconds.
_POLL_ANSWER_MS: Final = 30_000
_MASTER: Final = "m"
# What it says where it asks nothing any more: the person is done with the question, whatever came of it.
_NOTHING_OPEN: Final = "no active request"
# From firmware 5.6 on two wallets cannot have one name: the second is shown, and no button keeps it.
_NOT_KEPT: Final = "it did not keep the vault; it may have another one of this name"
# Before the Mk4 there was less memory for a transaction.
_SMALL: Final = frozenset({"mk1", "mk2", "mk3"})
# Lines of what it says: build date, version, bootloader, build time, model. Older firmware stops earlier.
_VERSION_LINE: Final = 1
_MODEL_LINE: Final = 4


@dataclass(frozen=True)
class _Versions:
    """What the device tells about itself. `label` is its own word for its model; without one it is older than the Mk4."""

    firmware: str | None = None
    label: str | None = None

    @property
    def model(self) -> str:
        return "Coldcard" if self.label is None else f"Coldcard {self.label.capitalize()}"

    @property
    def max_psbt_bytes(self) -> int:
        small = self.label is None or self.label in _SMALL
        return int(MAX_TXN_LEN if small else MAX_TXN_LEN_MK4)


class ColdcardDevice(OpenDevice):
    family = Family.COLDCARD

    def __init__(self, ckcc: Ckcc, network: Network, caller: Caller) -> None:
        self._ckcc = ckcc
        self._network = network
        self._caller = caller
        self._give_up = threading.Event()
        self._master = ""
        """The key that has proved the link to be its own."""

    def operations(self) -> Mapping[str, Operation]:
        return {
            "probe": self._probe,
            "fingerprint": self._fingerprint,
            "xpubs": self._xpubs,
            "sign": self._sign,
            "sign_message": self._sign_message,
            "enrol": self._enrol,
            "show_address": self._show_address,
            "identify": self._identify,
        }

    def call(self, op: str, args: Args) -> Any:
        self._give_up.clear()
        return super().call(op, args)

    def cancel(self) -> None:
        """Stop waiting. The device's question stays on its screen: it knows no cancel."""
        self._give_up.set()

    def close(self) -> None:
        self._ckcc.close()

    def _probe(self, args: Args) -> Any:
        versions = self._versions()
        return probed(versions.model, fingerprint=self._fingerprint(args), firmware=versions.firmware)

    def _versions(self) -> _Versions:
        try:
            lines = dict(enumerate(self._ckcc.firmware_version()))
        except CCProtoError:
            return _Versions()
        return _Versions(lines.get(_VERSION_LINE), lines.get(_MODEL_LINE))

    def _fingerprint(self, _args: Args) -> Any:
        """Asked anew: the one from the handshake would not show a passphrase that was entered since."""
        if self._read_xpub(_MASTER) != self._master:
            self.prove_link()
        return hash160(ExtendedPublicKey.parse(self._master).public_key)[:4].hex()

    def prove_link(self) -> None:
        """Make sure that nobody sits in between (S21): the master key signs the key of the link.

        It is the master key whose fingerprint the vault knows. ckcc alone believes the one of the handshake, where whoever sits in
        between can put his own, and sign with it.

        :raises Exception: somebody does, or the device has no keys to tell.
        """
        master = self._read_xpub(_MASTER) if self._ckcc.master_xpub else None
        self._ckcc.check_mitm(expected_xpub=master)
        self._master = str(master)

    def _xpubs(self, args: Args) -> Any:
        xpubs = [self._read_xpub(path) for path in args["paths"]]
        return {"fingerprint": self._fingerprint(args), "xpubs": xpubs}

    def _read_xpub(self, path: str) -> str:
        return str(self._ckcc.send_recv(Packer.get_xpub(spelled(path))))

    def _sign(self, args: Args) -> Any:
        psbt = decode_base64(args["psbt"])
        self._require_room(len(psbt))
        if args["resume"] and (collected := self._resume(psbt)) is not None:
            return collected
        self._require_known(args["policy"])
        self._caller.tell("sending", "Sending the transaction to the device")
        size, digest = self._ckcc.upload_file(psbt, blksize=MAX_BLK_LEN)
        self._ckcc.send_recv(Packer.sign_transaction(size, digest))
        self._caller.tell(TAKEN, "The device checks the transaction")
        return encode_base64(self._collect_transaction(None))

    def _require_known(self, policy: Args) -> None:
        """:raises DeviceFailure: it is not enrolled. Depending on its settings it would show a vault that the transaction brings, and
        keep it under a name of its own, while the person expects a payment.
        """
        if policy["kind"] == "vault" and not self._knows(policy):
            raise DeviceFailure(NotEnrolled.code, None)

    def _require_room(self, size: int) -> None:
        """:raises DeviceFailure: more than this model takes. It would say so after the last byte, and less clearly."""
        if size <= MAX_TXN_LEN:
            return
        versions = self._versions()
        if size > (most := versions.max_psbt_bytes):
            why = f"A {versions.model} takes transactions of {most} bytes, and this one has {size}."
            raise DeviceFailure(Unsupported.code, why)

    def _resume(self, psbt: bytes) -> str | None:
        """The answer to an earlier, cut-off attempt at this same transaction, waiting for it where it is still open.

        None where there is nothing to collect, or what was there is something else: an address that is still shown, another
        program's transaction. A "no" that was said before is no answer to this attempt: the person is asked again; one that is
        said now is.
        """
        try:
            done = self._ckcc.send_recv(Packer.get_signed_txn())
        except (CCProtoError, CCUserRefused):
            return None
        try:
            collected = self._collect_transaction(done)
        except CCProtoError:
            return None
        return encode_base64(collected) if _same_transaction(collected, psbt) else None

    def _collect_transaction(self, done: tuple[Any, Any] | None) -> bytes:
        if done is None:
            self._caller.tell("confirm-transaction", "Confirm the transaction on the device")
            done = self._await_result(Packer.get_signed_txn())
        size, digest = done
        self._caller.tell("receiving", "Fetching the signatures from the device")
        return bytes(self._ckcc.download_file(size, digest, file_number=1))

    def _sign_message(self, args: Args) -> Any:
        path = spelled(args["path"])
        self._ckcc.send_recv(Packer.sign_message(args["text"].encode(), path, AF_CLASSIC))
        self._caller.tell("confirm-message", "Confirm the message on the device")
        _address, signature = self._await_result(Packer.get_signed_msg())
        return encode_base64(signature)

    def _show_address(self, args: Args) -> Any:
        """The answer comes at once; the address stays on the screen until a button is pressed, whichever.

        It takes the place of a question that is still open there: only a cut-off attempt can have left one.
        """
        fingerprint = self._fingerprint(args)
        command = address_command(args["policy"], args["chain"], args["index"], fingerprint, self._network)
        address = self._show(command)
        self._caller.tell("confirm-address", "Compare the address on the device")
        return {"address": address}

    def _identify(self, _args: Args) -> Any:
        """There is no other thing to show that asks for nothing: the first address of the profile's account."""
        self._show(greeting_command(self._network))
        self._caller.tell("identify", "The device shows an address of its own: press a key on it")

    def _show(self, command: bytes) -> str:
        return str(self._ckcc.send_recv(command, timeout=_POLL_ANSWER_MS))

    def _await_result(self, poll: bytes) -> tuple[Any, Any]:
        while True:
            done = self._ckcc.send_recv(poll, timeout=_POLL_ANSWER_MS)
            if done is not None:
                first, second = done
                return first, second
            self._pause()

    def _pause(self) -> None:
        if self._give_up.wait(_POLL_SECONDS):
            raise DeviceFailure(Cancelled.code, None)

    def _enrol(self, args: Args) -> Any:
        policy = args["policy"]
        check = Packer.multisig_check(policy["threshold"], len(policy["keys"]), args["xor"])
        if not args["again"] and self._ckcc.send_recv(check) and self._knows(policy):
            return None
        size, digest = self._ckcc.upload_file(args["file"].encode("ascii"), blksize=MAX_BLK_LEN)
        self._ckcc.send_recv(Packer.multisig_enroll(size, digest))
        self._caller.tell("confirm-enrolment", "Compare the vault's details on the device and confirm")
        self._await_enrolment(policy)
        return None

    def _knows(self, policy: Args) -> bool:
        """Whether it is this very vault that the device knows, and not just one of the same devices."""
        try:
            self._ckcc.send_recv(question_command(policy, self._network))
        except CCFramingError:
            raise
        except CCProtoError as error:
            return KNOWN in str(error).lower()
        return False

    def _await_enrolment(self, policy: Args) -> None:
        """There is no answer of its own: a refusal is told like that of a transaction, an OK leaves no request behind."""
        while True:
            try:
                self._ckcc.send_recv(Packer.get_signed_txn(), timeout=_POLL_ANSWER_MS)
            except CCFramingError:
                raise
            except CCProtoError as over:
                if self._knows(policy):
                    return
                if _NOTHING_OPEN in str(over).lower():
                    raise DeviceFailure(NotEnrolled.code, _NOT_KEPT) from over
                raise
            self._pause()


def _same_transaction(one: bytes, other: bytes) -> bool:
    try:
        return Psbt.parse(one).tx == Psbt.parse(other).tx
    except MultisigError:
        return False


def open_coldcard(endpoint: Endpoint, network: Network, caller: Caller, opening: Opening) -> ColdcardDevice:  # noqa: ARG001 - a handshake starts afresh by itself
    """Connect, agree on a session key, and make sure that nobody sits in between (S21)."""
    device = ColdcardDevice(Ckcc(dev=connect(endpoint)), network, caller)
    try:
        device.prove_link()
    except BaseException:
        device.close()
        raise
    return device
