"""The status of deployments and calls of tokens, for many at once: their proposals beside what the index of
tokens says of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Select, and_, select
from sqlalchemy.orm import Session

from custody.schemas.asset_tokens import CallStatus
from custody.schemas.proposals import ProposalStatus
from custody.server.rules.token_status import Mined, best_of, verdict
from custody.server.store.models import ProposalRow, TokenBlockRow, TokenTransactionRow


class FamilyVersion(NamedTuple):
    """One proposal of a family, without its bytes. ``carries``: whether it has the token's data."""

    id: str
    family_id: str
    status: ProposalStatus
    carries: bool
    txid: str | None
    txid_expected: str
    fee_sats: int
    block_hash: str | None
    failure_reason: str | None
    updated_at: datetime


class IndexedOutcome(NamedTuple):
    """What the index of tokens has of a transaction."""

    block_hash: str
    mined_at: datetime
    failure: str | None


@dataclass(frozen=True)
class TokenFamily:
    """A deployment or a call: its family of proposals. ``best``: the version that speaks for the family.
    ``confirmed_at``: the time of its block, where it had its effect.

    ``txids``: of every version, broadcast or not.
    """

    best: FamilyVersion
    status: CallStatus
    reason: str | None
    confirmed_at: datetime | None
    updated_at: datetime
    txids: frozenset[str]


def token_families(db: Session, chain: str, family_ids: Collection[str]) -> dict[str, TokenFamily]:
    """By the family's id."""
    families = _families(db, family_ids)
    best = {family_id: best_of(members) for family_id, members in families.items()}
    read = _judged(db, chain, [each for each in best.values() if each.status is ProposalStatus.CONFIRMED])
    return {
        family_id: _family(members, best[family_id], read.get(best[family_id].id))
        for family_id, members in families.items()
    }


def _family(members: list[FamilyVersion], best: FamilyVersion, judged: IndexedOutcome | None) -> TokenFamily:
    mined = _mined(judged)
    status, reason = verdict(members, mined, judged.failure if judged is not None else None)
    confirmed_at = judged.mined_at if judged is not None and status is CallStatus.CONFIRMED else None
    newest = max(member.updated_at for member in members)
    return TokenFamily(
        best, status, reason, confirmed_at, newest, frozenset(each.txid_expected for each in members)
    )


def _mined(judged: IndexedOutcome | None) -> Mined:
    if judged is None:
        return Mined.UNREAD
    return Mined.EFFECTIVE if judged.failure is None else Mined.WITHOUT_EFFECT


def _families(db: Session, family_ids: Collection[str]) -> Mapping[str, list[FamilyVersion]]:
    """By family, its members, the oldest first, as `age_in_family` has it."""
    found: dict[str, list[FamilyVersion]] = defaultdict(list)
    if not family_ids:
        return found
    rows = db.execute(_VERSIONS.where(ProposalRow.family_id.in_(family_ids)))
    for row in sorted((_version(row) for row in rows), key=lambda each: (each.fee_sats, each.id)):
        found[row.family_id].append(row)
    return found


# Without the PSBT and the final transaction: a hundred kilobytes each, which no status needs.
_VERSIONS = select(
    ProposalRow.id,
    ProposalRow.family_id,
    ProposalRow.status,
    ProposalRow.op_return_hex.is_not(None),
    ProposalRow.txid,
    ProposalRow.txid_expected,
    ProposalRow.fee_sats,
    ProposalRow.block_hash,
    ProposalRow.failure_reason,
    ProposalRow.updated_at,
)


def _version(row: Iterable[object]) -> FamilyVersion:
    version = FamilyVersion(*row)  # type: ignore[arg-type]  # the columns above, in their order
    return version._replace(status=ProposalStatus(version.status), carries=bool(version.carries))


def _judged(db: Session, chain: str, confirmed: Collection[FamilyVersion]) -> dict[str, IndexedOutcome]:
    """By the proposal's id. Only where the index has read it in the block that the proposal names: the two
    follow the chain independently.
    """
    if not confirmed:
        return {}
    rows = db.execute(_transactions(chain, [version.txid_expected for version in confirmed]))
    by_place = {(row.txid, row.block_hash): IndexedOutcome(*row[1:]) for row in rows}
    return {
        version.id: by_place[place]
        for version in confirmed
        if (place := (version.txid_expected, version.block_hash)) in by_place
    }


def _transactions(chain: str, txids: list[str]) -> Select[str, str, datetime, str | None]:
    block = and_(
        TokenBlockRow.chain == TokenTransactionRow.chain, TokenBlockRow.height == TokenTransactionRow.height
    )
    return (
        select(
            TokenTransactionRow.txid,
            TokenBlockRow.block_hash,
            TokenBlockRow.mined_at,
            TokenTransactionRow.failure,
        )
        .join(TokenBlockRow, block)
        .where(TokenTransactionRow.chain == chain, TokenTransactionRow.txid.in_(txids))
    )
