"""A vault's limit: the maximum of one movement, and what left in the current cycle beside it."""

from datetime import datetime
from typing import cast

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.schemas.common import CyclePeriod
from custody.schemas.vaults import VaultLimits
from custody.server.domain.cycles import cycle_start, next_reset
from custody.server.domain.errors import VaultLimitExceeded
from custody.server.domain.lifecycle import ENDED
from custody.server.store.models import Proposal, Vault
from multisig import Sats, format_btc

# A reservation is held from the proposal's creation and released on any end without broadcast. Of a family one counts.
_RELEASED = frozenset({*(status.value for status in ENDED), "REPLACED"})


def used_in_cycle(db: Session, vault: Vault, now: datetime) -> Sats:
    """What movements of the current cycle took or have reserved, fees included."""
    start = cycle_start(now, _period(vault), vault.cycle_day)
    total = db.scalar(
        select(func.coalesce(func.sum(Proposal.movement_sats), 0)).where(
            Proposal.vault_id == vault.id,
            Proposal.created_at >= start,
            Proposal.status.not_in(_RELEASED),
        )
    )
    return Sats(int(total or 0))


def vault_limits(db: Session, vault: Vault, now: datetime) -> VaultLimits:
    """`detailed_vault_limits`, in BTC with eight places."""
    used = used_in_cycle(db, vault, now)
    return VaultLimits(
        limit=format_btc(Sats(vault.limit_sats)),
        cycle_period=_period(vault),
        cycle_day=vault.cycle_day,
        used=format_btc(used),
        unused=format_btc(Sats(max(0, vault.limit_sats - used))),
        next_reset=next_reset(now, _period(vault), vault.cycle_day),
    )


def require_within_limit(db: Session, vault: Vault, movement: Sats, now: datetime) -> None:
    """A movement may equal the limit, one satoshi more may not (P19). Raises VaultLimitExceeded."""
    if movement <= vault.limit_sats:
        return
    limits = vault_limits(db, vault, now).model_dump(mode="json")
    raise VaultLimitExceeded(
        f"The movement of {format_btc(movement)} BTC, fee included, is above the vault's limit of "
        f"{limits['limit']} BTC.",
        figures={
            "limit": limits["limit"],
            "used": limits["used"],
            "requested": format_btc(movement),
            "next_reset": limits["next_reset"],
        },
    )


def _period(vault: Vault) -> CyclePeriod:
    return cast("CyclePeriod", vault.cycle_period)
