"""Stored proposals as the specification's records, for many at once.

Token calls are decoded from the bytes that are signed. Partial signatures are shown only to those who may
sign, while the proposal can still be completed; everybody else gets the unsigned PSBT (P52).
"""

from base64 import b64encode
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, NamedTuple, cast

from sqlalchemy import BindParameter, Select, bindparam, func, select
from sqlalchemy.orm import Session

from custody.schemas import proposals as wire
from custody.schemas.proposals import DecodedCall, ProposalStatus, TroubleKind, TxType
from custody.server.keys.quorums import MAY_APPROVE
from custody.server.proposals.families import may_be_replaced
from custody.server.proposals.lifecycle import trouble_of
from custody.server.rules.lifecycle import TO_FINISH, advice_for, words_of
from custody.server.store.models import (
    ChainBlockRow,
    ContractCallRow,
    ContractRow,
    DecisionRow,
    KeyRow,
    ProposalInputRow,
    ProposalRow,
    SignatureRow,
    UserRow,
    VaultRow,
    VaultSignerRow,
    full_name,
)
from multisig import FeeRate, Network, Psbt
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


class SignerKey(NamedTuple):
    """A key whose decision counts, and its owner."""

    key_id: str
    user_id: int
    is_lost: bool = False
    may_approve: bool = True


class RecordReader(NamedTuple):
    """The reader of a record. ``may_approve``: their role in its workspace has PAYMENT_APPROVE."""

    user_id: int
    may_approve: bool


class VaultSeen(NamedTuple):
    """``tip_height``: the height up to which its chain was followed."""

    name: str
    tip_height: int


class Counts(NamedTuple):
    """How many signatures the input with the fewest has, and the one with the most."""

    least: int = 0
    most: int = 0


DecisionWord = Literal["approve", "reject"]


@dataclass(frozen=True)
class ProposedCall:
    """The token fields of a proposal's record."""

    contract_uid: int | None = None
    call_uid: int | None = None
    decoded: DecodedCall | None = None
    contract_ids: list[str] = field(default_factory=list)


NO_TOKEN: Final = ProposedCall()


def proposal_records(
    db: Session, proposals: Sequence[ProposalRow], reader: RecordReader
) -> list[wire.Proposal]:
    """In the order given, each as `reader` may see it."""
    ids = [proposal.id for proposal in proposals]
    vault_signers = _vault_signers(db, {proposal.vault_id for proposal in proposals})
    decisions = _decisions(db, ids)
    counts = _counts(db, ids)
    vaults = _vaults(db, {proposal.vault_id for proposal in proposals})
    of_tokens = proposed_calls(db, proposals)
    rivals = _rivals(db, proposals)
    signers_of = {proposal.id: _signers_of(proposal, vault_signers) for proposal in proposals}
    people = {signer.user_id for signers in signers_of.values() for signer in signers}
    names = names_of(db, people | {proposal.created_by for proposal in proposals})
    records = []
    for proposal in proposals:
        signers, counted = signers_of[proposal.id], counts[proposal.id]
        with_signatures = counted.most == 0 or _gets_signatures(proposal, signers, reader)
        records.append(
            _record(
                proposal,
                proposal.psbt if with_signatures else _unsigned(proposal.psbt),
                [
                    _signer(signer, decisions[proposal.id].get(signer.key_id), names.get(signer.user_id))
                    for signer in signers
                ],
                counted.least,
                vaults[proposal.vault_id],
                of_tokens.get(proposal.id, NO_TOKEN),
                names.get(proposal.created_by),
                _trouble(proposal, rivals),
            )
        )
    return records


def _gets_signatures(proposal: ProposalRow, signers: Sequence[SignerKey], reader: RecordReader) -> bool:
    """Whether the reader gets the partial signatures: a signer of a proposal that has not ended and is not
    being replaced.
    """
    if ProposalStatus(proposal.status) not in TO_FINISH or proposal.replaced_by_id is not None:
        return False
    is_forward = proposal.profile_key_id is not None
    return (is_forward or reader.may_approve) and any(
        signer.user_id == reader.user_id and not signer.is_lost for signer in signers
    )


def _unsigned(psbt: bytes) -> bytes:
    return Psbt.parse(psbt).without_signatures().to_bytes()


def collected_signatures(db: Session, proposal_ids: Iterable[str]) -> dict[str, int]:
    """By the proposal's id: the number of signatures of the input with the fewest."""
    return {proposal_id: counted.least for proposal_id, counted in _counts(db, proposal_ids).items()}


def _counts(db: Session, proposal_ids: Iterable[str]) -> dict[str, Counts]:
    found = db.execute(_COUNTED, {"ids": list(proposal_ids)})
    return {proposal_id: Counts(int(least), int(most)) for proposal_id, least, most in found}


def _over_inputs() -> Select[str, int, int]:
    per_input = (
        select(ProposalInputRow.proposal_id, func.count(SignatureRow.public_key).label("signatures"))
        .outerjoin(
            SignatureRow,
            (SignatureRow.proposal_id == ProposalInputRow.proposal_id)
            & (SignatureRow.input_index == ProposalInputRow.input_index),
        )
        .where(ProposalInputRow.proposal_id.in_(_IDS))
        .group_by(ProposalInputRow.proposal_id, ProposalInputRow.input_index)
        .subquery()
    )
    counted = per_input.c.signatures
    least_and_most = func.min(counted), func.max(counted)
    return select(per_input.c.proposal_id, *least_and_most).group_by(per_input.c.proposal_id)


_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_COUNTED = _over_inputs()
_VAULT_SIGNERS = (
    select(
        VaultSignerRow.vault_id,
        VaultSignerRow.key_id,
        VaultSignerRow.user_id,
        KeyRow.revoked_reason,
        MAY_APPROVE,
    )
    .join(KeyRow, KeyRow.id == VaultSignerRow.key_id)
    .join(VaultRow, VaultRow.id == VaultSignerRow.vault_id)
    .where(VaultSignerRow.vault_id.in_(_IDS))
    .order_by(VaultSignerRow.vault_id, VaultSignerRow.key_index)
)
_DECISIONS = select(DecisionRow).where(DecisionRow.proposal_id.in_(_IDS))
_NAMES = select(UserRow.id, UserRow.first_name, UserRow.surname).where(UserRow.id.in_(_IDS))
_VAULTS = (
    select(VaultRow.id, VaultRow.name, func.max(ChainBlockRow.height))
    .outerjoin(ChainBlockRow, ChainBlockRow.chain == VaultRow.chain)
    .where(VaultRow.id.in_(_IDS))
    .group_by(VaultRow.id, VaultRow.name)
)


def _vault_signers(db: Session, vault_ids: Iterable[str]) -> dict[str, list[SignerKey]]:
    found: dict[str, list[SignerKey]] = defaultdict(list)
    for vault_id, key_id, user_id, revoked, may in db.execute(_VAULT_SIGNERS, {"ids": list(vault_ids)}):
        is_lost = revoked == "lost"
        found[vault_id].append(SignerKey(key_id, user_id, is_lost, may and not is_lost))
    return found


def _signers_of(proposal: ProposalRow, vault_signers: Mapping[str, list[SignerKey]]) -> list[SignerKey]:
    """A forward has one signer, its owner."""
    if proposal.profile_key_id is not None:
        return [SignerKey(proposal.profile_key_id, proposal.created_by)]
    return vault_signers[proposal.vault_id]


def _decisions(db: Session, proposal_ids: Iterable[str]) -> dict[str, dict[str, DecisionRow]]:
    found: dict[str, dict[str, DecisionRow]] = defaultdict(dict)
    for decision in db.scalars(_DECISIONS, {"ids": list(proposal_ids)}):
        found[decision.proposal_id][decision.key_id] = decision
    return found


def _vaults(db: Session, vault_ids: Iterable[str]) -> dict[str, VaultSeen]:
    found = db.execute(_VAULTS, {"ids": list(vault_ids)})
    return {vault_id: VaultSeen(name, height or 0) for vault_id, name, height in found}


def names_of(db: Session, user_ids: Iterable[int]) -> dict[int, str]:
    """Names as users gave them; users without one are left out. E-mail addresses are not shown: only managers
    of members may see them.
    """
    ids = list(user_ids)
    found = db.execute(_NAMES, {"ids": ids}) if ids else ()
    named = {user_id: full_name(*parts) for user_id, *parts in found}
    return {user_id: name for user_id, name in named.items() if name}


def _signer(signer: SignerKey, decision: DecisionRow | None, name: str | None) -> wire.ProposalSigner:
    if decision is None:
        return wire.ProposalSigner(
            key_id=signer.key_id,
            is_signed=False,
            user_id=str(signer.user_id),
            name=name,
            may_approve=signer.may_approve,
        )
    is_signed = decision.decision == "approve" and decision.is_complete
    return wire.ProposalSigner(
        key_id=signer.key_id,
        is_signed=is_signed,
        user_id=str(signer.user_id),
        signed_at=decision.decided_at if is_signed else None,
        decision=cast("DecisionWord", decision.decision),
        name=name,
        reason=decision.reason,
        may_approve=signer.may_approve,
    )


def rate_text(rate: FeeRate) -> str:
    """sat/vB in plain decimals, without trailing zeros."""
    return f"{rate.sat_per_vb.normalize():f}"


def _record(
    proposal: ProposalRow,
    psbt: bytes,
    signers: list[wire.ProposalSigner],
    collected: int,
    vault: VaultSeen,
    of_token: ProposedCall,
    name: str | None,
    trouble: wire.ProposalTrouble | None,
) -> wire.Proposal:
    height = proposal.block_height
    return wire.Proposal(
        psbt_id=proposal.id,
        workspace_id=str(proposal.workspace_id),
        vault_id=proposal.vault_id,
        tx_type=wire.TxType(proposal.tx_type),
        status=wire.ProposalStatus(proposal.status),
        contract_uid=of_token.contract_uid,
        call_uid=of_token.call_uid,
        decoded_call=of_token.decoded,
        created_by=str(proposal.created_by),
        created_by_name=name,
        description=proposal.description,
        psbt_base64=b64encode(psbt).decode(),
        txid=proposal.txid,
        txid_expected=proposal.txid_expected,
        recipients=proposal.recipients,
        amounts_sats=proposal.amounts_sats,
        fee_sats=proposal.fee_sats,
        fee_rate=rate_text(FeeRate(proposal.fee_rate_sat_per_kvb)),
        op_return=None if proposal.op_return_hex is None else f"0x{proposal.op_return_hex}",
        contract_ids=proposal.contract_ids or of_token.contract_ids,
        m=proposal.m,
        n=proposal.n,
        signers=signers,
        collected_signatures=collected,
        required_signatures=proposal.m,
        expires_at=proposal.expires_at,
        created_at=proposal.created_at,
        updated_at=proposal.updated_at,
        confirmations=0 if height is None else max(1, vault.tip_height - height + 1),
        block_hash=proposal.block_hash,
        block_height=height,
        failure_code=proposal.failure_code,
        failure_reason=proposal.failure_reason,
        trouble=trouble,
        replaces_psbt_id=proposal.replaces_id,
        replaced_by_psbt_id=proposal.replaced_by_id,
        may_be_replaced=may_be_replaced(proposal),
        vault_name=vault.name,
    )


def _rivals(db: Session, proposals: Sequence[ProposalRow]) -> dict[tuple[int, str], str]:
    """By workspace and txid, the proposals whose transactions spend the coins of these."""
    txids = sorted({proposal.trouble_txid for proposal in proposals if proposal.trouble_txid is not None})
    if not txids:
        return {}
    query = select(ProposalRow.workspace_id, ProposalRow.txid_expected, ProposalRow.id)
    found = db.execute(query.where(ProposalRow.txid_expected.in_(txids)))
    return {(workspace_id, txid): psbt_id for workspace_id, txid, psbt_id in found}


def _trouble(proposal: ProposalRow, rivals: Mapping[tuple[int, str], str]) -> wire.ProposalTrouble | None:
    kind, since, words = trouble_of(proposal), proposal.trouble_since, proposal.trouble_words
    if kind is TroubleKind.FEE_TOO_LOW:
        pays, since = FeeRate(proposal.fee_rate_sat_per_kvb), proposal.updated_at
        words = words_of(kind, rival=None, pays=pays, asked=None, since=since)
    if kind is None or since is None:
        return None
    return wire.ProposalTrouble(
        kind=kind,
        words=words or "",
        advice=advice_for(kind, may_be_replaced=may_be_replaced(proposal)),
        txid=proposal.trouble_txid,
        psbt_id=rivals.get((proposal.workspace_id, proposal.trouble_txid or "")),
        since=since,
    )


_OF_TOKENS: Final = frozenset({TxType.DEPLOY.value, TxType.CALL.value})
# A list shows calls of few tokens repeatedly; a bytecode has 80,000 bytes at most.
_REMEMBERED: Final = 32


@dataclass(frozen=True)
class _Purpose:
    """The token of a family. ``call_uid`` is None for a deployment. ``contract_ids``: of all its versions."""

    contract: ContractRow
    call_uid: int | None
    contract_ids: frozenset[str]


def proposed_calls(db: Session, proposals: Sequence[ProposalRow]) -> dict[str, ProposedCall]:
    """By the proposal's id. Sends and forwards take no query."""
    concerned = [proposal for proposal in proposals if proposal.tx_type in _OF_TOKENS]
    if not concerned:
        return {}
    purpose = _purposes(db, {proposal.family_id for proposal in concerned})
    return {
        proposal.id: _proposed(proposal, purpose[proposal.family_id])
        for proposal in concerned
        if proposal.family_id in purpose
    }


def _purposes(db: Session, family_ids: Collection[str]) -> dict[str, _Purpose]:
    deploys = select(ContractRow).where(ContractRow.deploy_family_id.in_(family_ids))
    calls = (
        select(ContractCallRow.family_id, ContractCallRow.uid, ContractRow)
        .join(ContractRow, ContractRow.uid == ContractCallRow.contract_uid)
        .where(ContractCallRow.family_id.in_(family_ids))
    )
    found: dict[str, tuple[ContractRow, int | None]] = {
        contract.deploy_family_id: (contract, None) for contract in db.scalars(deploys)
    }
    found |= {family_id: (contract, uid) for family_id, uid, contract in db.execute(calls)}
    versions = _versions(db, {contract.deploy_family_id for contract, _ in found.values()})
    return {
        family_id: _Purpose(contract, uid, frozenset(versions[contract.deploy_family_id]))
        for family_id, (contract, uid) in found.items()
    }


def _versions(db: Session, family_ids: Collection[str]) -> Mapping[str, Collection[str]]:
    found: dict[str, set[str]] = {family_id: set() for family_id in family_ids}
    query = select(ProposalRow.family_id, ProposalRow.txid_expected).where(
        ProposalRow.family_id.in_(family_ids)
    )
    for family_id, txid in db.execute(query):
        found[family_id].add(txid)
    return found


def _proposed(proposal: ProposalRow, purpose: _Purpose) -> ProposedCall:
    payload = _payload(Psbt.parse(proposal.psbt))
    if payload is None:
        # A version that cancels has no token data.
        return ProposedCall(purpose.contract.uid, purpose.call_uid)
    contract_id = proposal.txid_expected if isinstance(payload, Deploy) else payload.contract_id
    bytecode = _parsed(purpose.contract.bytecode) if contract_id in purpose.contract_ids else None
    decoded = decode_call(payload, contract_id, Network(purpose.contract.chain), bytecode)
    return ProposedCall(purpose.contract.uid, purpose.call_uid, decoded, [contract_id])


def decode_call(
    payload: Payload, contract_id: str | None, network: Network, bytecode: Bytecode | None
) -> DecodedCall:
    """A payload as the record shows it. Without ``bytecode``, amounts are in raw units only.


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
