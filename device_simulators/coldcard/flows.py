"""What happens between a request and its outcome: check, ask the person, do it; with the faults that were
asked for.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256

from device_simulators.coldcard import replies, story
from device_simulators.coldcard.approvals import SAVED, Closing
from device_simulators.coldcard.replies import PersonRefused, TransactionRefused
from device_simulators.coldcard.review import ColdcardReview, read, review, wallet_of
from device_simulators.coldcard.story import MESSAGE_HEADERS, ColdcardChain, Format, single_key_script
from device_simulators.coldcard.wallet import ColdcardWallet, WalletStore, compare
from device_simulators.faults import Faults, Misbehaviour, Phase
from device_simulators.panel import Panel, Prompt
from device_simulators.seed import Seed
from multisig import SIGHASH_ALL, DerivationPath, Psbt, SighashCache, message_hash, p2wsh

# Header: 63 bytes, last, encrypted. Whatever key is in use, the host reads noise.
GARBAGE = b"\xff" * 64


def sign(review: ColdcardReview, seed: Seed, faults: Faults) -> Psbt:
    """The reviewed PSBT with one more signature on every input that is ours to sign."""
    cache = SighashCache(review.psbt.tx)
    signatures: dict[int, dict[bytes, bytes]] = {}
    for use in review.uses:
        digest = cache.segwit_v0(use.index, use.script_code, use.amount, SIGHASH_ALL)
        signature = faults.signature(seed, use.path, use.index, digest)
        if signature is not None:
            signatures[use.index] = {use.public_key: signature + bytes([SIGHASH_ALL])}
    return review.psbt.with_signatures(signatures)


Work = Callable[[int], Awaitable[None]]
"""Waits as long as a device takes to read and check a transaction of so many bytes, before it asks."""


async def no_work(_size: int) -> None:
    """A program on a computer takes next to no time. Firmware 5.4.5 took 20 s for 391,827 bytes, and 200 s
    for 1.9 MB.
    """


@dataclass(frozen=True)
class Flows:
    """The device's screen, seed and wallets. `offer` makes a result fetchable, and returns its length and
    SHA-256. `still_holds` tells whether the uploaded bytes are these. `work` takes the time that reading and
    checking so many bytes takes.
    """

    seed: Seed
    panel: Panel
    chain: ColdcardChain
    store: WalletStore
    misbehaviour: Misbehaviour
    offer: Callable[[bytes], tuple[int, bytes]]
    still_holds: Callable[[bytes], bool]
    work: Work
    working: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the device reads and checks: it answers no host meanwhile."""

    async def transaction(self, data: bytes) -> tuple[bytes, Prompt]:
        """Check a PSBT, show it, sign it: the reply, and what stays on the screen. Raises TransactionRefused,
        PersonRefused.
        """
        async with self.working:
            await self.work(len(data))
        psbt = read(data)
        spending = review(psbt, self.seed, await self._wallet_of(psbt))
        await self._require_yes(story.transaction(spending, self.chain))
        if not self.still_holds(data):
            raise TransactionRefused("Transaction modified")
        self.misbehaviour.reach(Phase.SIGN)
        signed = sign(spending, self.seed, self.misbehaviour.faults)
        reply = replies.file_ready(*self.offer(signed.to_bytes()))
        return reply, story.signed(is_message=spending.message is not None)

    async def _wallet_of(self, psbt: Psbt) -> ColdcardWallet | None:
        """The wallet that the xpubs describe; one that is not on record is kept if the person agrees."""
        wallet, on_record = wallet_of(psbt, self.seed, self.store)
        if wallet is not None and not on_record:
            comparison = compare(wallet, self.store)
            if not await self._ask(story.wallet(story.IMPORT_WALLET, wallet, comparison)):
                raise TransactionRefused("Refused to import new wallet")
            self.store.keep(wallet)
        return wallet

    async def text(self, text: str, path: DerivationPath, chosen: Format) -> bytes:
        """Show a text and sign it with the key at `path`. Raises PersonRefused."""
        address = self.address_of(path, chosen)
        await self._require_yes(story.message(text, str(path), address))
        self.misbehaviour.reach(Phase.SIGN)
        digest = message_hash(text)
        if self.misbehaviour.faults.wrong_signatures:
            digest = sha256(digest).digest()
        signature = self.seed.sign_recoverable(path, digest, header=MESSAGE_HEADERS[chosen])
        return replies.message_signed(address, signature)

    async def enrolment(self, wallet: ColdcardWallet) -> Closing | None:
        """Show a wallet and put it on record if the person agrees. Raises PersonRefused.

        An agreement leaves no request behind: the host learns of it by `msck`.
        """
        comparison = compare(wallet, self.store)
        await self._require_yes(story.wallet(story.ENROL_WALLET, wallet, comparison))
        if comparison.duplicate:
            return None
        self.store.keep(wallet)
        return SAVED

    async def show(self, prompt: Prompt) -> None:
        """Show an address until any button is pressed."""
        await self._ask(prompt)

    def address_of(self, path: DerivationPath, chosen: Format) -> str:
        address = self.chain.address(single_key_script(self.seed.public_key(path), chosen))
        assert address is not None, "each of these scripts has an address"
        return address

    def script_address(self, script: bytes) -> str:
        address = self.chain.address(p2wsh(script))
        assert address is not None, "P2WSH has an address"
        return address

    async def _require_yes(self, prompt: Prompt) -> None:
        if not await self._ask(prompt):
            raise PersonRefused(prompt.kind)

    async def _ask(self, prompt: Prompt) -> bool:
        return await self.panel.ask(prompt, lambda: self.misbehaviour.reach(Phase.PROMPT))
