"""A call, checked before it is proposed: its arguments and the address, and whether it would have an effect
after the calls that wait before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import exists, or_, select
from sqlalchemy.orm import Session, aliased

from custody.schemas.asset_tokens import (
    CallArg,
    CallContractRequest,
    NumberArg,
    TextArg,
)
from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.proposals import TxType
from custody.server import errors
from custody.server.proposals.payments import read_script
from custody.server.rules.lifecycle import ENDED
from custody.server.store.models import (
    ContractCallRow,
    ContractRow,
    ProposalRow,
    VaultRow,
    WatchedScriptRow,
)
from custody.server.store.models import TokenTransactionRow as TokenRow
from custody.server.tokens.index_reading import IndexedBlock
from custody.server.tokens.state import Cells
from custody.server.tokens.status import FAILURE_WORDS
from custody.server.vaults.stored import address_script, may_be_of_vault
from multisig import InvalidAddress, Network
from multisig.errors import InvalidToken
from multisig.tokens import Function, TokenAmount, TokenCall, encode_payload, parse_bytecode
from multisig.tokens.machine import TokenFailure, TokenTransaction, simulate

# Where the specification has them: the address first, then the amount.
ADDRESS, AMOUNT = "/args/0/value", "/args/1/value"


@dataclass(frozen=True)
class PlannedCall:
    """A call before its contract is known on chain. ``address_at``: where the request has the address."""

    function: Function
    args: tuple[CallArg, ...]
    address: bytes | None
    amount: int | None
    address_at: str

    def call(self, contract_id: str) -> TokenCall:
        """Raises Invalid for an amount of zero, and for an address that cannot hold a token."""
        amount = None if self.amount is None else TokenAmount(self.amount)
        try:
            return TokenCall(
                contract_id=contract_id, function=self.function, amount=amount, address=self.address
            )
        except InvalidToken as error:
            pointer = AMOUNT if amount == 0 else self.address_at
            raise errors.Invalid.at(pointer, str(error), error.code) from error


def read_call(request: CallContractRequest, network: Network, address_at: str = ADDRESS) -> PlannedCall:
    """Raises Invalid, WrongNetworkAddress (P28)."""
    function = Function[request.function_name.upper()]
    expected = [
        kind for kind, taken in (("str", function.takes_address), ("int", function.takes_amount)) if taken
    ]
    given = [arg.type for arg in request.args]
    if given != expected:
        raise errors.Invalid.at("/args", f"{function.wire_name} takes {_words(function)}.")
    texts = [arg.value for arg in request.args if isinstance(arg, TextArg)]
    numbers = [arg.value for arg in request.args if isinstance(arg, NumberArg)]
    address = read_script(texts[0], network, address_at, InvalidAddress.code) if texts else None
    for place, recipient in enumerate(request.recipients or ()):
        read_script(recipient, network, f"/recipients/{place}", InvalidAddress.code)
    return PlannedCall(function, tuple(request.args), address, numbers[0] if numbers else None, address_at)


def _words(function: Function) -> str:
    match function.takes_address, function.takes_amount:
        case True, True:
            return "two arguments: a str, the address, and an int, the amount in raw units"
        case True, False:
            return "one argument: a str, the address"
        case _:
            return "no arguments"


# Tokens that these bring to an address leave it only by a call from there.
_MOVING = frozenset({Function.TRANSFER, Function.MINT, Function.TRANSFER_OWNERSHIP})


def require_vault_address(db: Session, vault: VaultRow, planned: PlannedCall) -> None:
    """A vault is its ``address`` to every token: it calls only from there, and tokens at its other scripts
    could not be moved again.

    Raises Invalid where a call would bring them to such a script of one of the workspace's vaults.
    """
    address = planned.address
    if planned.function not in _MOVING or address is None or not may_be_of_vault(address):
        return
    owner = db.scalars(
        select(VaultRow)
        .join(WatchedScriptRow, WatchedScriptRow.vault_id == VaultRow.id)
        .where(
            WatchedScriptRow.chain == vault.chain,
            WatchedScriptRow.script_pubkey == address,
            # No caller learns which scripts other workspaces have.
            VaultRow.workspace_id == vault.workspace_id,
        )
    ).one_or_none()
    if owner is None or address == address_script(owner):
        return
    sentence = (
        f"Tokens at this address of vault {owner.name} could not be moved again: a vault calls only from its "
        f"own address. Use {owner.address}."
    )
    raise errors.Invalid.at(planned.address_at, sentence, "out-of-reach")


CALLER, ADDRESS_AT, STATE = "/wallet_id", "address", ""

# Where the request breaks the rule; a rule of the token's state is at no field.
_ANSWERS: Mapping[TokenFailure, tuple[type[errors.CustodyError], str]] = {
    TokenFailure.UNKNOWN_CONTRACT: (errors.DeploymentNotConfirmed, STATE),
    TokenFailure.NOT_THE_OWNER: (errors.Invalid, CALLER),
    TokenFailure.TOO_EARLY: (errors.DeploymentNotConfirmed, STATE),
    TokenFailure.ALREADY_STARTED: (errors.StateConflict, STATE),
    TokenFailure.NOT_STARTED: (errors.StateConflict, STATE),
    TokenFailure.PAUSED: (errors.StateConflict, STATE),
    TokenFailure.NOT_PAUSED: (errors.NotPaused, STATE),
    TokenFailure.NOT_LISTED: (errors.Invalid, ADDRESS_AT),
    TokenFailure.ALREADY_LISTED: (errors.Invalid, ADDRESS_AT),
    TokenFailure.OWNER_IS_LISTED: (errors.Invalid, ADDRESS_AT),
    TokenFailure.WHITELIST_ALREADY_ON: (errors.StateConflict, STATE),
    TokenFailure.WHITELIST_ALREADY_OFF: (errors.StateConflict, STATE),
    TokenFailure.INSUFFICIENT_BALANCE: (errors.InsufficientFunds, AMOUNT),
    TokenFailure.ABOVE_MAXIMUM: (errors.Invalid, AMOUNT),
    TokenFailure.NOT_THE_OWNERS_ADDRESS: (errors.Invalid, ADDRESS_AT),
    TokenFailure.ALREADY_THE_OWNER: (errors.Invalid, ADDRESS_AT),
}


def refusal(failure: TokenFailure, planned: PlannedCall, *, waiting: int) -> errors.CustodyError:
    """What the call would break, as an error (docs/understand/tokens.md).

    ``waiting``: how many calls wait before it, if it fails only because of them; 0 where it fails without
    them too.
    """
    (kind, where), sentence = _ANSWERS[failure], FAILURE_WORDS[failure]
    if failure is TokenFailure.PAUSED and planned.function is Function.PAUSE:
        kind, sentence = errors.AlreadyPaused, "The token is paused already."
    if waiting:
        calls = "one call" if waiting == 1 else f"{waiting} calls"
        sentence = f"{sentence} So it will be once what waits before it is mined: {calls}."
        if failure is TokenFailure.INSUFFICIENT_BALANCE:
            kind = errors.LockedFunds
            sentence = f"The rest is reserved by what waits before it: {calls}."
    pointer = planned.address_at if where == ADDRESS_AT else where
    return kind(sentence, faults=(errors.fault(pointer, sentence, failure.value),))


_OPEN = tuple(sorted(status.value for status in set(Status) - ENDED - {Status.CONFIRMED}))


@dataclass(frozen=True)
class CallContext:
    """What decides whether a call has an effect, beside the call: the state after the last block that was
    read, and the calls that wait for the next one.
    """

    contract_id: str
    block: IndexedBlock
    waiting: tuple[TokenTransaction, ...]


def require_effect(
    db: Session, vault: VaultRow, contract: ContractRow, planned: PlannedCall, context: CallContext
) -> None:
    """Raises as `refusal` does where the call would have no effect."""
    own = address_script(vault)
    view = Cells(db, vault.chain, filter(None, (own, planned.address)))
    bytecode_of = {contract.bytecode_hash: parse_bytecode(contract.bytecode)}.get
    call = TokenTransaction("", own, encode_payload(planned.call(context.contract_id)))

    def failure_after(before: tuple[TokenTransaction, ...]) -> TokenFailure | None:
        outcome = simulate((*before, call), context.block.height + 1, view, bytecode_of)[-1]
        return outcome.failure if outcome.known else TokenFailure.UNKNOWN_CONTRACT

    failure = failure_after(context.waiting)
    if failure is not None:
        passes_alone = failure_after(()) is None
        raise refusal(failure, planned, waiting=len(context.waiting) if passes_alone else 0)


def waiting_calls(db: Session, contract: ContractRow, workspace_id: int) -> tuple[TokenTransaction, ...]:
    """Calls that may still be mined, or were mined in a block that the index has not read. One for each
    family: its versions carry the same call, and at most one of them is mined.

    Calls of other workspaces count only once they have reached the network: before that they are private
    (P24), and may never be sent.
    """
    member = aliased(ProposalRow)
    # A nested EXISTS: for a join SQLite would read all token transactions of the chain for each call.
    in_index = exists().where(TokenRow.chain == contract.chain, TokenRow.txid == member.txid_expected)
    was_read = exists().where(member.family_id == ContractCallRow.family_id, in_index)
    query = (
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
    calls: dict[int, TokenTransaction] = {}
    for uid, proposal, vault in db.execute(query):
        data = bytes.fromhex(proposal.op_return_hex or "")
        calls.setdefault(uid, TokenTransaction(proposal.txid_expected, address_script(vault), data))
    return tuple(calls.values())
