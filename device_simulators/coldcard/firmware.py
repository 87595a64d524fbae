"""The commands of a Coldcard as one table, from its power-up to its power-down."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from device_simulators.coldcard import arguments, replies, story
from device_simulators.coldcard.approvals import ApprovalKind, Approvals, ApprovalState, Pause
from device_simulators.coldcard.arguments import Staging
from device_simulators.coldcard.flows import Flows
from device_simulators.coldcard.replies import (
    BadFraming,
    CommandRefused,
    PromptOpen,
)
from device_simulators.coldcard.story import ColdcardChain, Format, single_key_format
from device_simulators.coldcard.wallet import ColdcardWallet, WalletStore
from device_simulators.coldcard.wallet_file import parse_wallet_file
from device_simulators.coldcard.wire import (
    MAX_ENROLMENT,
    MAX_PSBT,
    MAX_SPACES_TOGETHER,
    MAX_TEXT,
    MIN_ENROLMENT,
    MIN_PSBT,
    MIN_TEXT,
    SMALL_PSBT,
    LinkSession,
    raw_public_key,
    shared_key,
)
from device_simulators.errors import NoSuchPrompt
from device_simulators.faults import Phase, Silenced
from device_simulators.seed import Seed
from multisig import DerivationPath, parse_multisig_script

_log = logging.getLogger(__name__)

# As `vers` answers: build date, version, bootloader and build time.
RELEASE: Final = ("2026-08-20", "5.6.1", "3.2.1", "20260820133600")
LINK_VERSIONS: Final = frozenset({1, 2})
BINDING_VERSION: Final = 2  # from then on everything is encrypted, and there is no second handshake
MASTER: Final = DerivationPath(())
# What may be asked about while a file is uploaded.
UPLOADED_BESIDE: Final = frozenset({ApprovalKind.TRANSACTION})


@dataclass(frozen=True)
class ColdcardCommand:
    """How a command is carried out. `encrypted`: only over an encrypted link. `locked`: also while locked.
    `hsm`: also in HSM mode.
    """

    run: Callable[["Firmware", bytes], Awaitable[bytes]]
    encrypted: bool = False
    locked: bool = False
    hsm: bool = False
    phase: Phase | None = None


class Firmware:
    """One power-up. All hosts share its one session, one upload and one request."""

    def __init__(
        self,
        flows: Flows,
        staging: Staging,
        *,
        hardware: str,
        random_bytes: Callable[[int], bytes],
        allow_keypress: bool,
        pause: Pause,
    ) -> None:
        """`hardware`: the model's own name, such as mk4. `random_bytes` gives that many random bytes.
        `allow_keypress`: the host may press the buttons (XKEY). `pause`: see `Approvals`.
        """
        self.session: LinkSession | None = None
        self.bound = False
        self.locked = False
        self.hsm = False
        self._hardware = hardware
        self._proposed: ColdcardWallet | None = None
        self.approvals = Approvals(flows.panel, pause)
        self._flows = flows
        self._staging = staging
        self._random_bytes = random_bytes
        self._allow_keypress = allow_keypress

    async def answer(self, message: bytes, *, encrypted: bool) -> bytes:
        """The reply to one decrypted message. Raises BadFraming; every other failure becomes a reply."""
        async with self._flows.working:
            name, rest = message[:4], message[4:]
        if not name.isascii():
            raise BadFraming("decode")
        try:
            return await self._run(COMMANDS.get(name), rest, encrypted=encrypted)
        except PromptOpen:
            return replies.BUSY
        except CommandRefused as refusal:
            return replies.error(str(refusal))
        except (BadFraming, Silenced):
            raise
        except Exception:  # noqa: BLE001 - the border: no host may bring the device down, as in the firmware
            _log.exception("a command failed unexpectedly")
            return replies.error("Confused")

    async def _run(self, command: ColdcardCommand | None, rest: bytes, *, encrypted: bool) -> bytes:
        if command is None:
            raise CommandRefused("Unknown cmd")
        if self.locked and not command.locked:
            # Not the firmware's words: a real device is not on the bus before its PIN.
            raise CommandRefused("Device is locked")
        if self.hsm and not command.hsm:
            raise CommandRefused("Not allowed in HSM mode")
        if command.encrypted and not encrypted:
            raise CommandRefused("must encrypt")
        if command.phase is not None:
            self._flows.misbehaviour.reach(command.phase)
        return await command.run(self, rest)

    async def use(self, seed: Seed, store: WalletStore) -> None:
        """The person has entered a passphrase: another wallet, with records of its own. The link stays."""
        await self.approvals.discard()
        self._flows = replace(self._flows, seed=seed, store=store)

    def press_1(self) -> None:
        """Key 1: of a wallet that is to be enrolled, the fingerprints, paths and keys. Elsewhere it does
        nothing.
        """
        showing = self._flows.panel.pending
        if self._proposed is not None and showing is not None and showing[1].kind == story.ENROL_WALLET:
            self._flows.panel.notify(story.wallet_keys(self._proposed))

    def set_chain(self, chain: ColdcardChain) -> None:
        self._flows = replace(self._flows, chain=chain)

    async def handshake(self, rest: bytes) -> bytes:
        """`ncry`: a new key for the link. What an earlier host sends cannot be decrypted any more."""
        version, raw_peer = arguments.unpack("I64s", rest)
        if version not in LINK_VERSIONS:
            raise BadFraming("bad ncry version")
        if self.bound:
            raise BadFraming("crypto already set up")
        private = self._random_bytes(32)
        self.session = LinkSession(shared_key(private, raw_peer))
        self.bound = version == BINDING_VERSION
        self._staging.end_lease()
        seed = self._flows.seed
        return replies.handshake(raw_public_key(private), bytes(seed.fingerprint), self._xpub(MASTER))

    async def version(self, _rest: bytes) -> bytes:
        return replies.text("\n".join((*RELEASE, self._hardware)))

    async def chain(self, _rest: bytes) -> bytes:
        return replies.text(self._flows.chain.name)

    async def prove_link(self, _rest: bytes) -> bytes:
        """`mitm`: the master key signs the link's key, so that the host knows who is at the other end
        (S21).
        """
        assert self.session is not None, "the command came encrypted"
        return replies.binary(self._flows.seed.sign_recoverable(MASTER, self.session.key))

    async def xpub(self, rest: bytes) -> bytes:
        return replies.text(self._xpub(arguments.path(arguments.ascii_text(rest))))

    def _xpub(self, path: DerivationPath) -> str:
        return str(self._flows.seed.xpub(path, self._flows.chain.network))

    async def upload(self, rest: bytes) -> bytes:
        offset, total = arguments.unpack("II", rest, exact=False)
        if not self.approvals.pending.gives_way_to(UPLOADED_BESIDE):
            raise PromptOpen("the device is still asking")
        return replies.number(self._staging.receive(offset, total, rest[8:]))

    async def checksum(self, _rest: bytes) -> bytes:
        return replies.binary(self._staging.checksum)

    async def download(self, rest: bytes) -> bytes:
        offset, length, file_number = arguments.unpack("III", rest)
        return replies.binary(self._staging.send(offset, length, file_number))

    async def sign_transaction(self, rest: bytes) -> bytes:
        length, flags, digest = arguments.unpack("II32s", rest)
        if not MIN_PSBT <= length <= SMALL_PSBT.get(self._hardware, MAX_PSBT):
            raise CommandRefused("badlen")
        if flags:  # the hardware could also finalise, or only describe
            raise CommandRefused("only partial PSBTs are returned")
        data = self._staging.take(length, digest)
        self.approvals.check_free(ApprovalKind.TRANSACTION)
        self._staging.end_lease()
        await self.approvals.begin(ApprovalKind.TRANSACTION, self._flows.transaction(data))
        return replies.OKAY

    async def sign_text(self, rest: bytes) -> bytes:
        number, path_length, text_length = arguments.unpack("III", rest, exact=False)
        if len(rest) != 12 + path_length + text_length:
            raise CommandRefused("badlen")
        self.approvals.check_free(ApprovalKind.TEXT)
        chosen, end = single_key_format(number), 12 + path_length
        text, path = check_text(rest[end:]), arguments.path(arguments.ascii_text(rest[12:end]))
        await self.approvals.begin(ApprovalKind.TEXT, self._flows.text(text, path, chosen))
        return replies.OKAY

    async def enrol(self, rest: bytes) -> bytes:
        length, digest = arguments.unpack("I32s", rest)
        content = self._staging.take(length, digest)
        if not MIN_ENROLMENT <= length <= MAX_ENROLMENT:
            raise CommandRefused("badlen")
        self.approvals.forget()
        self._proposed = wallet = parse_wallet_file(content, self._flows.seed, self._flows.chain.network)
        await self.approvals.begin(ApprovalKind.ENROLMENT, self._flows.enrolment(wallet))
        return replies.OKAY

    async def knows_wallet(self, rest: bytes) -> bytes:
        return replies.number(int(self._flows.store.knows(*arguments.unpack("III", rest))))

    async def collect(self, _rest: bytes) -> bytes:
        if self.approvals.pending.state is ApprovalState.READY:
            self._flows.misbehaviour.reach(Phase.RETURN)
        return self.approvals.collect()

    async def show_address(self, rest: bytes) -> bytes:
        (number,) = arguments.unpack("I", rest, exact=False)
        chosen, path = single_key_format(number), arguments.path(arguments.ascii_text(rest[4:]))
        address = self._flows.address_of(path, chosen)
        self.approvals.forget()
        await self.approvals.begin(
            ApprovalKind.ADDRESS, self._flows.show(story.key_address(address, str(path)))
        )
        return replies.text(address)

    async def show_script_address(self, rest: bytes) -> bytes:
        request = arguments.script_to_show(rest)
        if request.address_format != Format.P2WSH:
            raise CommandRefused("Unknown/unsupported addr format")
        wallet = self._flows.store.find(request.threshold, request.origins)
        if wallet is None:
            raise CommandRefused("Multisig wallet with those fingerprints not found")
        self.approvals.check_free(ApprovalKind.SCRIPT_ADDRESS)
        threshold, keys = parse_multisig_script(request.script)
        if (threshold, len(keys)) != (wallet.threshold, len(wallet.cosigners)):
            raise CommandRefused("wrong M/N in script")
        path = request.origins[0].path
        if request.script != wallet.script_at(path):
            raise CommandRefused("pk#1 wrong")
        address = self._flows.script_address(request.script)
        prompt = story.wallet_address(address, wallet, wallet.shown_at(path))
        await self.approvals.begin(ApprovalKind.SCRIPT_ADDRESS, self._flows.show(prompt))
        return replies.text(address)

    async def press_key(self, rest: bytes) -> bytes:
        """`XKEY`, which HWI sends to everything that it reaches by a socket: a press of a button, where
        allowed.
        """
        if not self._allow_keypress:
            raise CommandRefused("Unknown cmd")
        panel = self._flows.panel
        press = {b"y": panel.press_yes, b"x": panel.press_no}.get(rest)
        try:
            if press is not None:
                press()
        except NoSuchPrompt:
            pass  # a key pressed while the screen asks nothing has no effect
        await asyncio.sleep(0)  # the press has taken effect before the host hears of it
        return replies.OKAY


def check_text(data: bytes) -> str:
    """A text that the screen can show without hiding any of it. Raises CommandRefused in the firmware's
    words.
    """
    text = arguments.ascii_text(data)
    if len(text) < MIN_TEXT:
        raise CommandRefused(f"msg too short (min. {MIN_TEXT})")
    if len(text) > MAX_TEXT:
        raise CommandRefused(f"msg too long (max. {MAX_TEXT})")
    if " " * (MAX_SPACES_TOGETHER + 1) in text:
        raise CommandRefused("too many spaces together in msg(max. 3)")
    if text.startswith(" "):
        raise CommandRefused("leading space(s) in msg")
    if text.endswith(" "):
        raise CommandRefused("trailing space(s) in msg")
    return text


COMMANDS: Final[dict[bytes, ColdcardCommand]] = {
    b"ncry": ColdcardCommand(Firmware.handshake, hsm=True, phase=Phase.PROBE),
    b"vers": ColdcardCommand(Firmware.version, locked=True, hsm=True),
    b"blkc": ColdcardCommand(Firmware.chain, locked=True, hsm=True),
    b"mitm": ColdcardCommand(Firmware.prove_link, encrypted=True, hsm=True),
    b"xpub": ColdcardCommand(Firmware.xpub, encrypted=True, phase=Phase.XPUB),
    b"upld": ColdcardCommand(Firmware.upload, phase=Phase.RECEIVE),
    b"sha2": ColdcardCommand(Firmware.checksum),
    b"dwld": ColdcardCommand(Firmware.download),
    b"stxn": ColdcardCommand(Firmware.sign_transaction),
    b"smsg": ColdcardCommand(Firmware.sign_text),
    b"enrl": ColdcardCommand(Firmware.enrol),
    b"msck": ColdcardCommand(Firmware.knows_wallet),
    b"stok": ColdcardCommand(Firmware.collect),
    b"smok": ColdcardCommand(Firmware.collect),
    b"show": ColdcardCommand(Firmware.show_address),
    b"p2sh": ColdcardCommand(Firmware.show_script_address),
    b"XKEY": ColdcardCommand(Firmware.press_key),
}
