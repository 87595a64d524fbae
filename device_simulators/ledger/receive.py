"""A transaction that SIGN_PSBT commits to, fetched from the host map by map and proven where it can be
(BIP-370; the checks of app-bitcoin-new, doc/bitcoin.md); the policy it names, and which derivations lead to
the device's own keys.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Self

from device_simulators.ledger.apdu import StatusWord
from device_simulators.ledger.host import HASH_BYTES, Commitment, Host, PsbtMap, open_map
from device_simulators.ledger.policy import MAX_POLICY_BYTES, Header, KnownPolicy, fetch_policy
from device_simulators.ledger.spend import LedgerCoin, LedgerOutput, LedgerPlace, LedgerSpend
from device_simulators.ledger.wallet import LedgerWallet
from device_simulators.ledger.work import LedgerRefused, incorrect_data, not_supported
from multisig import (
    CHANGE,
    DerivationPath,
    OutPoint,
    Transaction,
    TxOut,
    sats,
)
from multisig.psbt.fields import (
    IN_BIP32_DERIVATION,
    IN_NON_WITNESS_UTXO,
    IN_WITNESS_UTXO,
    OUT_BIP32_DERIVATION,
)
from multisig.transaction import MAX_TRANSACTION_BYTES
from multisig.wire import Reader

MAX_INPUTS = 512
MAX_OUTPUTS = 512
"""The app's limits (constants.h)."""

_NO_HMAC = bytes(HASH_BYTES)


@dataclass(frozen=True)
class List:
    """A committed list: how many elements, and the root over them."""

    size: int
    root: bytes


@dataclass(frozen=True)
class SignRequest:
    global_map: Commitment
    inputs: List
    outputs: List
    policy_id: bytes
    policy_hmac: bytes

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """:raises Refused: more inputs or outputs than the app signs. :raises WireError: bytes too few or too
        many.
        """
        reader = Reader(data)
        request = cls(
            Commitment.read(reader),
            _read_list(reader, MAX_INPUTS),
            _read_list(reader, MAX_OUTPUTS),
            reader.take(HASH_BYTES),
            reader.take(HASH_BYTES),
        )
        reader.finish()
        return request


def _read_list(reader: Reader, limit: int) -> List:
    size = reader.compact_size()
    if size > limit:
        raise not_supported(f"at most {limit} inputs and as many outputs")
    return List(size, reader.take(HASH_BYTES))


async def fetch_known_policy(
    host: Host, wallet: LedgerWallet, policy_id: bytes, policy_hmac: bytes
) -> KnownPolicy:
    """The policy that the host names, if this device has registered it or does not need to.

    :raises Refused: the HMAC is another's, or there is none and the policy is not a default one.
    """
    has_hmac = policy_hmac != _NO_HMAC
    if has_hmac and not wallet.is_registered(policy_id, policy_hmac):
        raise LedgerRefused(StatusWord.BAD_SIGNATURE, "this device has not registered such a policy")
    header = Header.parse(await host.preimage(policy_id, MAX_POLICY_BYTES))
    policy = await fetch_policy(host, header, wallet.network)
    if not has_hmac and not wallet.is_default(policy):
        raise incorrect_data("a policy that is not a default one has to be registered")
    return policy


MAX_DERIVATION_BYTES = 4 * 256
"""A fingerprint and at most 255 steps (BIP-32)."""
_STEP_BYTES = 4


class Ownership:
    """:raises Refused: no key of the policy is ours."""

    def __init__(self, wallet: LedgerWallet, policy: KnownPolicy) -> None:
        self.policy = policy
        paths = [path for key in policy.cosigners if (path := wallet.own_key(key)) is not None]
        if not paths:
            raise incorrect_data("no key of this policy is of this device")
        self.accounts: tuple[DerivationPath, ...] = tuple(paths)
        self._prefixes = [bytes(wallet.seed.fingerprint) + _serialize(path) for path in paths]

    def place_of(self, derivation: bytes) -> LedgerPlace | None:
        """Where below one of our keys this derivation of a PSBT leads; None if it is none of ours."""
        split = len(derivation) - 2 * _STEP_BYTES
        if derivation[: max(split, 0)] not in self._prefixes:
            return None
        chain, index = (
            int.from_bytes(derivation[at : at + _STEP_BYTES], "little") for at in (split, split + _STEP_BYTES)
        )
        return LedgerPlace(chain, index)


def _serialize(path: DerivationPath) -> bytes:
    return b"".join(step.to_bytes(_STEP_BYTES, "little") for step in path)


MAX_COIN_SCRIPT_BYTES = 34
MAX_OUTPUT_SCRIPT_BYTES = 83
"""The app's limits (constants.h)."""

# BIP-370.
_GLOBAL_TX_VERSION, _GLOBAL_FALLBACK_LOCKTIME = 0x02, 0x03
_IN_PREVIOUS_TXID, _IN_OUTPUT_INDEX, _IN_SEQUENCE = 0x0E, 0x0F, 0x10
_OUT_AMOUNT, _OUT_SCRIPT = 0x03, 0x04

_FINAL_SEQUENCE = 0xFFFF_FFFF
_PREVIOUS_KEPT = 8
"""Coins of one transaction often lie side by side: it is fetched once."""


class Receiver:
    """One transaction on its way in. Every method raises Refused where the host lies or leaves out what is
    needed.
    """

    def __init__(self, host: Host, ownership: Ownership) -> None:
        self._host = host
        self._ownership = ownership
        self._previous: OrderedDict[bytes, Transaction] = OrderedDict()

    async def receive(self, request: SignRequest) -> LedgerSpend:
        version, lock_time = await self._globals(request)
        inputs, outputs = request.inputs, request.outputs
        coins = [
            await self._coin(await open_map(self._host, inputs.root, inputs.size, at))
            for at in range(inputs.size)
        ]
        paid = [
            await self._output(await open_map(self._host, outputs.root, outputs.size, at))
            for at in range(outputs.size)
        ]
        return LedgerSpend(version, lock_time, tuple(coins), tuple(paid))

    async def read_again(self, request: SignRequest) -> None:
        """What every signature covers (compute_tx_hashes of sign_psbt/txhashes.c): each input, each output,
        and each input's coin.
        """
        for at in range(request.inputs.size):
            await self.read_input(request, at)
        for at in range(request.outputs.size):
            fields = await open_map(self._host, request.outputs.root, request.outputs.size, at)
            await fields.require(_OUT_AMOUNT, 8)
            await fields.get(_OUT_SCRIPT, MAX_OUTPUT_SCRIPT_BYTES)
        for at in range(request.inputs.size):
            fields = await open_map(self._host, request.inputs.root, request.inputs.size, at)
            if await _witness_utxo(fields) is None:
                await self._proven(fields, await self._outpoint(fields))

    async def read_input(self, request: SignRequest, at: int) -> None:
        """Its outpoint and its sequence."""
        fields = await open_map(self._host, request.inputs.root, request.inputs.size, at)
        await self._outpoint(fields)
        await _uint32(fields, _IN_SEQUENCE, _FINAL_SEQUENCE)

    async def _globals(self, request: SignRequest) -> tuple[int, int]:
        fields = await PsbtMap.open(self._host, request.global_map)
        version = _number(await fields.require(_GLOBAL_TX_VERSION, 4))
        return version, await _uint32(fields, _GLOBAL_FALLBACK_LOCKTIME, 0)

    async def _coin(self, fields: PsbtMap) -> LedgerCoin:
        outpoint = await self._outpoint(fields)
        proven = await self._proven(fields, outpoint)
        coin = proven or await _witness_utxo(fields)
        if coin is None:
            raise incorrect_data("an input without UTXO")
        place = await self._place(fields, IN_BIP32_DERIVATION, coin.script_pubkey)
        return LedgerCoin(
            outpoint,
            await _uint32(fields, _IN_SEQUENCE, _FINAL_SEQUENCE),
            coin.amount,
            place,
            is_verified=proven is not None,
        )

    async def _outpoint(self, fields: PsbtMap) -> OutPoint:
        txid = await fields.require(_IN_PREVIOUS_TXID, 32)
        return OutPoint(txid[::-1].hex(), _number(await fields.require(_IN_OUTPUT_INDEX, 4)))

    async def _proven(self, fields: PsbtMap, outpoint: OutPoint) -> TxOut | None:
        """The output that is spent, from the transaction that made it; None where the host leaves that
        out.
        """
        leaf = await fields.leaf(IN_NON_WITNESS_UTXO)
        if leaf is None:
            return None
        previous = await self._previous_transaction(leaf)
        if previous.txid != outpoint.txid or outpoint.vout >= len(previous.outputs):
            raise incorrect_data("the previous transaction is not the one that is spent")
        return previous.outputs[outpoint.vout]

    async def _previous_transaction(self, leaf: bytes) -> Transaction:
        if leaf not in self._previous:
            raw = await self._host.element_of(leaf, MAX_TRANSACTION_BYTES)
            self._previous[leaf] = Transaction.parse(raw)
            if len(self._previous) > _PREVIOUS_KEPT:
                self._previous.popitem(last=False)
        return self._previous[leaf]

    async def _output(self, fields: PsbtMap) -> LedgerOutput:
        amount = _number(await fields.require(_OUT_AMOUNT, 8))
        script = await fields.get(_OUT_SCRIPT, MAX_OUTPUT_SCRIPT_BYTES)
        if script is None:
            raise incorrect_data("an output without script")
        place = await self._place(fields, OUT_BIP32_DERIVATION, script)
        is_change = place is not None and place.chain == CHANGE
        return LedgerOutput(TxOut(sats(amount), script), is_change)

    async def _place(self, fields: PsbtMap, kind: int, script_pubkey: bytes) -> LedgerPlace | None:
        """Where in the wallet this script is, by a derivation that names one of our keys; None if it is not
        the wallet's.

        Derivations are claims: what counts is the script that the device itself derives there.
        """
        for public_key in fields.keys_of(kind):
            derivation = await fields.get(kind, MAX_DERIVATION_BYTES, public_key)
            place = self._ownership.place_of(derivation or b"")
            if place is not None:
                own = self._ownership.policy.of.script_pubkey(place.chain, place.index)
                return place if own == script_pubkey else None
        return None


async def _witness_utxo(fields: PsbtMap) -> TxOut | None:
    value = await fields.get(IN_WITNESS_UTXO, 8 + 1 + MAX_COIN_SCRIPT_BYTES)
    if value is None:
        return None
    reader = Reader(value)
    claimed = TxOut(sats(reader.uint(8)), reader.sized())
    reader.finish()
    return claimed


async def _uint32(fields: PsbtMap, kind: int, default: int) -> int:
    value = await fields.get(kind, 4)
    return default if value is None else _number(value)


def _number(value: bytes) -> int:
    return int.from_bytes(value, "little")
