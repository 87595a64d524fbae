"""The movements of a pinned vault, as the platform lists them.

The amount of a payment that this machine knows is from its transaction. Its confirmation, and everything
about a deposit, is the platform's claim.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from custody.schemas.common import format_time
from custody.schemas.history import MovementOutput, VaultMovement
from multisig import MultisigError, decode_address
from signerd.account.follower import Follower
from signerd.account.platform import Platform
from signerd.account.vaults import seen_vault
from signerd.account.wire import moment_of
from signerd.core.text import plain
from signerd.core.titles import Labels, memo_of
from signerd.core.values import Pin, Record
from signerd.daemon.funds import LONGEST_SECONDS, workspace_of
from signerd.errors import NotPinned, PlatformUnreachable
from signerd.journal import Journal
from signerd.shapes import MovementView, ProposalLine, VaultMovements

# As many as a person looks through at once.
USUAL_MOVEMENTS = 50


@dataclass(frozen=True)
class Movements:
    """Asks the platform each time. ``line``: makes a proposal's line."""

    journal: Journal
    platform: Platform
    follower: Follower
    labels: Labels
    line: Callable[[Record], ProposalLine]

    async def of_vault(
        self,
        vault_id: str,
        *,
        cursor: str | None = None,
        since: date | None = None,
        before: date | None = None,
        search: str = "",
        limit: int = USUAL_MOVEMENTS,
    ) -> VaultMovements:
        """The newest first; ``since`` and ``before`` are days in UTC, the second is left out.

        Raises UnknownVault, NotPinned, SignedOut, and leaves of PlatformError.
        """
        pin = self.journal.pin(vault_id)
        if pin is None:
            seen_vault(self.journal, vault_id)
            raise NotPinned("the vault is not pinned, so what belongs to it is not known")
        workspace = workspace_of(self.journal, self.follower, vault_id)
        query = {
            "cursor": cursor,
            "limit": limit,
            "from_time": _midnight(since),
            "to_time": _midnight(before),
            "label": search.strip() or None,
        }
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                page = await self.platform.movements(workspace, vault_id, query)
        except TimeoutError:
            raise PlatformUnreachable(f"the platform did not answer within {LONGEST_SECONDS:.0f} s") from None
        return VaultMovements(
            vault_id=vault_id,
            network=str(self.journal.network),
            movements=tuple(self._view(one, pin) for one in page.listed.items),
            next=page.next,
            left_out=len(page.listed.unreadable),
        )

    def _view(self, movement: VaultMovement, pin: Pin) -> MovementView:
        known = self._known(movement.txid, pin)
        own, platforms = self._names(movement.outputs, pin)
        return MovementView(
            txid=plain(movement.txid),
            kind=movement.kind.value,
            at=moment_of(movement.at),
            height=movement.height,
            amount_sats=movement.amount_sats if known is None else _amount(known, movement.amount_sats),
            fee_sats=movement.fee_sats if known is None else known.fee_sats,
            balance_sats=movement.balance_sats,
            names=own,
            platform_names=platforms,
            memo=memo_of(movement.title or ""),
            psbt_id=None if known is None else known.psbt_id,
            title=None if known is None else known.title,
        )

    def _known(self, txid: str, pin: Pin) -> ProposalLine | None:
        """The proposal of this transaction, if it is of this vault and was inspected."""
        record = self.journal.proposal_of(txid)
        if record is None or record.snapshot.vault_id != pin.vault_id:
            return None
        line = self.line(record)
        return None if line.paid_sats is None else line

    def _names(self, outputs: list[MovementOutput], pin: Pin) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The address book's names of the addresses, and the platform's for the others."""
        named: list[str] = []
        platform_names: list[str] = []
        for output in outputs:
            try:
                own = self.labels.get(decode_address(output.address, pin.vault.network))
            except MultisigError:
                own = None
            if own:
                named.append(own)
            elif label := memo_of(output.label or ""):
                platform_names.append(label)
        return tuple(dict.fromkeys(named)), tuple(dict.fromkeys(platform_names))


def _midnight(day: date | None) -> str | None:
    return None if day is None else format_time(datetime.combine(day, time(), UTC))


def _amount(known: ProposalLine, claimed: int) -> int:
    """The change of the vault's balance: payments and fee; a forward's amount is the platform's."""
    if known.from_profile or known.paid_sats is None or known.fee_sats is None:
        return claimed
    return -(known.paid_sats + known.fee_sats)
