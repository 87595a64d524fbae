"""Vaults, what they hold, and their pins; accounts and addresses of this signer."""

from __future__ import annotations

from datetime import date

from signerd import shapes
from signerd.api.described import call
from signerd.callers import Right
from signerd.endpoint import PERSON_SECONDS
from signerd.shapes.limits import RECEIVE, USUAL_COUNT, USUAL_MOVEMENTS


class VaultsApi:
    @call("GET /vaults", Right.READ)
    def vaults(self) -> tuple[shapes.VaultView, ...]:
        """The vaults that the platform shows, pinned or not"""

    @call("GET /vaults/{vault_id}/tokens", Right.PERSON, operation="tokens")
    def vault_tokens(self, vault_id: shapes.Id) -> shapes.VaultTokens:
        """What the platform says of a vault's tokens and calls"""

    @call("GET /vaults/{vault_id}/funds", Right.PERSON, operation="funds")
    def vault_funds(self, vault_id: shapes.Id) -> shapes.VaultFunds:
        """What the platform says that a vault holds, and the next address to be paid to"""

    @call("GET /vaults/{vault_id}/movements", Right.PERSON, operation="movements")
    def vault_movements(
        self,
        vault_id: shapes.Id,
        *,
        cursor: shapes.Cursor | None = None,
        since: date | None = None,
        before: date | None = None,
        search: shapes.MovementSearch = "",
        limit: shapes.MovementCount = USUAL_MOVEMENTS,
    ) -> shapes.VaultMovements:
        """What the platform says came into a vault and left it, a page at a time

        The newest first. ``cursor``: the last answer's ``next``. ``since`` and ``before``: days in UTC; the
        second is left out. ``search``: part of a description or a name.
        """

    @call("POST /vaults/{vault_id}/pin/preview", Right.PERSON, body="PinPreviewRequest")
    def preview_pin(
        self, vault_id: shapes.Id, imported: shapes.ImportedQuorum | None = None
    ) -> shapes.PinPreview:
        """What to compare before pinning a vault

        A vault in ``imported`` must be the one in the record.
        """

    @call("POST /vaults/{vault_id}/pin", Right.PERSON, body="PinRequest", seconds=PERSON_SECONDS)
    def pin(
        self,
        vault_id: shapes.Id,
        code: shapes.Code,
        imported: shapes.ImportedQuorum | None = None,
        *,
        without_device_address: bool = False,
        airgapped: shapes.Compared | None = None,
    ) -> shapes.VaultView:
        """Pin a vault by its verification code

        Answers when the device knows the vault and has shown its first address; follow the vault's id
        meanwhile.

        ``code``: typed by the person. ``without_device_address``: pin though the device does not show the first address.

        ``airgapped``: what the person saw on a device without a cable that took the enrolment file: the "same" first address, or
        "another", which is an alarm.
        """

    @call("GET /vaults/{vault_id}/enrolment", Right.PERSON)
    def enrolment(self, vault_id: shapes.Id, form: shapes.EnrolmentForm = "coldcard") -> shapes.EnrolmentFile:
        """The file by which a device without a cable knows a vault"""

    @call("POST /vaults/{vault_id}/unpin", Right.PERSON, body="UnpinRequest")
    def unpin(self, vault_id: shapes.Id, code: shapes.Code) -> shapes.VaultView:
        """Forget a pinned vault, by the code it was pinned under

        ``code``: that under which the vault was pinned.
        """

    @call("GET /vaults/{vault_id}/policy", Right.PERSON)
    def vault_policy(self, vault_id: shapes.Id) -> shapes.VaultPolicy:
        """A pinned vault as a wallet policy, for another program (BIP-388)

        With the registrations that Ledgers returned, which need not be made again.
        """

    @call("GET /accounts", Right.XPUB)
    def accounts(self) -> shapes.AccountKeys:
        """The registered keys of this signer

        No device is needed.
        """

    @call("GET /vaults/{vault_id}/addresses", Right.XPUB)
    def vault_addresses(
        self,
        vault_id: shapes.Id,
        chain: shapes.Chain = RECEIVE,
        start: shapes.Index = 0,
        count: shapes.Count = USUAL_COUNT,
    ) -> shapes.AddressPage:
        """Addresses of a pinned vault

        ``chain``: 0 for receiving, 1 for change.
        """

    @call(
        "POST /vaults/{vault_id}/addresses/show",
        Right.DISPLAY,
        body="ShowAddressRequest",
        seconds=PERSON_SECONDS,
    )
    def show_vault_address(
        self, vault_id: shapes.Id, *, chain: shapes.Chain = RECEIVE, index: shapes.Index = 0
    ) -> shapes.AddressShown:
        """Have the device show an address of a pinned vault

        Answers when the device has shown it, and the same one as this machine derives; follow the vault's id
        meanwhile.
        """

    @call("GET /profile/addresses", Right.XPUB)
    def profile_addresses(
        self, chain: shapes.Chain = RECEIVE, start: shapes.Index = 0, count: shapes.Count = USUAL_COUNT
    ) -> shapes.AddressPage:
        """Addresses of the signer's profile"""

    @call("POST /profile/addresses/show", Right.DISPLAY, body="ShowAddressRequest", seconds=PERSON_SECONDS)
    def show_profile_address(
        self, *, chain: shapes.Chain = RECEIVE, index: shapes.Index = 0
    ) -> shapes.AddressShown:
        """Have the device show an address of the profile

        As ``show_vault_address``; follow the device's id meanwhile.
        """
