"""Reads a send request: recipients (addresses or payment links) with amounts, data for an OP_RETURN, the fee
rate, and the coins that it names.

Exactly the named coins are spent, and the error names each one that cannot be. A coin of another vault is
treated as missing (P24). The transaction that locks the coins checks them again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from string import hexdigits
from typing import Final

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from custody.common.recipients import Recipient, read_recipient
from custody.common.text import foreign
from custody.schemas.errors import FieldError
from custody.schemas.proposals import CreatePsbtRequest
from custody.schemas.sending import MaxSendQuery
from custody.server.calls import Ctx
from custody.server.errors import Dust, Invalid, LockedFunds, WrongNetworkAddress, fault
from custody.server.network.backends import Quote
from custody.server.proposals.coins import (
    COINBASE_MATURITY,
    Utxo,
    is_own_change,
    kept_for_tokens,
    token_coins,
    utxo_of,
)
from custody.server.proposals.seeing import holder_words, holders
from custody.server.rules.fees import CEILING, STANDARD_PRIORITY
from custody.server.store.models import ChainCoinRow, CoinAsideRow, CoinLockRow, VaultRow
from custody.server.vaults.stored import IS_ASIDE_OF_COIN, IS_LOCK_OF_COIN, lasts
from multisig import (
    MAX_MONEY,
    FeeRate,
    InvalidAddress,
    InvalidAmount,
    Network,
    OutPoint,
    Sats,
    TxOut,
    WrongNetwork,
    decode_address,
    dust_threshold,
    encode_address,
    op_return_script,
)
from multisig.errors import MultisigError
from multisig.script import MAX_OP_RETURN_BYTES
from multisig.tokens import is_token_payload


@dataclass(frozen=True)
class PaidRecipient:
    """One recipient: its address and its output."""

    address: str
    output: TxOut


@dataclass(frozen=True)
class Intent:
    """The outputs of a send. ``sweeps``: it sends everything to its single recipient; the coins decide the
    amount.
    """

    payments: tuple[PaidRecipient, ...] = ()
    op_return: bytes | None = None
    sweeps: bool = False

    @property
    def outputs(self) -> tuple[TxOut, ...]:
        """The payments in the given order, then the data."""
        data = () if self.op_return is None else (TxOut(Sats(0), op_return_script(self.op_return)),)
        return (*(payment.output for payment in self.payments), *data)

    @property
    def total(self) -> Sats:
        return Sats(sum(payment.output.amount for payment in self.payments))

    def of_everything(self, amount: Sats) -> "Intent":
        """The sweep with its amount. Raises Dust."""
        (payment,) = self.payments
        output = replace(payment.output, amount=amount)
        _require_no_dust(output, "/recipients/0")
        return replace(self, payments=(replace(payment, output=output),))


def read_intent(request: CreatePsbtRequest, network: Network) -> Intent:
    """Everything is sent only where the request says so, never for lack of an amount (P103).

    Raises Invalid, WrongNetworkAddress (P28), Dust (P29).
    """
    recipients, intent = _recipients(request, network)
    if request.sweeps:
        if recipients[0].amount is not None:
            raise Invalid.at("/recipients/0", "The link names an amount, and a sweep has none.")
        return replace(intent, sweeps=True)
    payments = []
    for place, (recipient, payment) in enumerate(zip(recipients, intent.payments, strict=True)):
        given = None if request.amounts_sats is None else request.amounts_sats[place]
        output = replace(payment.output, amount=merge_amount(recipient, given, f"/recipients/{place}"))
        _require_no_dust(output, f"/amounts_sats/{place}")
        payments.append(replace(payment, output=output))
    if sum(payment.output.amount for payment in payments) > MAX_MONEY:
        raise Invalid.at("/amounts_sats", "The amounts add up to more than 21 million bitcoin.")
    return replace(intent, payments=tuple(payments))


def read_recipients(query: MaxSendQuery, network: Network) -> Intent:
    """With amounts of 0, whatever a link names. Raises Invalid, WrongNetworkAddress."""
    _, intent = _recipients(query, network)
    return intent


def _recipients(
    request: CreatePsbtRequest | MaxSendQuery, network: Network
) -> tuple[list[Recipient], Intent]:
    recipients, outputs = [], list[TxOut]()
    for place, text in enumerate(request.recipients):
        pointer = f"/recipients/{place}"
        recipients.append(parse_recipient(text, network, pointer))
        output = TxOut(Sats(0), read_script(recipients[-1].address, network, pointer))
        if output in outputs:
            raise Invalid.at(pointer, "The recipient is given twice: give it once, with the sum.")
        outputs.append(output)
    # As the address is written everywhere, not as it was typed: bech32 may be in capitals (BIP-173).
    paid = (PaidRecipient(str(encode_address(each.script_pubkey, network)), each) for each in outputs)
    data = None if request.op_return is None else parse_op_return(request.op_return)
    return recipients, Intent(tuple(paid), data)


def read_script(address: str, network: Network, pointer: str, code: str = "invalid") -> bytes:
    """Raises WrongNetworkAddress, Invalid."""
    try:
        return decode_address(address, network)
    except WrongNetwork as error:
        raise WrongNetworkAddress.at(pointer, str(error), "wrong-network") from error
    except InvalidAddress as error:
        raise Invalid.at(pointer, str(error), code) from error


def _require_no_dust(output: TxOut, pointer: str) -> None:
    threshold = dust_threshold(output.script_pubkey)
    if output.amount < threshold:
        sentence = f"{output.amount} sat is dust: this kind of address takes {threshold} sat at least."
        raise Dust.at(pointer, sentence, "dust")


# Of a node, that it says so; of an explorer, which does not, that every node takes it.
LEAST_NOW: Final = "the least that is known to be taken now"


def read_rate(request: CreatePsbtRequest | MaxSendQuery, quote: Quote) -> FeeRate:
    """The requested rate, or that of the priority. Raises Invalid below the floor and above the cap (P48)."""
    if request.fee_rate is None:
        return quote.rates[request.priority or STANDARD_PRIORITY]
    if request.priority is not None:
        raise Invalid.at("/fee_rate", "Give fee_rate or priority, not both.")
    return rate_of(request.fee_rate, quote)


def rate_of(text: str, quote: Quote) -> FeeRate:
    """The same, of a rate alone."""
    try:
        rate = FeeRate.from_sat_per_vb(Decimal(text))
    except InvalidAmount as error:
        raise Invalid.at("/fee_rate", str(error)) from error
    if not quote.floor <= rate <= CEILING:
        sentence = f"The rate must be from {quote.floor}, {LEAST_NOW}, to {CEILING}."
        raise Invalid.at("/fee_rate", sentence)
    return rate


def named_coins(
    ctx: Ctx, vault: VaultRow, named: Sequence[str], tip_height: int, outputs: Sequence[TxOut]
) -> tuple[tuple[Utxo, ...], Utxo | None]:
    """The coins in the given order; and another coin, which stays for the vault's tokens.

    Raises Invalid for coins that are not the vault's, spent, unconfirmed, set aside or kept for its tokens;
    otherwise LockedFunds for locked ones. The error has a fault for each such coin.
    """
    db, now = ctx.db, ctx.now
    parted = (text.partition(":") for text in named)
    outpoints = [OutPoint(txid, int(vout)) for txid, _, vout in parted]
    query = (
        select(ChainCoinRow, CoinLockRow.family_id, CoinAsideRow)
        .outerjoin(CoinLockRow, IS_LOCK_OF_COIN)
        .outerjoin(CoinAsideRow, and_(IS_ASIDE_OF_COIN, lasts(now)))
        .where(
            ChainCoinRow.chain == vault.chain,
            ChainCoinRow.vault_id == vault.id,
            ChainCoinRow.txid.in_(sorted({outpoint.txid for outpoint in outpoints})),
        )
    )
    known: dict[OutPoint, tuple[ChainCoinRow, str | None, CoinAsideRow | None]]
    known = {OutPoint(coin.txid, coin.vout): (coin, lock, row) for coin, lock, row in db.execute(query)}
    rows = [known.get(outpoint, (None, None, None)) for outpoint in outpoints]
    refused = [
        fault(f"/coins/{place}", f"{named[place]} {why[1]}", why[0])
        for place, (coin, _, aside) in enumerate(rows)
        if (why := _why_not(db, coin, tip_height, aside)) is not None
    ]
    if refused:
        raise Invalid(_in_a_sentence(refused), faults=tuple(refused))
    locks = [lock for _, lock, _ in rows]
    if any(locks):
        held_by = holders(ctx, set(filter(None, locks)))
        held = [
            fault(
                f"/coins/{place}", f"{named[place]} is locked by {holder_words(held_by.get(lock))}.", "locked"
            )
            for place, lock in enumerate(locks)
            if lock is not None
        ]
        raise LockedFunds(_in_a_sentence(held), faults=tuple(held))
    coins = tuple(utxo_of(coin) for coin, _, _ in rows if coin is not None)
    kept = kept_for_tokens(db, vault, tip_height, outputs, now)
    if kept is not None and kept in coins:
        left = [utxo for utxo in token_coins(db, vault, tip_height, now) if utxo not in coins]
        if not left:
            sentence = f"{kept.outpoint} stays at the vault's address, for its tokens."
            raise Invalid.at(f"/coins/{coins.index(kept)}", sentence, "kept-for-tokens")
        kept = left[-1]
    return coins, kept


def _why_not(
    db: Session, coin: ChainCoinRow | None, tip_height: int, aside: CoinAsideRow | None
) -> tuple[str, str] | None:
    """A code, and words that follow the outpoint."""
    if coin is None:
        return "unknown-coin", "is not a coin of this vault."
    if coin.spent_by is not None:
        return "spent", f"is spent by {coin.spent_by}."
    if coin.height is None and not is_own_change(db, coin):
        return "unconfirmed", "is not confirmed yet, and its sender may replace it."
    if coin.is_coinbase and (coin.height or 0) > tip_height + 1 - COINBASE_MATURITY:
        return "immature", f"was mined less than {COINBASE_MATURITY} blocks ago."
    if aside is not None:
        return "set-aside", f"is set aside (“{foreign(aside.reason)}”): release it before you spend it."
    return None


def _in_a_sentence(faults: Sequence[FieldError]) -> str:
    return " ".join(fault.detail for fault in faults[:3]) + (" …" if len(faults) > 3 else "")


def parse_recipient(text: str, network: Network, pointer: str) -> Recipient:
    """Raises Invalid for a link that cannot be paid."""
    try:
        return read_recipient(text, network)
    except MultisigError as error:
        raise Invalid.at(pointer, str(error)) from error


def merge_amount(recipient: Recipient, given: int | None, pointer: str) -> Sats:
    """The amount of a recipient: the link's or the request's. Where both give one, they must be equal."""
    if given is None and recipient.amount is None:
        sentence = (
            "This recipient has no amount: give it in amounts_sats, or in a payment link (BIP-321), or send "
            "everything with sweep: true."
        )
        raise Invalid.at(pointer, sentence)
    if given is not None and recipient.amount is not None and given != recipient.amount:
        raise Invalid.at(pointer, "The link names another amount than the one that is given beside it.")
    return Sats(given) if given is not None else recipient.amount or Sats(0)


def parse_op_return(text: str) -> bytes:
    """The payload: hex where prefixed ``0x``, else UTF-8.

    Raises Invalid for more than 80 bytes, for broken hex, and for data that poses as a token call.
    """
    is_hex = text.startswith("0x")
    if is_hex and (set(text[2:]) - set(hexdigits) or len(text) % 2):
        raise Invalid.at("/op_return", "After 0x comes an even number of hex digits.")
    payload = bytes.fromhex(text[2:]) if is_hex else text.encode()
    if not payload:
        raise Invalid.at("/op_return", "The data is empty.")
    if len(payload) > MAX_OP_RETURN_BYTES:
        raise Invalid.at(
            "/op_return", f"The data has {len(payload)} bytes; nodes relay {MAX_OP_RETURN_BYTES} at most."
        )
    if is_token_payload(payload):
        # Only the token endpoints may make one (P30).
        raise Invalid.at("/op_return", "Data that begins with CPT is a token call; use call-contract.")
    return payload
