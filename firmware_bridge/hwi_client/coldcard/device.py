"""Coldcard through the ckcc library that HWI bundles: HWI's own client has no enrolment and polls without a
deadline.

A new handshake replaces the device's one session, so that a second program breaks the first one's operation.
But the device keeps its question until it is answered, and before firmware 5.6.1 also its result for a later
session.
"""

import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Final

from firmware_bridge import operations
from firmware_bridge.errors import (
    Busy,
    Cancelled,
    NotEnrolled,
    RefusedByPerson,
    Unsupported,
    WrongApp,
)
from firmware_bridge.hwi_client.base import (
    OpenDevice,
    apostrophes,
)
from firmware_bridge.hwi_client.coldcard import library
from firmware_bridge.hwi_client.coldcard.commands import (
    ANSWER_MS,
    KNOWN,
    PolledQuestion,
    Versions,
    address_command,
    greeting_command,
    is_nothing_open,
    question_command,
    quorum_command,
)
from firmware_bridge.hwi_client.coldcard.link import connect, upload
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.protocol import TAKEN, DriverHost, WorkerCall
from multisig import ExtendedPublicKey, MultisigError, Network, Psbt, hash160

# HWI polls every 250 ms. This notices an OK sooner, and a poll costs the device next to nothing.
_POLL_SECONDS: Final = 0.1
# The time for the device to start on a request. A poll after that is answered when the device has checked the
# transaction and shows its question.
_TAKE_OVER_SECONDS: Final = 0.02
_MASTER: Final = "m"
# For two seconds after a refused enrolment the firmware shows the refusal, then it forgets its active
# request, even a newer one.
_CLEAN_UP_SECONDS: Final = 3.0
# Answers to `blkc`, and their names in the menu.
_CHAINS: Final = {"BTC": "Bitcoin", "XTN": "Testnet4", "XRT": "Regtest"}
# Lines of the version text: build date, version, bootloader, build time, model. Older firmware has fewer.
_VERSION_LINE: Final = 1
_MODEL_LINE: Final = 4


class ColdcardDevice(OpenDevice):
    family = Family.COLDCARD

    def __init__(
        self,
        ckcc: library.Ckcc,
        network: Network,
        caller: DriverHost,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ckcc = self._link = ckcc
        self._network = network
        self._caller = caller
        self._clock = clock
        self._give_up = threading.Event()
        self._master = ""
        """The master key that has signed the link's key."""

    def begin(self, op: str) -> None:
        """:raises BridgeError: the device is set to another chain, where each operation would fail
        differently.
        """
        self._give_up.clear()
        if op != "probe" and (trouble := self._chain_trouble()) is not None:
            raise WrongApp(trouble)

    def _chain_trouble(self) -> str | None:
        """The device's setting and what to choose instead; None if it is set to this kind of network."""
        chain = str(self._ckcc.send_recv(library.Packer.block_chain()))
        mainnet = self._network is Network.MAINNET
        if (chain == "BTC") == mainnet:
            return None
        wanted = "Bitcoin" if mainnet else "Testnet4"
        return (
            f"set to {_CHAINS.get(chain, chain)}: choose {wanted} on it, "
            "under Advanced/Tools, Danger Zone, Testnet Mode"
        )

    def cancel(self) -> None:
        """Stop waiting. The question stays on the screen: a Coldcard has no cancel."""
        self._give_up.set()

    def probe(self) -> operations.Probed:
        versions, trouble = self._versions(), self._chain_trouble()
        return operations.Probed(
            versions.model,
            fingerprint=self.fingerprint(),
            firmware=versions.firmware,
            obstacle=None if trouble is None else WrongApp.code,
            detail=trouble,
        )

    def _versions(self) -> Versions:
        try:
            lines = dict(enumerate(self._ckcc.firmware_version()))
        except library.CCProtoError:
            return Versions()
        return Versions(lines.get(_VERSION_LINE), lines.get(_MODEL_LINE))

    def fingerprint(self) -> str:
        """Read again: the one from the handshake does not show a passphrase that was entered since."""
        if self._read_xpub(_MASTER) != self._master:
            self.prove_link()
        return hash160(ExtendedPublicKey.parse(self._master).public_key)[:4].hex()

    def prove_link(self) -> None:
        """Make sure that there is no man in the middle (S21): the master key signs the key of the link.

        It must be the master key whose fingerprint the vault has. ckcc would use the key of the handshake,
        where a man in the middle can put his own.

        :raises Exception: there is one, or the device has no keys.
        """
        master = self._read_xpub(_MASTER) if self._ckcc.master_xpub else None
        self._ckcc.check_mitm(expected_xpub=master)
        self._master = str(master)

    def xpubs(self, request: operations.Xpubs) -> operations.Keys:
        xpubs = tuple(self._read_xpub(path) for path in request.paths)
        return operations.Keys(self.fingerprint(), xpubs)

    def _read_xpub(self, path: str) -> str:
        return str(self._ckcc.send_recv(library.Packer.get_xpub(apostrophes(path))))

    def sign(self, request: operations.Sign) -> str:
        psbt = b64decode(request.psbt, validate=True)
        self._require_room(len(psbt))
        if request.resume and (collected := self._resume(psbt)) is not None:
            return collected
        self._require_known(request.policy)
        size, digest = self._upload("Sending the transaction to the device", psbt)
        question = PolledQuestion(
            self._ckcc, library.Packer.get_signed_txn(), library.Packer.sign_transaction(size, digest)
        )
        self._caller.tell(TAKEN, "The device checks the transaction")
        question.ask()
        return b64encode(self._collect_transaction(question)).decode()

    def _upload(self, text: str, content: bytes) -> tuple[int, bytes]:
        def on_sent(count: int) -> None:
            if self._give_up.is_set():
                raise Cancelled
            self._caller.tell("sending", text, count, len(content))

        self._require_nothing_open()
        return upload(self._ckcc, content, on_sent)

    def _require_nothing_open(self) -> None:
        """Before firmware 5.6.1 an upload overwrites the file of a question that is on the screen.

        An uncollected answer is dropped, as the next request would do.

        :raises BridgeError: a question, or an address, is on the screen.
        """
        try:
            answer = self._ckcc.send_recv(library.Packer.get_signed_txn(), timeout=ANSWER_MS)
        except library.CCFramingError:
            raise
        except (library.CCProtoError, library.CCUserRefused):
            return
        if answer is None:
            raise Busy

    def _require_known(self, policy: operations.PolicyText) -> None:
        """:raises BridgeError: the vault is not enrolled. Depending on its settings the device would offer
        to enrol the vault that the PSBT contains, while the person expects a payment.
        """
        if policy.is_vault and not self._knows(policy):
            raise NotEnrolled

    def _require_room(self, size: int) -> None:
        """:raises BridgeError: too large for this model, which would say so only after the last byte, and
        less clearly.
        """
        if size <= library.MAX_TXN_LEN:
            return
        versions = self._versions()
        if size > (most := versions.max_psbt_bytes):
            why = f"A {versions.model} takes transactions of {most} bytes, and this one has {size}."
            raise Unsupported(detail=why)

    def _resume(self, psbt: bytes) -> str | None:
        """The answer to an earlier, cut-off attempt at the same transaction; waits for it if the question is
        still open.

        None if there is none, or if it is something else: an address that is still shown, another program's
        transaction. After an earlier refusal the person is asked again; a refusal now counts.
        """
        earlier = PolledQuestion(self._ckcc, library.Packer.get_signed_txn())
        try:
            done = earlier.look()
        except (library.CCProtoError, library.CCUserRefused):
            return None
        try:
            collected = self._collect_transaction(earlier) if done is None else self._fetch(*done)
        except library.CCProtoError:
            if done is not None:
                # From 5.6.1 on (`usb.py`, ALLOWED_DOWNLOAD).
                self._caller.tell(
                    "asked-again", "This firmware gives no new connection an earlier approval: it asks again"
                )
            return None
        return b64encode(collected).decode() if _same_transaction(collected, psbt) else None

    def _collect_transaction(self, question: PolledQuestion) -> bytes:
        return self._fetch(*self._await_answer(question, *operations.CONFIRM_TRANSACTION))

    def _fetch(self, size: int, digest: bytes) -> bytes:
        self._caller.tell("receiving", "Fetching the signatures from the device")
        return bytes(self._ckcc.download_file(size, digest, file_number=1))

    def sign_message(self, request: operations.SignMessage) -> str:
        packet = library.Packer.sign_message(
            request.text.encode(), apostrophes(request.path), library.AF_CLASSIC
        )
        question = PolledQuestion(self._ckcc, library.Packer.get_signed_msg(), packet)
        question.ask()
        _address, signature = self._await_answer(question, *operations.CONFIRM_MESSAGE)
        return b64encode(signature).decode()

    def show_address(self, request: operations.ShowAddress) -> str:
        """The answer comes at once; the address stays on the screen until any button is pressed.

        It replaces a question that is still open: only a cut-off attempt can have left one.
        """
        fingerprint = self.fingerprint()
        command = address_command(request, fingerprint, self._network)
        address = self._show(command)
        self._caller.tell(*operations.CONFIRM_ADDRESS)
        return address

    def identify(self) -> None:
        """Show the first address of the profile's account: all else on a Coldcard asks something."""
        self._show(greeting_command(self._network))
        self._caller.tell("identify", "The device shows an address of its own: press a key on it")

    def _show(self, command: bytes) -> str:
        return str(self._ckcc.send_recv(command, timeout=ANSWER_MS))

    def _await_answer(self, question: PolledQuestion, step: str, text: str) -> tuple[Any, Any]:
        """The result after the person's answer. The step is reported when the question is on the screen."""
        self._pause(_TAKE_OVER_SECONDS)
        done = question.look()
        self._caller.tell(step, text)
        while done is None:
            self._pause()
            done = question.look()
        first, second = done
        return first, second

    def _pause(self, seconds: float = _POLL_SECONDS) -> None:
        if self._give_up.wait(seconds):
            raise Cancelled

    def enrol(self, request: operations.Enrol) -> None:
        policy = request.policy
        check = quorum_command(policy, self._network)
        if not request.again and self._ckcc.send_recv(check) and self._knows(policy):
            return
        size, digest = self._upload("Sending the vault to the device", (request.file or "").encode("ascii"))
        packet = library.Packer.multisig_enroll(size, digest)
        started = self._clock()
        self._ckcc.send_recv(packet)
        self._caller.tell(*operations.CONFIRM_ENROLMENT)
        if self._await_enrolment(policy):
            return
        if self._clock() - started < _CLEAN_UP_SECONDS:
            # The request was forgotten at the end of the pause after a refusal, but is still on the screen:
            # send it again.
            self._ckcc.send_recv(packet)
            if self._await_enrolment(policy):
                return
        raise NotEnrolled(detail=_not_kept(policy))

    def _knows(self, policy: operations.PolicyText) -> bool:
        """Whether the device knows this vault, and not just another one of the same devices."""
        try:
            self._ckcc.send_recv(question_command(policy, self._network))
        except library.CCFramingError:
            raise
        except library.CCProtoError as error:
            return KNOWN in str(error).lower()
        return False

    def _await_enrolment(self, policy: operations.PolicyText) -> bool:
        """Wait until no question is open; return whether the device knows the vault.

        An enrolment has no result: a refusal looks like that of a transaction, and an OK leaves no request.
        """
        while True:
            try:
                self._ckcc.send_recv(library.Packer.get_signed_txn(), timeout=ANSWER_MS)
            except library.CCFramingError:
                raise
            except library.CCProtoError as over:
                if self._knows(policy):
                    return True
                if is_nothing_open(over):
                    return False
                raise
            except library.CCUserRefused:
                raise RefusedByPerson(detail=_not_kept(policy)) from None
            self._pause()


def _not_kept(policy: operations.PolicyText) -> str:
    """A taken name is shown on the screen only, where the only key offered is X."""
    return (
        "it did not keep the vault; firmware from 5.6.1 on keeps no two of one name: "
        f"if another is called {policy.name!r}, rename or delete it on the device"
    )


def _same_transaction(one: bytes, other: bytes) -> bool:
    try:
        return Psbt.parse(one).tx == Psbt.parse(other).tx
    except MultisigError:
        return False


def open_device(
    endpoint: Endpoint,
    network: Network,
    caller: DriverHost,
    request: WorkerCall,  # noqa: ARG001 - a handshake starts a new session by itself
) -> ColdcardDevice:
    """Connect, agree on a session key, and rule out a man in the middle (S21)."""
    link = connect(endpoint)
    try:
        device = ColdcardDevice(library.Ckcc(dev=link), network, caller)
        device.prove_link()
    except BaseException:
        link.close()
        raise
    return device
