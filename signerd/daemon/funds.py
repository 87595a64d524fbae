"""What a pinned vault holds, its next receive address, and its movements, as the platform says.

Every address is derived here. The platform only influences which one is shown; an address that is not one of
the vault's next is not shown. The amount of a payment that this machine knows is from its transaction. Its
confirmation, and everything about a deposit, is the platform's claim.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import chain

from custody.schemas.common import format_time
from custody.schemas.history import MovementOutput, VaultMovement
from custody.schemas.vaults import Vault as VaultShape
from multisig import MAX_INDEX, RECEIVE, MultisigError, Vault, decode_address
from signerd.account.follower import Follower
from signerd.account.platform import PlatformClient
from signerd.account.vaults import seen_vault
from signerd.account.wire import PlatformWorkspace, moment_of
from signerd.core.addresses import address_on_screen
from signerd.core.places import GAP
from signerd.core.text import plain, said
from signerd.core.titles import Labels, memo_of
from signerd.core.values import Pin, Record
from signerd.errors import NotPinned, PlatformError, PlatformUnreachable, SignedOut, UnknownVault
from signerd.journal import Journal
from signerd.shapes import AddressView, MovementView, ProposalLine, VaultFunds, VaultMovements
from signerd.shapes.limits import USUAL_MOVEMENTS

# A page must not take longer.
LONGEST_SECONDS = 10.0
NOT_ASKED = "Which addresses are used is known from what was signed here alone, and nothing of the balance: "
NONE_LEFT = "Every receive address of this vault is used; this is the last one, again. Have a new vault made."
NOT_OURS = (
    "The platform names an address as the next one to be paid to that is none of this vault's first or next "
    f"{GAP:,}. Pay nothing to it, and ask the operator. What stands here was derived on this machine."
)


@dataclass(frozen=True)
class Funds:
    """Asks the platform each time, if it is reachable."""

    journal: Journal
    platform: PlatformClient
    follower: Follower

    async def of_vault(self, vault_id: str) -> VaultFunds:
        """Raises UnknownVault, NotPinned."""
        pin = self.journal.pin(vault_id)
        if pin is None:
            seen_vault(self.journal, vault_id)
            raise NotPinned("the vault is not pinned, so its addresses are not known to be right")
        record, note = await self._record_of(vault_id)
        index = self.journal.next_receive_index(pin.vault)
        if record is not None:
            found = await _index_of(pin.vault, record.receive_address, index)
            index, note = (index, NOT_OURS) if found is None else (found, note)
        if index > MAX_INDEX:
            index, note = MAX_INDEX, NONE_LEFT if note is None else f"{note} {NONE_LEFT}"
        address = pin.vault.address(RECEIVE, index)
        return VaultFunds(
            vault_id=vault_id,
            network=str(self.journal.network),
            confirmed_sats=None if record is None else record.confirmed_sats,
            unconfirmed_sats=None if record is None else record.unconfirmed_sats,
            locked_sats=None if record is None else record.locked_sats,
            fresh=AddressView(
                chain=RECEIVE,
                index=index,
                address=address,
                on_screen=address_on_screen(address, pin.vault.network),
            ),
            note=note,
        )

    async def _record_of(self, vault_id: str) -> tuple[VaultShape | None, str | None]:
        """The platform's record of the vault, or why there is none."""
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                workspace = workspace_of(self.journal, self.follower, vault_id)
                return await self.platform.vault(workspace, vault_id), None
        except TimeoutError:
            return None, f"{NOT_ASKED}the platform did not answer within {LONGEST_SECONDS:.0f} s."
        except (PlatformError, SignedOut, UnknownVault) as error:
            return None, NOT_ASKED + said(error)


def workspace_of(journal: Journal, follower: Follower, vault_id: str) -> PlatformWorkspace:
    """Raises UnknownVault, PlatformUnreachable."""
    claim = seen_vault(journal, vault_id)
    for workspace in follower.state.workspaces:
        if workspace.id == claim.workspace_id:
            return workspace
    raise PlatformUnreachable("the platform has not shown this vault's workspace yet")


async def _index_of(vault: Vault, address: str, start: int) -> int | None:
    """The index of the address, but at least ``start``, below which addresses are used.

    Searched near ``start`` and among the first, as the platform may lag behind.
    """
    near = range(max(start - GAP, GAP), min(start + GAP, MAX_INDEX + 1))
    for index in chain(range(GAP), near):
        if vault.address(RECEIVE, index) == address:
            return max(index, start)
        # Let other tasks run.
        await asyncio.sleep(0)
    return None


@dataclass(frozen=True)
class PlatformMovements:
    """Asks the platform each time. ``line``: makes a proposal's line."""

    journal: Journal
    platform: PlatformClient
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
