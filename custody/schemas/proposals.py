"""Proposals: what is asked to be signed, by whom, and what became of it."""

from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StrictBool, StrictInt, StringConstraints, model_validator

from custody.schemas.call import WORKSPACE_MANAGERS, Call, PermissionName, Way, one_or_few
from custody.schemas.common import (
    MAX_SATS,
    Count,
    DaysQuery,
    Few,
    Int64,
    Label,
    Many,
    NamedApprover,
    PageSize,
    Priority,
    Prose,
    PsbtBase64,
    PsbtText,
    QueryId,
    Sats,
    SearchText,
    Shape,
    Text,
    TextId,
    Timestamp,
    WorkspaceRequest,
)
from custody.schemas.errors import ErrorCode

MAX_RECIPIENTS = 100
# One OP_RETURN of at most 80 bytes: what every relaying node takes. Twice that in hex, with its prefix.
MAX_OP_RETURN_TEXT = 162
MAX_LONG_POLL_SECONDS = 60

# BIP-173: an address of these networks is at most 90 characters.
ADDRESS_CHARACTERS = 90
AddressText = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=ADDRESS_CHARACTERS),
    Field(examples=["bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"]),
]

AmountSats = Annotated[StrictInt, Field(ge=1, le=MAX_SATS)]
RecipientText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400)]
OpReturnText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_OP_RETURN_TEXT)]
# As the field writes an outpoint: the txid as explorers show it, and the output's place.
OutpointText = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}:(0|[1-9][0-9]{0,8})$")]
# What one transaction spends.
MAX_COINS = 100
FeeRateText = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,4})(\.[0-9]{1,3})?$")]


class ProposalStatus(StrEnum):
    PENDING = "PENDING"
    SIGNED = "SIGNED"
    BROADCASTING = "BROADCASTING"
    CONFIRMED = "CONFIRMED"
    STALLED = "STALLED"
    REJECTED = "REJECTED"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"
    INVALIDATED = "INVALIDATED"
    FAILED = "FAILED"
    REPLACED = "REPLACED"
    # A proof: its signature is complete. It never goes to the network.
    PROVEN = "PROVEN"


class TxType(StrEnum):
    SEND = "send"
    FORWARD = "forward"
    DEPLOY = "deploy"
    CALL = "call"
    PROOF = "proof"


Coins = Annotated[
    list[OutpointText], Field(min_length=1, max_length=MAX_COINS, json_schema_extra={"uniqueItems": True})
]


class CreatePsbtRequest(WorkspaceRequest):
    """``recipients`` with parallel ``amounts_sats``, or payment links (BIP-321) that carry amounts. With ``sweep``, one recipient is
    sent everything that the vault can spend, less the fee.

    ``op_return`` is hex where prefixed ``0x``, else UTF-8. ``fee_rate`` is in sat/vB, decimal. ``coins`` of a new send are outpoints:
    exactly these are spent, and ``sweep_coins`` sends all that they hold, less the fee.

    Another version pays nobody new, so it names no recipient: ``replaces_psbt_id`` asks for the same payment at a higher fee,
    ``cancels_psbt_id`` for the return of all its coins to the vault.

    A field that is left out never raises what leaves the vault.
    """  # noqa: E501

    wallet_id: TextId
    tx_type: Literal["send"]
    recipients: Annotated[list[RecipientText], Field(max_length=MAX_RECIPIENTS)] = Field(default_factory=list)
    amounts_sats: Annotated[list[AmountSats], Field(max_length=MAX_RECIPIENTS)] | None = None
    description: Text | None = None
    op_return: OpReturnText | None = None
    contract_ids: Annotated[list[TextId], Field(max_length=100)] | None = None
    priority: Priority | None = None
    fee_rate: FeeRateText | None = None
    sweep: StrictBool = False
    coins: Coins | None = None
    sweep_coins: StrictBool = False
    replaces_psbt_id: TextId | None = None
    cancels_psbt_id: TextId | None = None

    @property
    def sweeps(self) -> bool:
        return self.sweep or self.sweep_coins

    @property
    def cancel(self) -> bool:
        return self.cancels_psbt_id is not None

    @model_validator(mode="after")
    def _one_kind(self) -> "CreatePsbtRequest":
        follows = (self.replaces_psbt_id, self.cancels_psbt_id)
        if follows.count(None) < len(follows) - 1:
            raise ValueError("replaces_psbt_id, cancels_psbt_id: give one of them")
        of_new = "recipients", "amounts_sats", "op_return", "sweep", "coins", "sweep_coins"
        given = [name for name in of_new if getattr(self, name) not in (None, False, [])]
        if any(follows) and given:
            raise ValueError(f"another version pays the same, or nobody: leave out {', '.join(given)}")
        if not any(follows) and not self.recipients and self.op_return is None:
            raise ValueError("recipients: name at least one recipient, or give op_return")
        if self.coins is not None and len(set(self.coins)) != len(self.coins):
            raise ValueError("coins: each coin is spent once")
        return self

    @model_validator(mode="after")
    def _amounts_or_everything(self) -> "CreatePsbtRequest":
        if self.amounts_sats is not None and len(self.amounts_sats) != len(self.recipients):
            raise ValueError("amounts_sats: give one amount for each recipient, in the same order")
        if self.sweeps and (self.amounts_sats is not None or len(self.recipients) != 1):
            raise ValueError("sweep: everything is sent to one recipient, without an amount")
        if (self.sweep and self.coins is not None) or (self.sweep_coins and self.coins is None):
            raise ValueError("sweep_coins: goes with coins, and sends all that they hold; sweep goes without")
        return self


class CreatePsbtResponse(Shape):
    psbt_id: Label
    psbt_base64: PsbtText


class PsbtPreview(Shape):
    """What ``create-psbt`` would make of the same request now. Nothing is stored, and no coin is held.

    ``coins`` are the outpoints that it spends, ``asked_fee_rate`` is the rate that was asked for or that the priority has now, and
    ``fee_rate`` what the transaction pays, both in sat/vB. A new send with these ``coins`` and ``asked_fee_rate`` as its ``fee_rate``
    has this fee and this change. ``movement_sats`` is what leaves the vault, fee included. ``role_left_sats`` and ``vault_left_sats``
    are the largest movements that the two limits let through after it; null for another version of a proposal, which counts once
    with it. ``same_as`` is a proposal of the workspace, from any vault, of the last 14 days, that pays the same, or has paid it. ``resembles`` has for each recipient the
    addresses that it only resembles, of those that the workspace has paid, of its vaults' and of its address book's, or the earlier recipient:
    the first characters and the last are alike, the middle is not. Else null. A name in the book makes none the address that was paid, or the vault's.

    ``preview-forward`` answers the same of ``forward-to-vault``: ``movement_sats`` is 0, and no limit counts.
    """  # noqa: E501

    psbt_base64: PsbtText
    recipients: Few[Label]
    amounts_sats: Few[Sats]
    coins: Few[Label]
    change_sats: Sats
    fee_sats: Sats
    fee_rate: Label
    asked_fee_rate: Label
    vsize: Count
    movement_sats: Sats
    role_left_sats: Sats | None = None
    vault_left_sats: Sats | None = None
    same_as: Label | None = None
    resembles: Few[Label | None] = Field(default_factory=list)


class CancelPsbtRequest(WorkspaceRequest):
    """``release_coins``: frees what a cancelled proposal keeps because signatures are out."""

    psbt_id: TextId
    reason: Text | None = None
    release_coins: StrictBool = False


class CancelPsbtResponse(Shape):
    """``released_signatures``: how many stay valid in the hands of a person who kept a copy. ``self_spend_offered``: ``create-psbt`` with
    ``cancels_psbt_id`` takes its coins back for good. ``coins_kept``: they stay locked until then.
    """  # noqa: E501

    psbt_id: Label
    status: ProposalStatus
    released_signatures: Count
    coins_kept: bool
    self_spend_offered: bool
    detail: Prose


class SignPsbtRequest(WorkspaceRequest):
    """Either a signed PSBT, or ``decision: "reject"`` with a reason."""

    psbt_id: TextId
    psbt_base64: PsbtBase64 | None = None
    decision: Literal["approve", "reject"] = "approve"
    reason: Text | None = None

    @model_validator(mode="after")
    def _decision_is_whole(self) -> "SignPsbtRequest":
        if self.decision == "approve" and self.psbt_base64 is None:
            raise ValueError("psbt_base64: an approval needs the signed PSBT")
        if self.decision == "reject" and self.psbt_base64 is not None:
            raise ValueError("psbt_base64: a rejection carries no PSBT")
        return self


class SignPsbtResponse(Shape):
    psbt_id: Label
    status: ProposalStatus
    collected_signatures: Count
    required_signatures: Count
    txid: Label | None = None
    # Inputs of ours that still lack this signer's signature, and words about what was changed or not.
    missing_inputs: Many[Int64] = Field(default_factory=list)
    detail: Prose | None = None


class ProposalSigner(Shape):
    """``name`` as the others know the signer; ``reason`` is what they said when they declined, at ``decided_at``. ``may_approve``: whether they
    can, of a proposal that waits: by their role, their key, and who proposed it; null from a platform that is older.
    """  # noqa: E501

    key_id: Label
    is_signed: bool
    user_id: Label
    signed_at: Timestamp | None = None
    decision: Literal["approve", "reject"] | None = None
    decided_at: Timestamp | None = None
    name: Label | None = None
    reason: Prose | None = None
    may_approve: bool | None = None


class DecodedCall(Shape):
    """What a proposal's own bytes do to a token (CPT-1, docs/understand/tokens.md). Raw units are whole numbers in text.

    ``words`` is the sentence that a signer reads, ``data_hex`` what the device shows. ``ticker`` and the amounts in whole tokens
    are null where the token's bytecode is not known. A signer's machine decodes the PSBT by itself and compares.

    ``whitelist_count`` and ``whitelist_hash``: of a deployment whose bytecode is known, how many addresses it lists from the start, and
    the SHA-256 of that list (docs/understand/tokens.md).
    """  # noqa: E501

    function: Label
    words: Prose
    data_hex: Label
    contract_id: Label | None = None
    ticker: Label | None = None
    decimals: Count | None = None
    amount_raw: Label | None = None
    amount: Label | None = None
    address: Label | None = None
    total_supply_raw: Label | None = None
    total_supply: Label | None = None
    max_supply_raw: Label | None = None
    max_supply: Label | None = None
    whitelist_enabled: bool | None = None
    bytecode_hash: Label | None = None
    whitelist_count: Count | None = None
    whitelist_hash: Label | None = None


class TroubleKind(StrEnum):
    """What is wrong with a proposal's transaction."""

    # Another transaction in the mempool spends one of its coins.
    CONFLICT = "conflict"
    # A confirmed one does, which is no version of it.
    DOUBLE_SPENT = "double-spent"
    # One of its coins is in no block and not in the mempool: its deposit left with a reorganisation.
    COIN_MISSING = "coin-missing"
    # It was sent, and the mempool has dropped it.
    NOT_IN_MEMPOOL = "not-in-mempool"
    # Below what nodes take now.
    FEE_TOO_LOW = "fee-too-low"
    # It has waited for hours, and pays less than the chain asks for.
    SLOW = "slow"


Advice = Literal["bump", "wait", "cancel", "resend", "none"]


class ProposalTrouble(Shape):
    """Why a transaction gets no further, in ``words``, and what can be done. ``advice``: ``bump``, a new version at a higher fee
    (``replaces_psbt_id``); ``wait``; ``cancel``, where it waits for a deposit that may never return; ``resend``, which the platform does by itself; ``none``, it is over. ``txid`` is the other transaction of a conflict or a double spend, and ``psbt_id`` the
    workspace's proposal that it is of, if it is one.
    """  # noqa: E501

    kind: TroubleKind
    words: Prose
    advice: Advice
    txid: Label | None = None
    psbt_id: Label | None = None
    since: Timestamp


class Screening(Shape):
    """The word of the program that the vault names for it. While it is ``held`` no signer gets it; ``unanswered``: the deadline was
    first, and the vault's policy decided; ``overtaken``: the proposal ended, or was sent, before. ``until`` is null before the program is asked. ``reason`` is the program's.
    """  # noqa: E501

    state: Literal["held", "allowed", "refused", "unanswered", "overtaken"]
    until: Timestamp | None
    reason: Prose | None = None


class Proposal(Shape):
    """``txid`` is null until the transaction was broadcast; ``fee_rate`` is in sat/vB. ``pays_others``: not only the vault itself, or the one that replaces it."""  # noqa: E501

    psbt_id: Label
    workspace_id: Label
    vault_id: Label
    tx_type: TxType
    status: ProposalStatus
    contract_uid: Int64 | None = None
    call_uid: Int64 | None = None
    decoded_call: DecodedCall | None = None
    created_by: Label
    created_by_name: Label | None = None
    description: Prose | None = None
    psbt_base64: PsbtText
    txid: Label | None = None
    txid_expected: Label
    recipients: Few[Label]
    amounts_sats: Few[Sats]
    pays_others: bool = True
    fee_sats: Sats
    fee_rate: Label
    op_return: Label | None = None
    contract_ids: Few[Label] = Field(default_factory=list)
    m: Count
    n: Count
    signers: Few[ProposalSigner]
    collected_signatures: Count
    required_signatures: Count
    # Whose approval a pending one still needs beside the number of signatures, by the vault's controls.
    waits_for: Few[NamedApprover] = Field(default_factory=list)
    expires_at: Timestamp
    created_at: Timestamp
    updated_at: Timestamp
    confirmations: Count
    block_hash: Label | None = None
    block_height: Count | None = None
    failure_code: Label | None = None
    failure_reason: Prose | None = None
    trouble: ProposalTrouble | None = None
    replaces_psbt_id: Label | None = None
    replaced_by_psbt_id: Label | None = None
    # Whether create-psbt takes its id in replaces_psbt_id: it waits, and no newer version of it does.
    may_be_replaced: bool = False
    vault_name: Label | None = None
    screening: Screening | None = None

    @property
    def is_held(self) -> bool:
        return self.screening is not None and self.screening.state == "held"

    @property
    def state(self) -> str:
        """Its status; or ``HELD`` or ``REFUSED`` by screening; or ``REPLACED``: while a newer version of it
        waits or is sent, it takes no signatures.
        """
        if self.status is ProposalStatus.REJECTED and self.failure_code == "screening":
            return "REFUSED"
        if self.status is not ProposalStatus.PENDING:
            return self.status
        return "HELD" if self.is_held else "REPLACED" if self.replaced_by_psbt_id else self.status


class PsbtQuery(DaysQuery):
    """One by ``psbt_id``, or a workspace's, newest last unless ``order`` says otherwise; ``after`` is the last id seen. ``awaiting``:
    those that the caller has to decide. ``vault_id``: those of that vault. ``created_by``: those that this user proposed. ``search``:
    those that have each of its words in their title or in the address book's name of whom they pay, as the beginning of an address, a
    txid or an id, or as an amount in BTC or satoshis. A search looks at some thousand proposals at a time: with ``Link`` it goes on
    from there, whether it found any. ``tx_type``: proofs of control alone. ``from_day``, ``to_day``: when they were proposed,
    inclusive, in UTC.
    """  # noqa: E501

    psbt_id: TextId | None = None
    workspace_id: QueryId | None = None
    status: ProposalStatus | None = None
    awaiting: Literal["me"] | None = None
    vault_id: TextId | None = None
    created_by: QueryId | None = None
    tx_type: Literal["proof"] | None = None
    order: Literal["oldest", "newest"] = "oldest"
    after: TextId | None = None
    search: SearchText | None = None
    limit: PageSize = 100

    @model_validator(mode="after")
    def _one_or_many(self) -> "PsbtQuery":
        if self.psbt_id is None and self.workspace_id is None:
            raise ValueError("give psbt_id for one proposal, or workspace_id for a list")
        return self


# A vault's transaction needs PAYMENT_APPROVE, which is checked with the proposal; a forward needs either.
SIGNERS: Final = frozenset({PermissionName.PAYMENT_APPROVE, PermissionName.PAYMENT_INIT})
FORWARDERS: Final = frozenset({PermissionName.PAYMENT_INIT})
PROPOSAL_READERS: Final = WORKSPACE_MANAGERS | {
    PermissionName.PAYMENT_INIT, PermissionName.PAYMENT_APPROVE, PermissionName.VIEW_BALANCES,
}  # fmt: skip
_PROPOSING: Final = (
    ErrorCode.BACKEND_UNAVAILABLE, ErrorCode.DUST, ErrorCode.INSUFFICIENT_FUNDS, ErrorCode.LOCKED_FUNDS,
    ErrorCode.NOT_IN_ADDRESS_BOOK, ErrorCode.POLICY_UNAVAILABLE, ErrorCode.ROLE_LIMIT_EXCEEDED,
    ErrorCode.STATE_CONFLICT, ErrorCode.VAULT_FROZEN, ErrorCode.VAULT_LIMIT_EXCEEDED,
    ErrorCode.WRONG_NETWORK_ADDRESS,
)  # fmt: skip
CREATE_PSBT = Call(
    "POST", "/api/v1/create-psbt", CreatePsbtRequest, CreatePsbtResponse,
    "Proposes a send from a vault, or a version of it that takes its place. Its coins are locked;\n"
    "nothing is signed and nothing reaches the network.",
    WORKSPACE_MANAGERS, creates=True, attempt="propose a payment", open_to=frozenset({Way.PROGRAM}),
    refuses=_PROPOSING,
)  # fmt: skip
PREVIEW_PSBT = Call(
    "POST", "/api/v1/preview-psbt", CreatePsbtRequest, PsbtPreview,
    "What ``create-psbt`` would make of this now: coins, change, fee, and what the limits leave. It stores "
    "and reserves nothing,\nand refuses what that call refuses.",
    WORKSPACE_MANAGERS, reads=True, attempt="preview a payment",
    open_to=frozenset({Way.PROGRAM}), refuses=_PROPOSING,
)  # fmt: skip
PSBT: Final = Call[PsbtQuery, Any](
    "GET", "/api/v1/psbt", PsbtQuery, one_or_few(Proposal),
    "One proposal, or a workspace's. ``If-None-Match`` with ``Prefer: wait=SECONDS`` waits for a change. The "
    "PSBT carries the\nsignatures that were given for the vault's signers alone, while it may still be "
    "finished; others read it unsigned. A ``search``\ncounts as ten calls and does not wait.",
    PROPOSAL_READERS, attempt="see the payments", open_to=frozenset({Way.PROGRAM, Way.SIGNER}),
    long_poll=True,
)  # fmt: skip
CANCEL_PSBT = Call(
    "POST", "/api/v1/cancel-psbt", CancelPsbtRequest, CancelPsbtResponse,
    "Ends a proposal that waits for signatures. It is soft: the answer says how many signatures stay valid.",
    WORKSPACE_MANAGERS | FORWARDERS, attempt="cancel a payment", open_to=frozenset({Way.PROGRAM}),
    repeatable=True, refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
SIGN_PSBT = Call(
    "POST", "/api/v1/sign-psbt", SignPsbtRequest, SignPsbtResponse,
    "Approves with a signed PSBT, or declines what the caller has not signed. The approval that meets the "
    "threshold finalises the\ntransaction, which is then broadcast; the answer waits a moment for that.",
    SIGNERS, attempt="approve or decline a payment", open_to=frozenset({Way.SIGNER}),
    carries_psbt=True, repeatable=True,
    refuses=(
        ErrorCode.KEY_REVOKED, ErrorCode.NOT_A_SIGNER, ErrorCode.NOT_IN_ADDRESS_BOOK, ErrorCode.PSBT_MISMATCH,
        ErrorCode.BAD_SIGNATURE, ErrorCode.STATE_CONFLICT, ErrorCode.VAULT_FROZEN,
    ),
)  # fmt: skip
