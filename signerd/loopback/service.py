"""The port that the routes call and the daemon implements.

One loop calls it. Every method may raise a leaf of SignerdError, which the routes turn into problem+json; nothing was
changed then, unless the leaf says otherwise. What takes a person at a device (``register``, ``pin``) answers when that
is done; what the device shows meanwhile is in ``feed`` under the subject "registration" or the vault's id.
``approve`` answers as soon as the decision is recorded; the rest is told by ``feed`` under the proposal's id.
"""

from typing import Protocol

from signerd.callers import TERMINAL, Caller
from signerd.feed import Feed
from signerd.loopback.access.ports import Reach
from signerd.loopback.ports.addresses import AddressPort
from signerd.loopback.ports.apps import Apps
from signerd.loopback.ports.brought import BroughtPort
from signerd.loopback.ports.handling import HandlingPort
from signerd.loopback.ports.history import HistoryPort
from signerd.loopback.ports.metrics import MetricsPort
from signerd.loopback.ports.settings import SettingsPort
from signerd.loopback.ports.tokens import TokenPort
from signerd.loopback.ports.unlocking import UnlockPort
from signerd.shapes import (
    AuditReport,
    BroughtQuorum,
    DeviceView,
    PinPreview,
    ProposalLine,
    ProposalView,
    Registered,
    RegistrationPreview,
    SignedIn,
    Status,
    VaultView,
)


class DaemonService(Protocol):
    """What a program of the same person may ask of the daemon."""

    @property
    def feed(self) -> Feed: ...

    @property
    def unlocking(self) -> UnlockPort: ...

    @property
    def handling(self) -> HandlingPort: ...

    @property
    def addresses(self) -> AddressPort: ...

    @property
    def apps(self) -> Apps: ...

    @property
    def brought(self) -> BroughtPort: ...

    @property
    def history(self) -> HistoryPort: ...

    @property
    def metrics(self) -> MetricsPort: ...

    @property
    def settings(self) -> SettingsPort: ...

    @property
    def tokens(self) -> TokenPort: ...

    @property
    def reach(self) -> Reach:
        """Where it is served over TCP: whoever serves it writes it."""
        ...

    async def status(self) -> Status: ...

    async def sign_in(self, email: str, password: str) -> SignedIn: ...

    async def confirm_sign_in(self, code: str) -> SignedIn: ...

    async def sign_out(self) -> None: ...

    async def devices(self) -> tuple[DeviceView, ...]: ...

    async def preview_registration(self, device_id: str | None) -> RegistrationPreview:
        """Read the keys of the named device, or of the only one that is ready. Registers nothing."""
        ...

    async def register(self, device_id: str, digest: str, *, replace: bool) -> Registered:
        """Register what the preview with this digest showed; the person confirms a challenge on the device."""
        ...

    async def vaults(self, *, sparing: bool = False) -> tuple[VaultView, ...]:
        """``sparing``: the platform is not asked again where it answered a moment ago."""
        ...

    async def preview_pin(self, vault_id: str, brought: BroughtQuorum | None) -> PinPreview:
        """What the person compares before pinning. Pins nothing."""
        ...

    async def pin(
        self, vault_id: str, code: str, *, brought: BroughtQuorum | None, without_device_address: bool
    ) -> VaultView:
        """Pin the vault whose code the person typed, once the device knows it and has shown its first address."""
        ...

    async def unpin(self, vault_id: str, code: str) -> VaultView:
        """Forget a pinned vault, by the code under which it was pinned; nothing of it is signed then."""
        ...

    async def proposals(self, *, ended: bool) -> tuple[ProposalLine, ...]:
        """In the order in which they came; those that came to an end only where ``ended``."""
        ...

    async def proposal(self, psbt_id: str, by: Caller = TERMINAL) -> ProposalView:
        """``by``: who asks; an app is told nothing of what another one brought (L13)."""
        ...

    async def approve(
        self, psbt_id: str, digest: str, acknowledged: frozenset[str], by: Caller
    ) -> ProposalLine:
        """Record the person's yes to what ``digest`` covers (S24), and who said it."""
        ...

    async def reject(self, psbt_id: str, reason: str, by: Caller) -> ProposalLine: ...

    async def verify_audit(self) -> AuditReport: ...
