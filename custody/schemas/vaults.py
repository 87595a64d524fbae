"""Vaults, what bounds them, and a vault as other wallets import it."""

from typing import Annotated, Final, Literal

from pydantic import Field, StrictBool, StrictInt, StringConstraints, model_validator

from custody.common.text import count
from custody.schemas.call import (
    VAULT_READERS,
    VAULT_VIEWERS,
    WORKSPACE_MANAGERS,
    Call,
    PermissionName,
    Way,
    many,
)
from custody.schemas.common import (
    ApiNetwork,
    ChainName,
    Count,
    DecimalText,
    Few,
    IntId,
    Label,
    Many,
    Name,
    NamedApprover,
    NullString,
    PageSize,
    Prose,
    Sats,
    Shape,
    Text,
    TextId,
    Timestamp,
    VaultQuery,
    VaultRequest,
    WorkspaceQuery,
    is_absent,
)
from custody.schemas.errors import ErrorCode
from custody.schemas.limits import AssetLimits, CycleFields, VaultLimits

# 15: what a script of compressed keys allows on every device we support (BIP-67; Ledger, Trezor and
# Coldcard).
MAX_SIGNERS = 15
APPROVERS: Final = frozenset({PermissionName.PAYMENT_APPROVE})


Threshold = Annotated[StrictInt, Field(ge=1, le=MAX_SIGNERS)]
SignerIds = Annotated[
    list[IntId], Field(min_length=1, max_length=MAX_SIGNERS, json_schema_extra={"uniqueItems": True})
]


class CreateWalletRequest(CycleFields):
    """``signers`` are user ids; ``transaction_limit`` is in BTC, and bounds each payment, or, with ``per_cycle``, the sum of a cycle."""  # noqa: E501

    name: Name
    network: ApiNetwork
    m: Threshold
    signers: SignerIds
    transaction_limit: DecimalText
    per_cycle: StrictBool = False

    @model_validator(mode="after")
    def _consistent(self) -> "CreateWalletRequest":
        if len(set(self.signers)) != len(self.signers):
            raise ValueError("signers: each member can be a signer of a vault once")
        if self.m > len(self.signers):
            raise ValueError(
                f"m: {self.m} signatures cannot be asked of {count(len(self.signers), 'signer', 'signers')}"
            )
        return self


class VaultsQuery(WorkspaceQuery):
    """All of them, or a page of ``limit``; ``after`` is the last id seen. ``vault_id`` for one, ``name`` for those whose name has this
    in it.
    """  # noqa: E501

    vault_id: TextId | None = None
    name: Name | None = None
    after: TextId | None = None
    limit: PageSize | None = None


# Of the key that stands in the vault's script. ``superseded``: its holder has another device, and may still
# approve moves into the workspace's vaults.
SignerKeyState = Literal["active", "superseded", "lost"]


class VaultSigner(Shape):
    key_index: Count
    first_name: NullString
    surname: NullString
    # Ours beside the specification's: who the signer is, so that a daemon finds its own place.
    user_id: Label = ""
    # As a proposal names its signers.
    name: Label | None = Field(default=None, exclude_if=is_absent)
    key_id: Label = ""
    key_state: SignerKeyState | None = Field(default=None, exclude_if=is_absent)
    # Whether they are still a member whose role approves; null from a platform that is older.
    may_approve: bool | None = Field(default=None, exclude_if=is_absent)
    # When the key's device last signed anything, and whether the workspace asks it to sign again.
    last_signed_at: Timestamp | None = Field(default=None, exclude_if=is_absent)
    check_due: bool = False


class MarkedVault(Shape):
    # Nothing is proposed, approved or sent until two members unfreeze it.
    is_frozen: bool = False
    # Fewer than ``m`` of its signers can sign a payment, by the key in its script and by their role.
    lacks_signers: bool = False
    # None of those who can sign is of a role, or the person, whose approval it asks for.
    lacks_approver: bool = False
    # The vault that takes its place: its coins may go there, and nowhere else.
    replaced_by: Label | None = Field(default=None, exclude_if=is_absent)

    @property
    def marks(self) -> str:
        """Why nothing is paid from it, in words; empty where payments may be proposed."""
        is_replaced = self.replaced_by is not None
        marks = {
            "frozen": self.is_frozen,
            "too few signers": self.lacks_signers,
            "no named approver": self.lacks_approver,
            "replaced": is_replaced,
        }
        return ", ".join(mark for mark, holds in marks.items() if holds)


class Vault(MarkedVault):
    """The specification's Vault, with ``descriptor`` (checksum and key origins) and the balance beside it.

    ``limit_error`` stands in the place of ``detailed_vault_limits`` while spending policies cannot be read. ``assets`` are the tokens
    that the vault moved in the current cycle; nothing is told of them beside a ``limit_error``, nor by a platform that is older.
    ``warnings``: in the answer to ``create_wallet`` alone, what its creator should know of the quorum; absent where there is nothing.
    """  # noqa: E501

    id: Label
    user_id: Label
    workspace_id: Label
    name: Label
    network: ApiNetwork
    m: Count
    n: Count
    script_type: Literal["p2wsh"]
    witness_script_hex: Prose
    address: Label
    created_at: Timestamp
    updated_at: Timestamp
    detailed_vault_limits: VaultLimits | None = Field(default=None, exclude_if=is_absent)
    limit_error: Prose | None = Field(default=None, exclude_if=is_absent)
    assets: Few[AssetLimits] | None = Field(default=None, exclude_if=is_absent)
    signers: Few[VaultSigner]
    descriptor: Prose
    # The chain behind ``testnet``: testnet4, signet or regtest, by the operator's configuration, never
    # inferred.
    chain: ChainName
    receive_address: Label
    confirmed_sats: Sats
    unconfirmed_sats: Sats
    locked_sats: Sats
    # In coins that are set aside and that no proposal holds.
    set_aside_sats: Sats = 0
    warnings: Few[Prose] | None = Field(default=None, exclude_if=is_absent)
    # The vault in whose place it is.
    replaces: Label | None = Field(default=None, exclude_if=is_absent)

    @model_validator(mode="after")
    def _limits_or_why_not(self) -> "Vault":
        if (self.detailed_vault_limits is None) == (self.limit_error is None):
            raise ValueError("a vault has either detailed_vault_limits or limit_error")
        return self


class VaultName(MarkedVault):
    """To choose from."""

    id: Label
    name: Label

    @property
    def marked_name(self) -> str:
        return f"{self.name} ({self.marks})" if self.marks else self.name


# In the place of a webhook's id: no program screens.
NO_SCREENING: Final = "none"


class VaultControls(Shape):
    """What bounds a vault beside its limits. ``frozen_by`` and ``unfreeze_asked_by`` are user ids, whose names are
    null where the person gave none. ``freeze_reason`` is what who froze it gave.

    ``named_approvers``: of each, one approval has to come, whatever the number of signatures.
    ``waiting_psbt_ids`` met their threshold and did not reach the network: while the vault is frozen they are not sent.
    ``on_network_psbt_ids`` are in the mempool, where no freeze stops them. Up to 100 of each.
    """  # noqa: E501

    vault_id: Label
    only_address_book: bool
    maker_may_approve: bool
    screening_webhook_id: Label | None = None
    screening_seconds: Count = 3600
    screening_fails_open: bool = False
    named_approvers: Few[NamedApprover] = Field(default_factory=list)
    is_frozen: bool
    frozen_at: Timestamp | None = None
    frozen_by: Label | None = None
    frozen_by_name: Label | None = None
    freeze_reason: Prose | None = None
    unfreeze_asked_at: Timestamp | None = None
    unfreeze_asked_by: Label | None = None
    unfreeze_asked_by_name: Label | None = None
    waiting_psbt_ids: Few[Label] = Field(default_factory=list)
    on_network_psbt_ids: Few[Label] = Field(default_factory=list)


ApproverKey = Annotated[str, StringConstraints(pattern="^(role|user):[1-9][0-9]{0,17}$")]
# A vault asks for so many approvals by somebody in particular.
MAX_APPROVERS = 2


class UpdateVaultControlsRequest(VaultRequest):
    """The first two as they are to be; of the others, what is left out stays. ``approvers``: of each one approval has to come,
    ``role:5`` from any member of that role, ``user:7`` from that one. ``screening_webhook_id``: a webhook of the workspace, or
    ``none``.
    """  # noqa: E501

    only_address_book: StrictBool
    maker_may_approve: StrictBool
    screening_webhook_id: TextId | None = None
    screening_seconds: Annotated[StrictInt, Field(ge=10, le=86_400)] | None = None
    screening_fails_open: StrictBool | None = None
    approvers: (
        Annotated[list[ApproverKey], Field(max_length=MAX_APPROVERS, json_schema_extra={"uniqueItems": True})]
        | None
    ) = None

    @model_validator(mode="after")
    def _each_once(self) -> "UpdateVaultControlsRequest":
        if len({*(self.approvers or ())}) < len(self.approvers or ()):
            raise ValueError("approvers: each approver is named once")
        return self


class ReplaceVaultRequest(VaultRequest):
    """A new vault ``name`` in the place of ``vault_id``. ``m`` and ``signers``: as they are, unless they are given; of each signer the
    key that is active now. Limit and controls are copied.
    """  # noqa: E501

    name: Name
    m: Threshold | None = None
    signers: SignerIds | None = None


class ReplacedVault(Shape):
    """``vault`` is the new one. Payments of the old one without a signature are cancelled, others go on."""

    vault: Vault
    cancelled_psbt_ids: Many[Label]
    signed_psbt_ids: Many[Label]


class FreezeVaultRequest(VaultRequest):
    reason: Annotated[Text, Field(min_length=1)] | None = None


# A descriptor (BIP-380, BIP-389), a descriptor record of BIP-129, or a wallet policy of BIP-388.
ExportForm = Literal["descriptor", "bsms", "policy"]


class VaultExportQuery(VaultQuery):
    format: ExportForm = "descriptor"


class VaultExport(Shape):
    """``verification_code`` is what the vault's signers read to each other."""

    vault_id: Label
    name: Label
    format: ExportForm
    text: Prose
    verification_code: Label


CREATE_WALLET = Call(
    "POST", "/api/v1/create_wallet", CreateWalletRequest, Vault,
    "Creates an M-of-N vault. Its signers, threshold, name and network are fixed from then on.",
    WORKSPACE_MANAGERS, creates=True, attempt="make a vault",
    refuses=(ErrorCode.KEY_ACCOUNTS_EXHAUSTED, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
LIST_WALLETS = Call(
    "GET", "/api/v1/list-wallets", VaultsQuery, many(Vault),
    "The workspace's vaults, the oldest first: all, a page of them, one, or those of a name.",
    VAULT_READERS, attempt="see the vaults", open_to=frozenset({Way.PROGRAM, Way.SIGNER}),
    refuses=(ErrorCode.NOT_FOUND,),
)  # fmt: skip
VAULT_NAMES = Call(
    "GET", "/api/v1/vault-names", VaultsQuery, many(VaultName),
    "Their names alone, to choose from: of any number of vaults in one answer.",
    VAULT_READERS, attempt="see the vaults", open_to=frozenset({Way.PROGRAM}),
    refuses=(ErrorCode.NOT_FOUND,),
)  # fmt: skip
VAULT_EXPORT = Call(
    "GET", "/api/v1/vault-export", VaultExportQuery, VaultExport,
    "The vault as other wallets import it: its descriptor with checksum and key origins, a record of "
    "BIP-129 (BSMS), or a\nwallet policy (BIP-388), its keys on lines below the template.",
    VAULT_VIEWERS, attempt="export a vault", open_to=frozenset({Way.PROGRAM}),
)  # fmt: skip
VAULT_CONTROLS = Call(
    "GET", "/api/v1/vault-controls", VaultQuery, VaultControls,
    "What bounds the vault beside its limits, whether it is frozen, and what a freeze holds up.",
    VAULT_READERS, attempt="see the vaults", open_to=frozenset({Way.PROGRAM}),
)  # fmt: skip
UPDATE_VAULT_CONTROLS = Call(
    "POST", "/api/v1/update-vault-controls", UpdateVaultControlsRequest, VaultControls,
    "Binds the vault to the address book, says whether a signer may approve what they proposed, of whom an "
    "approval has to come,\nand which webhook screens proposals before any signer sees them. Counts for the "
    "next proposal; all but the screening for\nthe next approval of those that wait, too.",
    WORKSPACE_MANAGERS, second_person="Change what bounds a vault", repeatable=True,
    refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
REPLACE_VAULT = Call(
    "POST", "/api/v1/replace-vault", ReplaceVaultRequest, ReplacedVault,
    "Makes a vault in the place of another one, whose coins may then move there alone. No limit counts such "
    "a move, and the\naddress book does not bind it: a second person always confirms the replacement. "
    "Payments without a signature are cancelled.",
    WORKSPACE_MANAGERS, second_person="Replace a vault", always_two=True, one_waits_for="vault_id",
    cools=True,
    refuses=(
        ErrorCode.KEY_ACCOUNTS_EXHAUSTED, ErrorCode.POLICY_UNAVAILABLE, ErrorCode.STATE_CONFLICT,
        ErrorCode.VAULT_FROZEN,
    ),
)  # fmt: skip
FREEZE_VAULT = Call(
    "POST", "/api/v1/freeze-vault", FreezeVaultRequest, VaultControls,
    "Freezes the vault at once: nothing is proposed, approved or sent until two members unfreeze it. What "
    "met its\nthreshold waits as STALLED; what is on the network stays there. Of a frozen vault it takes "
    "back the first word for\nunfreezing it.",
    APPROVERS, attempt="freeze a vault", open_to=frozenset({Way.SIGNER}), repeatable=True, reserved=True,
)  # fmt: skip
UNFREEZE_VAULT = Call(
    "POST", "/api/v1/unfreeze-vault", VaultRequest, VaultControls,
    "The first member asks, and another one within a day unfreezes. Then what waits is sent, and may be "
    "approved.",
    APPROVERS, attempt="unfreeze a vault", refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
