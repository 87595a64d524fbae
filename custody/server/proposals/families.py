"""What a replacement is made from: the original proposal, its family's coins, and its payments."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.proposals import TxType
from custody.server.errors import Invalid, NotFound, StateConflict
from custody.server.proposals.coins import Utxo, utxo_of
from custody.server.proposals.lifecycle import Coin, coins_of, holds_coins_clause, members_of, newer_than
from custody.server.proposals.payments import Intent, PaidRecipient
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.rules.fees import PricedTransaction
from custody.server.rules.lifecycle import REPLACEABLE
from custody.server.store.models import ChainCoinRow, CoinLockRow, ProposalInputRow, ProposalRow, VaultRow
from custody.server.vaults.stored import policy_of
from multisig import (
    Network,
    Psbt,
    Sats,
    Transaction,
    TxOut,
    decode_address,
    estimate_vsize,
)

# Not forwards: they spend no coin of a vault.
KINDS = frozenset({TxType.SEND, TxType.DEPLOY, TxType.CALL})
# Their first input identifies the caller, and their change always goes to the vault's first address (CPT-1).
TOKEN_KINDS = frozenset({TxType.DEPLOY, TxType.CALL})


@dataclass(frozen=True)
class ProposalFamily:
    """A proposal that may be replaced, with all its versions."""

    original: ProposalRow
    members: Sequence[ProposalRow]
    vault: VaultRow

    @property
    def is_of_token(self) -> bool:
        """True also where its newest member cancels the payment."""
        return any(TxType(member.tx_type) in TOKEN_KINDS for member in self.members)

    @property
    def rivals(self) -> tuple[PricedTransaction, ...]:
        """All versions, also ended ones: their signatures may have been given out, and they must not win."""
        return tuple(priced(member, self.vault) for member in self.members)

    def state(self, held: Iterable[Utxo]) -> Hashable:
        """The members, which of them are finalised, and the coins: what a version rests on."""
        members = frozenset((member.id, member.final_tx is not None) for member in self.members)
        return members, frozenset(utxo.outpoint for utxo in held)


def find_proposal(
    db: Session, access: WorkspaceAccess, vault: VaultRow, psbt_id: str, pointer: str
) -> ProposalRow:
    """Raises NotFound, and Invalid where it belongs to another vault than the request's."""
    proposal = db.get(ProposalRow, psbt_id)
    if proposal is None or proposal.workspace_id != access.workspace_id:
        raise NotFound("There is no such proposal in this workspace.")
    if proposal.vault_id != vault.id:
        raise Invalid.at("/wallet_id", f"The proposal in {pointer} is of another vault.")
    return proposal


def may_be_replaced(proposal: ProposalRow) -> bool:
    """By its own record only: its coins may have been spent."""
    waits = Status(proposal.status) in REPLACEABLE or proposal.keeps_coins
    return waits and TxType(proposal.tx_type) in KINDS and proposal.replaced_by_id is None


def require_replaceable(db: Session, original: ProposalRow, *, cancel: bool) -> None:
    """Raises StateConflict where it has ended, is confirmed, is not the newest, or another proposal spends
    its change.
    """
    if TxType(original.tx_type) not in KINDS:
        raise StateConflict(f"A proposal of the kind {original.tx_type} cannot be replaced.")
    newer = newer_than(db, original)
    if newer:
        raise StateConflict(f"It was replaced by {newer[-1].id}: replace that one.")
    status = Status(original.status)
    taken_back = original.keeps_coins and cancel
    if status not in REPLACEABLE and not taken_back:
        also = " Its coins come back with cancel." if original.keeps_coins else ""
        raise StateConflict(f"The proposal is {status}; it can no longer be replaced.{also}")
    _require_childless(db, original)


def _require_childless(db: Session, original: ProposalRow) -> None:
    """A proposal that spends its change could never be mined after a replacement. Spends by others do not
    count: a payee must not be able to prevent a cancellation.
    """
    made = {member.txid_expected for member in members_of(db, original.family_id)}
    query = (
        select(ProposalRow.id)
        .join(ProposalInputRow, ProposalInputRow.proposal_id == ProposalRow.id)
        .where(
            ProposalInputRow.txid.in_(made),
            ProposalRow.vault_id == original.vault_id,
            ProposalRow.profile_key_id.is_(None),
            ProposalRow.family_id != original.family_id,
            holds_coins_clause(),
        )
        # The newest version, which pays most, is the one that can still be declined or replaced.
        .order_by(ProposalRow.fee_sats.desc(), ProposalRow.id)
        .limit(1)
    )
    child = db.scalars(query).first()
    if child is not None:
        raise StateConflict(
            f"Proposal {child} spends its unconfirmed change, and would be lost with it. Decline that one "
            "while it lacks signatures; after that raise its fee, which pays for both."
        )


def intent_of(family: ProposalFamily) -> Intent:
    """What each version pays."""
    original, network = family.original, Network(family.vault.chain)
    # The recipients of a token's proposal are for the record only; they get no bitcoin.
    pays = TxType(original.tx_type) not in TOKEN_KINDS
    payments = tuple(
        PaidRecipient(address, TxOut(Sats(amount), decode_address(address, network)))
        for address, amount in (zip(original.recipients, original.amounts_sats, strict=True) if pays else ())
    )
    data = None if original.op_return_hex is None else bytes.fromhex(original.op_return_hex)
    return Intent(payments, data, sweeps=original.sweeps)


def family_utxos(db: Session, family: ProposalFamily, *, cancel: bool) -> tuple[Utxo, ...]:
    """Every coin of the original in the order of its inputs, and those of the other members that no other
    family has locked. So any two versions share coins and exclude each other. A bump of a sweep has the
    original's alone: it sends no coin that the sweep did not.

    A coin may have left the chain for good: a deposit that a reorganisation removed. A cancel may then use
    the remaining coins, as long as each version has one of them, so that it excludes them all; otherwise the
    others would stay locked for ever.

    Raises StateConflict where a coin of the original is missing.
    """
    inputs = _inputs_of(db, family.original)
    own = set(inputs)
    known = _known_coins(db, family)
    versions = {member.txid_expected for member in family.members}
    found: dict[Coin, Utxo] = {}
    for coin, (row, lock) in known.items():
        is_free = row.spent_by is None or row.spent_by in versions
        if is_free and lock in {None, family.original.family_id}:
            found[coin] = utxo_of(row)
    missing = own - set(found)
    if missing and not (cancel and not missing & set(known) and _each_has_one(db, family, set(found))):
        raise StateConflict(
            "A coin of the proposal is not on the chain, or was spent: it cannot be replaced now."
        )
    others = [] if family.original.sweeps and not cancel else sorted(set(found) - own)
    return tuple(found[coin] for coin in (*inputs, *others) if coin in found)


def _inputs_of(db: Session, original: ProposalRow) -> list[Coin]:
    query = select(ProposalInputRow.txid, ProposalInputRow.vout).where(
        ProposalInputRow.proposal_id == original.id
    )
    return [(txid, vout) for txid, vout in db.execute(query.order_by(ProposalInputRow.input_index))]


def _each_has_one(db: Session, family: ProposalFamily, left: set[Coin]) -> bool:
    return all(coins_of(db, [member.id]) & left for member in family.members)


def _known_coins(db: Session, family: ProposalFamily) -> dict[Coin, tuple[ChainCoinRow, str | None]]:
    """The members' coins that are on the chain, spent or not, with the families that have locked them. A
    deposit may have other outputs to this vault or to others: those are no coins of the family.
    """
    lock = and_(
        CoinLockRow.chain == ChainCoinRow.chain,
        CoinLockRow.txid == ChainCoinRow.txid,
        CoinLockRow.vout == ChainCoinRow.vout,
    )
    query = (
        select(ChainCoinRow, CoinLockRow.family_id)
        .join(
            ProposalInputRow,
            and_(ProposalInputRow.txid == ChainCoinRow.txid, ProposalInputRow.vout == ChainCoinRow.vout),
        )
        .outerjoin(CoinLockRow, lock)
        .where(
            ChainCoinRow.chain == family.vault.chain,
            ChainCoinRow.vault_id == family.vault.id,
            ProposalInputRow.proposal_id.in_([member.id for member in family.members]),
        )
    )
    return {(row.txid, row.vout): (row, family_id) for row, family_id in db.execute(query)}


class ChangeOutput(NamedTuple):
    """The change output of a proposal's transaction, and its derivation."""

    vout: int
    branch: int
    address_index: int


def change_of(proposal: ProposalRow) -> ChangeOutput | None:
    """Read from the PSBT, in which only the change has key origins; None without change. A token's
    transaction has its change at the vault's first address.
    """
    for vout, output in enumerate(Psbt.parse(proposal.psbt).outputs):
        for origin in output.derivations.values():
            branch, index = origin.path.indexes[-2:]
            return ChangeOutput(vout, branch, index)
    return None


def priced(member: ProposalRow, vault: VaultRow) -> PricedTransaction:
    """With its real size where known: signatures may be a byte or two smaller than estimated."""
    psbt = Psbt.parse(member.psbt)
    scripts = [output.script_pubkey for output in psbt.outputs]
    vsize = estimate_vsize(policy_of(vault), len(psbt.inputs), scripts)
    if member.final_tx is not None:
        vsize = min(vsize, Transaction.parse(member.final_tx).vsize)
    return PricedTransaction(Sats(member.fee_sats), vsize)
