"""What the tokens' machine reads of a block."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.server.chain.backend import DataBlock, DataTransaction
from custody.server.store.models import ContractRow, ProposalRow
from custody.server.store.store import chunks
from multisig.errors import InvalidToken
from multisig.script import ScriptKind, classify, parse_op_return
from multisig.tokens import Deploy, decode_payload
from multisig.tokens.machine import TokenBlock, TokenTransaction
from multisig.tokens.payload import MAGIC


def token_block(block: DataBlock) -> TokenBlock:
    """Its transactions with a token's data, in order (docs/understand/tokens.md, "What calls do")."""
    found = tuple(_transaction(carrier) for carrier in block.transactions)
    return TokenBlock(block.ref.height, bytes.fromhex(block.ref.hash)[::-1], found)


def deployments_in(blocks: Iterable[DataBlock]) -> frozenset[str]:
    """The txids of all that deploy a token."""
    return frozenset(
        carrier.transaction.txid
        for block in blocks
        for carrier in block.transactions
        if _deploys(_transaction(carrier).data)
    )


def without(block: DataBlock, txids: Collection[str]) -> DataBlock:
    """The block without these transactions; the others keep their positions."""
    kept = tuple(carrier for carrier in block.transactions if carrier.transaction.txid not in txids)
    return replace(block, transactions=kept)


def _deploys(data: bytes | None) -> bool:
    try:
        return data is not None and isinstance(decode_payload(data), Deploy)
    except InvalidToken:
        return False


def _transaction(carrier: DataTransaction) -> TokenTransaction:
    """Its data is that of its one OP_RETURN output of no value; with a second such output it has none."""
    outputs = [
        output
        for output in carrier.transaction.outputs
        if classify(output.script_pubkey) is ScriptKind.OP_RETURN
    ]
    data = parse_op_return(outputs[0].script_pubkey) if len(outputs) == 1 else None
    whole = data is not None and data.startswith(MAGIC) and outputs[0].amount == 0
    return TokenTransaction(carrier.transaction.txid, carrier.caller, data if whole else None)


# Those of the txids on one chain that count, within one transaction.
Proposed = Callable[[Session, str, Collection[str]], Collection[str]]


def proposed_deployments(db: Session, chain: str, txids: Collection[str]) -> frozenset[str]:
    """Those that a member of this platform proposed, in any version, whatever became of the proposal: what
    was signed may be mined.

    Only these count. The row of a proposal is there before its transaction can be signed, so that whether a
    deployment counts is known when its block is read, and never changes: no one makes the index read a block
    again by publishing the bytecode of a deployment that others have mined.
    """
    query = (
        select(ProposalRow.txid_expected)
        .join(ContractRow, ContractRow.deploy_family_id == ProposalRow.family_id)
        .where(ContractRow.chain == chain)
    )
    return frozenset(
        txid
        for some in chunks(txids)
        for txid in db.scalars(query.where(ProposalRow.txid_expected.in_(some)))
    )
