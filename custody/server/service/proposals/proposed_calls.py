"""What proposals do to tokens, decoded from the very bytes that are signed: for many at once, and at no cost for sends."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.proposals import DecodedCall, TxType
from custody.server.store.models import Contract, ContractCall, Proposal
from multisig import Network, Psbt
from multisig.tokens import (
    Bytecode,
    Deploy,
    Payload,
    TokenAmount,
    format_units,
    parse_bytecode,
    token_of_script,
    token_words,
)

_OF_TOKENS: Final = frozenset({TxType.DEPLOY.value, TxType.CALL.value})
# A list shows the calls on few tokens, again and again; a bytecode has 80,000 bytes at most.
_REMEMBERED: Final = 32


@dataclass(frozen=True)
class ProposedCall:
    """What a proposal's record says of tokens."""

    contract_uid: int | None = None
    call_uid: int | None = None
    decoded: DecodedCall | None = None
    contract_ids: list[str] = field(default_factory=list)


NO_TOKEN: Final = ProposedCall()


@dataclass(frozen=True)
class _Asked:
    """What a family is for. ``call_uid`` None: it deploys. ``contract_ids``: every version of the deployment."""

    contract: Contract
    call_uid: int | None
    contract_ids: frozenset[str]


def proposed_calls(db: Session, proposals: Sequence[Proposal]) -> dict[str, ProposedCall]:
    """By the proposal's id. Sends and forwards ask nothing of the database."""
    concerned = [proposal for proposal in proposals if proposal.tx_type in _OF_TOKENS]
    if not concerned:
        return {}
    asked = _asked(db, {proposal.family_id for proposal in concerned})
    return {
        proposal.id: _proposed(proposal, asked[proposal.family_id])
        for proposal in concerned
        if proposal.family_id in asked
    }


def _asked(db: Session, family_ids: Collection[str]) -> dict[str, _Asked]:
    deploys = select(Contract).where(Contract.deploy_family_id.in_(family_ids))
    calls = (
        select(ContractCall.family_id, ContractCall.uid, Contract)
        .join(Contract, Contract.uid == ContractCall.contract_uid)
        .where(ContractCall.family_id.in_(family_ids))
    )
    found: dict[str, tuple[Contract, int | None]] = {
        contract.deploy_family_id: (contract, None) for contract in db.scalars(deploys)
    }
    found |= {family_id: (contract, uid) for family_id, uid, contract in db.execute(calls)}
    versions = _versions(db, {contract.deploy_family_id for contract, _ in found.values()})
    return {
        family_id: _Asked(contract, uid, frozenset(versions[contract.deploy_family_id]))
        for family_id, (contract, uid) in found.items()
    }


def _versions(db: Session, family_ids: Collection[str]) -> Mapping[str, Collection[str]]:
    found: dict[str, set[str]] = {family_id: set() for family_id in family_ids}
    query = select(Proposal.family_id, Proposal.txid_expected).where(Proposal.family_id.in_(family_ids))
    for family_id, txid in db.execute(query):
        found[family_id].add(txid)
    return found


def _proposed(proposal: Proposal, asked: _Asked) -> ProposedCall:
    payload = _payload(Psbt.parse(proposal.psbt))
    if payload is None:
        # The version that takes it back carries nothing.
        return ProposedCall(asked.contract.uid, asked.call_uid)
    contract_id = proposal.txid_expected if isinstance(payload, Deploy) else payload.contract_id
    bytecode = _parsed(asked.contract.bytecode) if contract_id in asked.contract_ids else None
    decoded = decode_call(payload, contract_id, Network(asked.contract.chain), bytecode)
    return ProposedCall(asked.contract.uid, asked.call_uid, decoded, [contract_id])


def decode_call(
    payload: Payload, contract_id: str | None, network: Network, bytecode: Bytecode | None
) -> DecodedCall:
    """A payload as the record shows it. ``bytecode`` None: only raw units can be told.

    Raises InvalidToken for a deployment that is not of this bytecode.
    """
    words = token_words(payload, network, bytecode)
    details = dict(words.details)
    common = {
        "function": details["function"],
        "words": words.sentence,
        "data_hex": words.hex,
        "contract_id": contract_id,
    }
    if isinstance(payload, Deploy):
        return DecodedCall(
            **common,
            ticker=payload.ticker,
            decimals=payload.decimals,
            total_supply_raw=str(payload.total_supply),
            total_supply=format_units(payload.total_supply, payload.decimals),
            max_supply_raw=str(payload.max_supply),
            max_supply=format_units(payload.max_supply, payload.decimals),
            whitelist_enabled=payload.whitelist_enabled,
            bytecode_hash=payload.bytecode_hash.hex(),
            whitelist_count=None if bytecode is None else len(bytecode.whitelist),
            whitelist_hash=None if bytecode is None else bytecode.whitelist_hash.hex(),
        )
    return DecodedCall(
        **common,
        ticker=None if bytecode is None else bytecode.ticker,
        decimals=None if bytecode is None else bytecode.decimals,
        amount_raw=None if payload.amount is None else str(payload.amount),
        amount=_whole(payload.amount, bytecode),
        address=details.get("address"),
    )


def _whole(amount: TokenAmount | None, bytecode: Bytecode | None) -> str | None:
    return None if amount is None or bytecode is None else format_units(amount, bytecode.decimals)


def _payload(psbt: Psbt) -> Payload | None:
    payloads = (token_of_script(output.script_pubkey) for output in psbt.outputs)
    return next((payload for payload in payloads if payload is not None), None)


@lru_cache(maxsize=_REMEMBERED)
def _parsed(blob: bytes) -> Bytecode:
    return parse_bytecode(blob)
