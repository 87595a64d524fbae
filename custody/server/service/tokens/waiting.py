"""The state in which a new call would be judged: that of the tip, after the pending calls in their order."""

from dataclasses import dataclass

from sqlalchemy import Select, and_, exists, or_, select
from sqlalchemy.orm import Session, aliased

from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.proposals import TxType
from custody.server.domain.lifecycle import ENDED
from custody.server.service.stored_vaults import address_script
from custody.server.service.tokens.arguments import PlannedCall, refusal
from custody.server.service.tokens.index_reading import indexed_height
from custody.server.service.tokens.state import Cells, published_bytecode
from custody.server.store.models import Contract, ContractCall, Proposal, TokenCell, Vault
from custody.server.store.models import TokenTransaction as TokenRow
from multisig.tokens import encode_payload
from multisig.tokens.machine import BytecodeOf, Cell, Failure, StateView, TokenTransaction, simulate

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
