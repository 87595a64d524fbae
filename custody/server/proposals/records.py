"""Stored proposals as the specification's records, for many at once.

Token calls are decoded from the bytes that are signed. Partial signatures are shown only to those who may
sign, while the proposal can still be completed; everybody else gets the unsigned PSBT (P52).
"""

from base64 import b64encode
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import BindParameter, Exists, String, bindparam, cast, exists, func, literal, select
from sqlalchemy.orm import Session, aliased

from custody.common.text import foreign
from custody.schemas import proposals as wire
from custody.schemas.call import PermissionName
from custody.schemas.proposals import DecodedCall, ProposalStatus, TroubleKind, TxType
from custody.server.keys.quorums import SignerNow, able_among, makers_of, signers_of
from custody.server.people.names import approver_names, names_of, proposer_name, shown_approvers
from custody.server.proposals.bounds import staying
from custody.server.proposals.lifecycle import TOKEN_KINDS, may_be_replaced, trouble_of
from custody.server.rules.approvers import missing
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.rules.keys import may_move_on
from custody.server.rules.lifecycle import TO_FINISH, advice_for, words_of
from custody.server.shown import shape_of
from custody.server.store.models import (
    ChainBlockRow,
    ContractCallRow,
    ContractRow,
    DecisionRow,
    MembershipRow,
    ProposalInputRow,
    ProposalRow,
    SignatureRow,
    VaultRow,
)
from multisig import FeeRate, Network, Psbt
from multisig.tokens import (
    Bytecode,
    Deploy,
    Payload,
    format_units,
    parse_bytecode,
    token_of_script,
    token_words,
)

# A list shows calls of few tokens repeatedly; a bytecode has 80,000 bytes at most.
_parsed: Final = lru_cache(maxsize=32)(parse_bytecode)


class RecordReader(NamedTuple):
    """``user_id``: 0 for a program, which is no signer, even where its maker is one."""

    user_id: int
    access: WorkspaceAccess


def proposal_records(
    db: Session, proposals: Sequence[ProposalRow], reader: RecordReader
) -> list[wire.Proposal]:
    """In the order given, each as `reader` may see it."""
    ids = {"ids": [proposal.id for proposal in proposals]}
    vault_ids = {proposal.vault_id for proposal in proposals}
    seats = signers_of(db, vault_ids)
    decisions = {(each.proposal_id, each.key_id): each for each in db.scalars(_DECISIONS, ids)}
    counts = {proposal_id: (int(least), int(most)) for proposal_id, least, most in db.execute(_COUNTED, ids)}
    vaults = {row.id: row for row in db.execute(_VAULTS, {"ids": list(vault_ids)})}
    of_tokens, rivals = _token_fields(db, proposals), _rivals(db, proposals)
    # A forward has one signer, its owner.
    signing = {
        proposal.id: seats[proposal.vault_id]
        if proposal.profile_key_id is None
        else [SignerNow(proposal.profile_key_id, proposal.created_by)]
        for proposal in proposals
    }
    people = {signer.user_id for signers in signing.values() for signer in signers}
    names = names_of(db, reader.access, people | {proposal.created_by for proposal in proposals})
    lacking = {
        proposal.id: missing(
            vaults[proposal.vault_id].approvers,
            (
                (each.user_id, each.role_id)
                for each in (decisions.get((proposal.id, one.key_id)) for one in signing[proposal.id])
                if each is not None and each.is_complete
            ),
        )
        for proposal in proposals
        if proposal.status == ProposalStatus.PENDING.value and proposal.profile_key_id is None
    }
    waiting = [one for one in proposals if one.id in lacking]
    bound = [one.family_id for one in waiting if not vaults[one.vault_id].maker_may_approve]
    makers = makers_of(db, bound)
    replaced = (one for one in waiting if any(may_move_on(seat.revoked_reason) for seat in signing[one.id]))
    moves = staying(db, reader.access, {one.id: one.psbt for one in replaced})
    asked = approver_names(db, reader.access, {key for keys in lacking.values() for key in keys})
    records = []
    for proposal in proposals:
        signers, (least, most) = signing[proposal.id], counts[proposal.id]
        psbt = proposal.psbt
        # Those of a pending one that suffice would be a payment that nobody has to approve any more.
        is_held = least >= proposal.m and proposal.id in lacking
        if most and (is_held or not _gets_signatures(proposal, signers, reader)):
            psbt = Psbt.parse(psbt).without_signatures().to_bytes()
        vault, height = vaults[proposal.vault_id], proposal.block_height
        others = [each for each in signers if each.user_id not in makers[proposal.family_id]]
        giving = [
            each
            for each in others
            if _may_give(decisions.get((proposal.id, each.key_id)), each, vault.approvers)
        ]
        stays, lacks = proposal.id in moves, lacking.get(proposal.id, ())
        able = {user_id for user_id, _ in able_among(others, stays=stays)}
        record = shape_of(
            wire.Proposal,
            proposal,
            psbt_id=proposal.id,
            created_by_name=proposer_name(proposal, names),
            psbt_base64=b64encode(psbt).decode(),
            pays_others=proposal.profile_key_id is not None or proposal.movement_sats > proposal.fee_sats,
            fee_rate=rate_text(FeeRate(proposal.fee_rate_sat_per_kvb)),
            op_return=None if proposal.op_return_hex is None else f"0x{proposal.op_return_hex}",
            signers=[
                _signer(
                    each,
                    decisions.get((proposal.id, each.key_id)),
                    names.get(each.user_id),
                    may_approve=each.user_id in able if proposal.id in lacking else each.may_approve,
                )
                for each in signers
            ],
            collected_signatures=min(least, proposal.m),
            required_signatures=proposal.m,
            failure_reason=proposal.failure_reason or _declined_by(proposal, decisions.values(), names),
            waits_for=shown_approvers(lacks, asked, able_among(giving, stays=stays)),
            confirmations=0 if height is None else max(1, (vault.tip or 0) - height + 1),
            trouble=_trouble(proposal, rivals),
            replaces_psbt_id=proposal.replaces_id,
            replaced_by_psbt_id=proposal.replaced_by_id,
            may_be_replaced=may_be_replaced(proposal),
            vault_name=vault.name,
            screening=proposal.screening
            and {
                "state": proposal.screening,
                "until": proposal.screening_until,
                "reason": proposal.screening_reason,
            },
            **of_tokens.get(proposal.id, {}),
        )
        records.append(record)
    return records


def _may_give(decision: DecisionRow | None, seat: SignerNow, asked: Collection[str]) -> bool:
    """Whether an approval of theirs may still come: also a second one, in another role."""
    if decision is None or decision.decision == "reject":
        return decision is None
    if not decision.is_complete:
        return True
    return decision.role_id != seat.role_id and f"user:{seat.user_id}" not in asked


def _gets_signatures(proposal: ProposalRow, signers: Sequence[SignerNow], reader: RecordReader) -> bool:
    """Whether the reader gets the partial signatures: a signer of a proposal that has not ended and is not
    being replaced.
    """
    if ProposalStatus(proposal.status) not in TO_FINISH or proposal.replaced_by_id is not None:
        return False
    is_forward = proposal.profile_key_id is not None
    return (is_forward or PermissionName.PAYMENT_APPROVE in reader.access.permissions) and any(
        signer.user_id == reader.user_id and not signer.is_lost for signer in signers
    )


def _signer(
    seat: SignerNow, decision: DecisionRow | None, name: str | None, *, may_approve: bool
) -> wire.ProposalSigner:
    is_signed = decision is not None and decision.is_complete
    return shape_of(
        wire.ProposalSigner,
        seat,
        is_signed=is_signed,
        signed_at=decision.decided_at if decision is not None and is_signed else None,
        decision=None if decision is None else decision.decision,
        decided_at=None if decision is None else decision.decided_at,
        name=name,
        reason=None if decision is None else decision.reason,
        may_approve=may_approve and not seat.is_lost,
    )


def _declined_by(
    proposal: ProposalRow, decisions: Iterable[DecisionRow], names: Mapping[int, str]
) -> str | None:
    """Who ended it by declining it, and why."""
    if proposal.status != ProposalStatus.REJECTED.value:
        return None
    declines = [each for each in decisions if (each.proposal_id, each.decision) == (proposal.id, "reject")]
    last = max(declines, key=lambda each: each.decided_at, default=None)
    if last is None:
        return None
    said = f"{names.get(last.user_id, 'A signer')} declined it"
    return f"{said}: {foreign(last.reason)}" if last.reason else f"{said}."


def _rivals(db: Session, proposals: Sequence[ProposalRow]) -> dict[tuple[int, str], str]:
    """By workspace and txid, the proposals whose transactions spend the coins of these."""
    txids = sorted({proposal.trouble_txid for proposal in proposals if proposal.trouble_txid is not None})
    if not txids:
        return {}
    query = select(ProposalRow.workspace_id, ProposalRow.txid_expected, ProposalRow.id)
    rows = db.execute(query.where(ProposalRow.txid_expected.in_(txids)))
    return {(workspace_id, txid): psbt_id for workspace_id, txid, psbt_id in rows}


def _trouble(proposal: ProposalRow, rivals: Mapping[tuple[int, str], str]) -> wire.ProposalTrouble | None:
    kind, since, words = trouble_of(proposal), proposal.trouble_since, proposal.trouble_words
    if kind is TroubleKind.FEE_TOO_LOW:
        pays, since = FeeRate(proposal.fee_rate_sat_per_kvb), proposal.updated_at
        words = words_of(kind, rival=None, pays=pays, required_rate=None, since=since)
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


def collected_signatures(db: Session, proposal_id: str) -> int:
    """The number of signatures of the input with the fewest."""
    _, least, _ = db.execute(_COUNTED, {"ids": [proposal_id]}).one()
    return int(least)


def has_decided(user_id: int) -> Exists:
    """The user has declined, or has signed every input, and holds no other role now of which an approval is
    missing.
    """
    member = MembershipRow.workspace_id == ProposalRow.workspace_id, MembershipRow.user_id == user_id
    role = select(MembershipRow.role_id).where(*member).correlate(ProposalRow).scalar_subquery()
    asked, key = cast(VaultRow.approvers, String), literal('"role:') + cast(role, String) + literal('"')
    asks = (
        exists()
        .where(VaultRow.id == ProposalRow.vault_id, asked.contains(key), ~asked.contains(f'"user:{user_id}"'))
        .correlate(ProposalRow)
    )
    other = aliased(DecisionRow)
    who = literal('"user:') + cast(other.user_id, String) + literal('"')
    is_named = exists().where(VaultRow.id == ProposalRow.vault_id, asked.contains(who))
    is_given = (
        exists()
        .where(
            other.proposal_id == ProposalRow.id,
            other.role_id == role,
            other.is_complete,
            ~is_named.correlate(ProposalRow, other),
        )
        .correlate(ProposalRow)
    )
    return exists().where(
        DecisionRow.proposal_id == ProposalRow.id,
        DecisionRow.user_id == user_id,
        (DecisionRow.decision == "reject") | (DecisionRow.is_complete & ~(asks & ~is_given)),
    )


def rate_text(rate: FeeRate) -> str:
    """sat/vB in plain decimals, without trailing zeros."""
    return f"{rate.sat_per_vb.normalize():f}"


_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_PER_INPUT = (
    select(ProposalInputRow.proposal_id, func.count(SignatureRow.public_key).label("signatures"))
    .outerjoin(
        SignatureRow,
        (SignatureRow.proposal_id == ProposalInputRow.proposal_id)
        & (SignatureRow.input_index == ProposalInputRow.input_index),
    )
    .where(ProposalInputRow.proposal_id.in_(_IDS))
    .group_by(ProposalInputRow.proposal_id, ProposalInputRow.input_index)
    .subquery()
).c
# The signatures of the input with the fewest, and of the one with the most.
_COUNTED = select(
    _PER_INPUT.proposal_id, func.min(_PER_INPUT.signatures), func.max(_PER_INPUT.signatures)
).group_by(_PER_INPUT.proposal_id)
_DECISIONS = select(DecisionRow).where(DecisionRow.proposal_id.in_(_IDS))
_VAULTS = (
    select(
        VaultRow.id,
        VaultRow.name,
        VaultRow.approvers,
        VaultRow.maker_may_approve,
        func.max(ChainBlockRow.height).label("tip"),
    )
    .outerjoin(ChainBlockRow, ChainBlockRow.chain == VaultRow.chain)
    .where(VaultRow.id.in_(_IDS))
    .group_by(VaultRow.id)
)


def _token_fields(db: Session, proposals: Sequence[ProposalRow]) -> dict[str, dict[str, Any]]:
    """The fields of their records, by the proposal's id. Sends and forwards take no query."""
    concerned = [proposal for proposal in proposals if TxType(proposal.tx_type) in TOKEN_KINDS]
    if not concerned:
        return {}
    family_ids = {proposal.family_id for proposal in concerned}
    deploys = select(ContractRow).where(ContractRow.deploy_family_id.in_(family_ids))
    calls = (
        select(ContractCallRow.family_id, ContractCallRow.uid, ContractRow)
        .join(ContractRow, ContractRow.uid == ContractCallRow.contract_uid)
        .where(ContractCallRow.family_id.in_(family_ids))
    )
    # The token of each family, and the call's uid.
    tokens: dict[str, tuple[ContractRow, int | None]] = {
        contract.deploy_family_id: (contract, None) for contract in db.scalars(deploys)
    }
    tokens |= {family_id: (contract, uid) for family_id, uid, contract in db.execute(calls)}
    # A token's ids: those of all versions of its deployment.
    versions: dict[str, set[str]] = defaultdict(set)
    of_deploys = ProposalRow.family_id.in_({contract.deploy_family_id for contract, _ in tokens.values()})
    for family_id, txid in db.execute(
        select(ProposalRow.family_id, ProposalRow.txid_expected).where(of_deploys)
    ):
        versions[family_id].add(txid)
    fields = dict[str, dict[str, Any]]()
    for proposal in concerned:
        if proposal.family_id not in tokens:
            continue
        contract, call_uid = tokens[proposal.family_id]
        fields[proposal.id] = {"contract_uid": contract.uid, "call_uid": call_uid}
        outputs = Psbt.parse(proposal.psbt).outputs
        payloads = (token_of_script(output.script_pubkey) for output in outputs)
        payload = next((each for each in payloads if each is not None), None)
        if payload is None:
            # A version that cancels has no token data.
            continue
        contract_id = proposal.txid_expected if isinstance(payload, Deploy) else payload.contract_id
        is_known = contract_id in versions[contract.deploy_family_id]
        bytecode = _parsed(contract.bytecode) if is_known else None
        fields[proposal.id] |= {
            "decoded_call": _decoded(payload, contract_id, Network(contract.chain), bytecode),
            "contract_ids": proposal.contract_ids or [contract_id],
        }
    return fields


def _decoded(
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
        return shape_of(
            DecodedCall,
            payload,
            **common,
            total_supply_raw=str(payload.total_supply),
            total_supply=format_units(payload.total_supply, payload.decimals),
            max_supply_raw=str(payload.max_supply),
            max_supply=format_units(payload.max_supply, payload.decimals),
            bytecode_hash=payload.bytecode_hash.hex(),
            whitelist_count=None if bytecode is None else len(bytecode.whitelist),
            whitelist_hash=None if bytecode is None else bytecode.whitelist_hash.hex(),
        )
    return DecodedCall(
        **common,
        ticker=None if bytecode is None else bytecode.ticker,
        decimals=None if bytecode is None else bytecode.decimals,
        amount_raw=None if payload.amount is None else str(payload.amount),
        amount=None
        if payload.amount is None or bytecode is None
        else format_units(payload.amount, bytecode.decimals),
        address=details.get("address"),
    )
