"""The tokens' state in the database as a ``StateView``, written once for each batch of blocks; and the state
in which a new call would be judged: that of the tip, after the pending calls in their order.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Select, and_, bindparam, delete, exists, insert, or_, select
from sqlalchemy.orm import Session, aliased

from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.proposals import TxType
from custody.server.rules.lifecycle import ENDED
from custody.server.store.models import ContractCallRow, ContractRow, ProposalRow, TokenCellRow, VaultRow
from custody.server.store.models import TokenTransactionRow as TokenRow
from custody.server.store.models.base import table_of
from custody.server.tokens.arguments import PlannedCall, refusal
from custody.server.tokens.index_reading import IndexedBlock
from custody.server.vaults.stored import address_script
from multisig.tokens import Bytecode, encode_payload, parse_bytecode
from multisig.tokens.machine import (
    BytecodeOf,
    Cell,
    Effect,
    TokenFailure,
    TokenTransaction,
    Value,
    simulate,
)

Key = tuple[str, Cell, bytes]

_CELLS = table_of(TokenCellRow)
_C = _CELLS.c
_OF_KEY = (
    _C.chain == bindparam("of_chain"),
    _C.contract_id == bindparam("of_contract"),
    _C.cell == bindparam("of_cell"),
    _C.holder == bindparam("of_holder"),
)
_READ = select(_C.number, _C.data).where(*_OF_KEY)
# Each cell by its key: the index would otherwise be read for all holders.
_READ_OWN = select(_C.cell, _C.number, _C.data).where(
    _C.chain == bindparam("of_chain"),
    _C.contract_id == bindparam("of_contract"),
    _C.cell.in_([int(cell) for cell in Cell]),
    _C.holder == b"",
)
_DELETE = delete(_CELLS).where(*_OF_KEY)


class Cells:
    """The state of one chain within one transaction: a ``StateView`` that reads each cell once."""

    def __init__(self, db: Session, chain: str) -> None:
        self._db = db
        self._chain = chain
        self._known: dict[Key, Value] = {}
        self._changed: set[Key] = set()

    def get(self, contract_id: str, cell: Cell, holder: bytes = b"") -> Value:
        """Every deployment stores its hash: of a token without one, which a stranger made, nothing else is
        read.
        """
        key, deployed = (contract_id, cell, holder), (contract_id, Cell.BYTECODE, b"")
        if deployed not in self._known:
            self._read_own(contract_id)
        if key not in self._known:
            self._known[key] = None if self._known[deployed] is None else self._read(key)
        return self._known[key]

    def _read_own(self, contract_id: str) -> None:
        """The cells of the token itself, of no holder, at once: most calls need several."""
        found = self._db.execute(_READ_OWN, {"of_chain": self._chain, "of_contract": contract_id})
        stored = {Cell(cell): joined(*value) for cell, *value in found}
        if Cell.BYTECODE not in stored:
            stored.clear()
        for cell in Cell:
            self._known.setdefault((contract_id, cell, b""), stored.get(cell))

    def _read(self, key: Key) -> Value:
        found = self._db.execute(_READ, self._place(key)).one_or_none()
        return None if found is None else joined(*found)

    def apply(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            key = (effect.contract_id, effect.cell, effect.holder)
            self._known[key] = effect.after
            self._changed.add(key)

    def write(self) -> None:
        """Stores what has changed."""
        changed = sorted(self._changed)
        if changed:
            self._db.connection().execute(_DELETE, [self._place(key) for key in changed])
        rows = [row for key in changed if (row := self._row(key)) is not None]
        if rows:
            self._db.execute(insert(_CELLS), rows)
        self._changed.clear()

    def _place(self, key: Key) -> dict[str, Any]:
        contract_id, cell, holder = key
        return {
            "of_chain": self._chain,
            "of_contract": contract_id,
            "of_cell": int(cell),
            "of_holder": holder,
        }

    def _row(self, key: Key) -> dict[str, Any] | None:
        contract_id, cell, holder = key
        value = self._known[key]
        if value is None:
            return None
        number, data = split(value)
        return {
            "chain": self._chain,
            "contract_id": contract_id,
            "cell": int(cell),
            "holder": holder,
            "number": number,
            "data": data,
        }


def split(value: Value) -> tuple[int | None, bytes | None]:
    """The two columns of a value: a number, or data."""
    return (value, None) if isinstance(value, int) else (None, value)


def joined(number: int | None, data: bytes | None) -> Value:
    return data if number is None else number


# Of one chain, within one transaction.
Published = Callable[[Session, str], BytecodeOf]


def published_bytecode(db: Session, chain: str) -> BytecodeOf:
    """Finds the bytecode of tokens that members here made, else None. Answers are cached."""

    @cache
    def find(bytecode_hash: bytes) -> Bytecode | None:
        of_hash = select(ContractRow.bytecode).where(
            ContractRow.chain == chain, ContractRow.bytecode_hash == bytecode_hash
        )
        blob = db.scalar(of_hash.limit(1))
        return None if blob is None else parse_bytecode(blob)

    return find


_OPEN = tuple(sorted(status.value for status in set(Status) - ENDED - {Status.CONFIRMED}))


@dataclass(frozen=True)
class CallContext:
    """What decides whether a call has an effect, beside the call: the state after the last block that was
    read, and the calls that wait for the next one.
    """

    contract_id: str
    block: IndexedBlock
    waiting: tuple[TokenTransaction, ...]


def require_effect(db: Session, vault: VaultRow, planned: PlannedCall, context: CallContext) -> None:
    """Raises as `refusal` does where the call would have no effect."""
    view, bytecode_of = Cells(db, vault.chain), published_bytecode(db, vault.chain)
    call = TokenTransaction("", address_script(vault), encode_payload(planned.call(context.contract_id)))

    def failure_after(before: tuple[TokenTransaction, ...]) -> TokenFailure | None:
        outcome = simulate((*before, call), context.block.height + 1, view, bytecode_of)[-1]
        return outcome.failure if outcome.known else TokenFailure.UNKNOWN_CONTRACT

    failure = failure_after(context.waiting)
    if failure is not None:
        passes_alone = failure_after(()) is None
        raise refusal(failure, planned, waiting=len(context.waiting) if passes_alone else 0)


def deployed_id(db: Session, contract: ContractRow) -> str | None:
    """The contract's id on chain, once its deployment is confirmed."""
    query = (
        select(ProposalRow.txid_expected)
        .join(
            TokenCellRow,
            and_(
                TokenCellRow.contract_id == ProposalRow.txid_expected,
                TokenCellRow.chain == contract.chain,
                TokenCellRow.cell == int(Cell.DEPLOYED),
            ),
        )
        .where(
            ProposalRow.family_id == contract.deploy_family_id,
            ProposalRow.tx_type == TxType.DEPLOY.value,
            ProposalRow.status == Status.CONFIRMED.value,
        )
    )
    return db.scalars(query).first()


def waiting_calls(db: Session, contract: ContractRow, workspace_id: int) -> tuple[TokenTransaction, ...]:
    """One for each family: its versions carry the same call, and at most one of them is mined."""
    found: dict[int, TokenTransaction] = {}
    for uid, proposal, vault in db.execute(_waiting_calls(contract, workspace_id)):
        data = bytes.fromhex(proposal.op_return_hex or "")
        found.setdefault(uid, TokenTransaction(proposal.txid_expected, address_script(vault), data))
    return tuple(found.values())


def _waiting_calls(contract: ContractRow, workspace_id: int) -> Select[int, ProposalRow, VaultRow]:
    """Calls that may still be mined, or were mined in a block that the index has not read.

    Calls of other workspaces count only once they have reached the network: before that they are private
    (P24), and may never be sent.
    """
    member = aliased(ProposalRow)
    # A nested EXISTS: for a join SQLite would read all token transactions of the chain for each call.
    in_index = exists().where(TokenRow.chain == contract.chain, TokenRow.txid == member.txid_expected)
    was_read = exists().where(member.family_id == ContractCallRow.family_id, in_index)
    return (
        select(ContractCallRow.uid, ProposalRow, VaultRow)
        .join(ProposalRow, ProposalRow.family_id == ContractCallRow.family_id)
        .join(VaultRow, VaultRow.id == ContractCallRow.vault_id)
        .where(
            or_(ProposalRow.workspace_id == workspace_id, ProposalRow.txid.is_not(None)),
            ProposalRow.tx_type == TxType.CALL.value,
            or_(ProposalRow.status.in_(_OPEN), ProposalRow.keeps_coins),
            ContractCallRow.contract_uid == contract.uid,
            ~was_read,
        )
        .order_by(ContractCallRow.uid, ProposalRow.fee_sats, ProposalRow.id)
    )
