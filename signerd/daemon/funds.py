"""The balance of a pinned vault, as the platform says, and its next receive address.

Every address is derived here. The platform only influences which one is shown; an address that is not one of
the vault's next is not shown.
"""

import asyncio
from dataclasses import dataclass
from itertools import chain

from custody.schemas.vaults import Vault as VaultShape
from multisig import MAX_INDEX, RECEIVE, Vault
from signerd.account.follower import Follower
from signerd.account.platform import Platform
from signerd.account.vaults import seen_vault
from signerd.account.wire import Workspace
from signerd.core.places import GAP
from signerd.core.screens import address_on_screen
from signerd.core.text import said
from signerd.errors import NotPinned, PlatformError, PlatformUnreachable, SignedOut, UnknownVault
from signerd.journal import Journal
from signerd.shapes import AddressView, VaultFunds

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
    platform: Platform
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
                return await self.platform.vault(self._workspace(vault_id), vault_id), None
        except TimeoutError:
            return None, f"{NOT_ASKED}the platform did not answer within {LONGEST_SECONDS:.0f} s."
        except (PlatformError, SignedOut, UnknownVault) as error:
            return None, NOT_ASKED + said(error)

    def _workspace(self, vault_id: str) -> Workspace:
        return workspace_of(self.journal, self.follower, vault_id)


def workspace_of(journal: Journal, follower: Follower, vault_id: str) -> Workspace:
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
