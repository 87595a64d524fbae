"""The tokens' state in the database as a ``StateView``, read and written once for each batch of blocks; and
the state in which a new call would be judged: that of the tip, after the pending calls in their order.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Select, and_, delete, exists, insert, or_, select
from sqlalchemy.orm import Session, aliased

from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.proposals import TxType
from custody.server.domain.lifecycle import ENDED
from custody.server.service.stored_vaults import address_script
from custody.server.service.tokens.arguments import PlannedCall, refusal
from custody.server.service.tokens.index_reading import indexed_height
from custody.server.store.models import Contract, ContractCall, Proposal, TokenCell, Vault
from custody.server.store.models import TokenTransaction as TokenRow
from custody.server.store.models.base import table_of
from multisig.errors import InvalidToken
from multisig.tokens import Bytecode, Call, decode_payload, encode_payload, parse_bytecode
from multisig.tokens.machine import (
    BytecodeOf,
    Cell,
    Effect,
    Failure,
    StateView,
    TokenBlock,
    TokenTransaction,
    Value,
    simulate,
)

Key = tuple[str, Cell, bytes]
G = TypeVar("G")
V = TypeVar("V")
# SQLite takes 32,766 values in one statement (its limits.html), and long lists are no quicker.
VALUES_PER_STATEMENT = 500

_CELLS = table_of(TokenCell)
_C = _CELLS.c
_OF_HOLDER = (int(Cell.LISTED), int(Cell.BALANCE))
_OF_TOKEN = tuple(int(cell) for cell in Cell if int(cell) not in _OF_HOLDER)


class Cells:
    """The state of one chain within one transaction: a caching ``StateView``."""

    def __init__(self, db: Session, chain: str) -> None:
        self._db = db
        self._chain = chain
        self._known: dict[Key, Value] = {}
        self._whole: set[tuple[str, bytes]] = set()
        self._new: set[str] = set()
        self._changed: set[Key] = set()

    def get(self, contract_id: str, cell: Cell, holder: bytes = b"") -> Value:
        key = (contract_id, cell, holder)
        if key not in self._known:
            if contract_id not in self._new and (contract_id, holder) not in self._whole:
                self._load([(contract_id, holder)])
            self._known.setdefault(key, None)
        return self._known[key]

    def expect(self, blocks: Iterable[TokenBlock]) -> None:
        """Preloads what the transactions of these blocks will read."""
        self._load(sorted({place for block in blocks for place in _places(block)} - self._whole))

    def apply(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            key = (effect.contract_id, effect.cell, effect.holder)
            self._known[key] = effect.after
            self._changed.add(key)

    def write(self) -> None:
        """Stores what has changed."""
        changed = sorted(self._changed)
        for (contract_id, cell), holders in _grouped(((key[0], key[1]), key[2]) for key in changed):
            where = _C.chain == self._chain, _C.contract_id == contract_id, _C.cell == int(cell)
            self._db.execute(delete(_CELLS).where(*where, _C.holder.in_(holders)))
        rows = [row for key in changed if (row := self._row(key)) is not None]
        if rows:
            self._db.execute(insert(_CELLS), rows)
        self._changed.clear()

    def _load(self, places: Sequence[tuple[str, bytes]]) -> None:
        """Looks rows up by their whole key with lists of single values: for tuples in IN, SQLite would scan
        the table.
        """
        tokens = [contract_id for contract_id, holder in places if not holder]
        for _, some in _grouped(("", contract_id) for contract_id in tokens):
            self._fetch(_C.contract_id.in_(some), _C.cell.in_(_OF_TOKEN), _C.holder == b"")
        # Every deployment stores its hash: a token without one has no rows for holders to look up.
        self._new.update(each for each in tokens if (each, Cell.BYTECODE, b"") not in self._known)
        held = ((contract_id, holder) for contract_id, holder in places if holder)
        for contract_id, holders in _grouped(held):
            self._fetch(_C.contract_id == contract_id, _C.cell.in_(_OF_HOLDER), _C.holder.in_(holders))
        self._whole.update(places)

    def _fetch(self, *where: ColumnElement[bool]) -> None:
        columns = _C.contract_id, _C.cell, _C.holder, _C.number, _C.data
        for contract_id, cell, holder, number, data in self._db.execute(
            select(*columns).where(_C.chain == self._chain, *where)
        ):
            self._known.setdefault((contract_id, Cell(cell), holder), data if number is None else number)

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


def _grouped(pairs: Iterable[tuple[G, V]]) -> Iterator[tuple[G, list[V]]]:
    """Consecutive pairs of one group, as many as one statement takes."""
    for group, found in groupby(pairs, key=itemgetter(0)):
        members = [member for _, member in found]
        for start in range(0, len(members), VALUES_PER_STATEMENT):
            yield group, members[start : start + VALUES_PER_STATEMENT]


def _places(block: TokenBlock) -> Iterable[tuple[str, bytes]]:
    for transaction in block.transactions:
        yield transaction.txid, b""
        call = _call(transaction.data)
        if call is not None:
            yield call.contract_id, b""
            yield call.contract_id, transaction.caller
            if call.address is not None:
                yield call.contract_id, call.address


def _call(data: bytes | None) -> Call | None:
    try:
        payload = None if data is None else decode_payload(data)
    except InvalidToken:
        return None
    return payload if isinstance(payload, Call) else None


# Of one chain, within one transaction.
Published = Callable[[Session, str], BytecodeOf]


def published_bytecode(db: Session, chain: str) -> BytecodeOf:
    """Finds the bytecode of tokens that members here made, else None. Answers are cached."""

    @cache
    def find(bytecode_hash: bytes) -> Bytecode | None:
        of_hash = select(Contract.bytecode).where(
            Contract.chain == chain, Contract.bytecode_hash == bytecode_hash
        )
        blob = db.scalar(of_hash.limit(1))
        return None if blob is None else parse_bytecode(blob)

    return find


_OPEN = tuple(sorted(status.value for status in set(Status) - ENDED - {Status.CONFIRMED}))


@dataclass(frozen=True)
class Simulation:
    """The state after the last block that was read, and the calls that wait for the next one."""

    height: int
    view: StateView
    bytecode_of: BytecodeOf
    waiting: tuple[TokenTransaction, ...]

    def failure_of(self, call: TokenTransaction, *, alone: bool) -> Failure | None:
        """Why the call would have no effect after the waiting ones, or ``alone``; None where it would have
        one.
        """
        before = () if alone else self.waiting
        outcome = simulate((*before, call), self.height, self.view, self.bytecode_of)[-1]
        return outcome.failure if outcome.known else Failure.UNKNOWN_CONTRACT


def require_effect(
    db: Session, contract: Contract, contract_id: str, vault: Vault, planned: PlannedCall
) -> bytes:
    """The payload of a call that would have an effect. Raises as `refusal` does, and Invalid."""
    simulation = simulation_of(db, contract, vault.workspace_id)
    payload = encode_payload(planned.call(contract_id))
    call = TokenTransaction("", address_script(vault), payload)
    failure = simulation.failure_of(call, alone=False)
    if failure is not None:
        passes_alone = simulation.failure_of(call, alone=True) is None
        raise refusal(failure, planned, waiting=len(simulation.waiting) if passes_alone else 0)
    return payload


def simulation_of(db: Session, contract: Contract, workspace_id: int) -> Simulation:
    """The contract's state for a call from the workspace."""
    height = indexed_height(db, contract.chain)
    return Simulation(
        height + 1,
        Cells(db, contract.chain),
        published_bytecode(db, contract.chain),
        _waiting(db, contract, workspace_id),
    )


def deployed_id(db: Session, contract: Contract) -> str | None:
    """The contract's id on chain, once its deployment is confirmed."""
    query = (
        select(Proposal.txid_expected)
        .join(
            TokenCell,
            and_(
                TokenCell.contract_id == Proposal.txid_expected,
                TokenCell.chain == contract.chain,
                TokenCell.cell == int(Cell.DEPLOYED),
            ),
        )
        .where(
            Proposal.family_id == contract.deploy_family_id,
            Proposal.tx_type == TxType.DEPLOY.value,
            Proposal.status == Status.CONFIRMED.value,
        )
    )
    return db.scalars(query).first()


def _waiting(db: Session, contract: Contract, workspace_id: int) -> tuple[TokenTransaction, ...]:
    """One for each family: its versions carry the same call, and at most one of them is mined."""
    found: dict[int, TokenTransaction] = {}
    for uid, proposal, vault in db.execute(_waiting_calls(contract, workspace_id)):
        data = bytes.fromhex(proposal.op_return_hex or "")
        found.setdefault(uid, TokenTransaction(proposal.txid_expected, address_script(vault), data))
    return tuple(found.values())


def _waiting_calls(contract: Contract, workspace_id: int) -> Select[int, Proposal, Vault]:
    """Calls that may still be mined, or were mined in a block that the index has not read.

    Calls of other workspaces count only once they have reached the network: before that they are private
    (P24), and may never be sent.
    """
    member = aliased(Proposal)
    # A nested EXISTS: for a join SQLite would read all token transactions of the chain for each call.
    in_index = exists().where(TokenRow.chain == contract.chain, TokenRow.txid == member.txid_expected)
    was_read = exists().where(member.family_id == ContractCall.family_id, in_index)
    return (
        select(ContractCall.uid, Proposal, Vault)
        .join(Proposal, Proposal.family_id == ContractCall.family_id)
        .join(Vault, Vault.id == ContractCall.vault_id)
        .where(
            or_(Proposal.workspace_id == workspace_id, Proposal.txid.is_not(None)),
            Proposal.tx_type == TxType.CALL.value,
            or_(Proposal.status.in_(_OPEN), Proposal.keeps_coins),
            ContractCall.contract_uid == contract.uid,
            ~was_read,
        )
        .order_by(ContractCall.uid, Proposal.fee_sats, Proposal.id)
    )
