"""Transaction proposals: an unsigned PSBT on its way to M signatures, and to the chain."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StringConstraints, model_validator

from custody.schemas.common import IntId, Priority, PsbtBase64, Request, Shape, Text, TextId, Timestamp

# 21 million BTC in satoshis.
MAX_SATS = 2_100_000_000_000_000
MAX_RECIPIENTS = 100
# One OP_RETURN of at most 80 bytes: what every relaying node takes. Twice that in hex, with its prefix.
MAX_OP_RETURN_TEXT = 162
MAX_LONG_POLL_SECONDS = 60

AmountSats = Annotated[StrictInt, Field(ge=1, le=MAX_SATS)]
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


class TxType(StrEnum):
    SEND = "send"
    FORWARD = "forward"
    DEPLOY = "deploy"
    CALL = "call"


class CreatePsbtRequest(Request):
    """``POST /api/v1/create-psbt``. ``recipients`` with parallel ``amounts_sats``, or BIP-21 URIs that carry amounts.

    ``op_return`` is hex where prefixed ``0x``, else UTF-8. ``fee_rate`` is in sat/vB, decimal.

    ``replaces_psbt_id`` asks for the same payment at a higher fee, and what is paid may be left out; with ``cancel``, for the
    return of all its coins to the vault. ``accelerates_psbt_id`` asks for a child that pays for that proposal's transaction.
    """

    wallet_id: TextId
    workspace_id: IntId
    tx_type: Literal["send"]
    recipients: Annotated[
        list[Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400)]],
        Field(max_length=MAX_RECIPIENTS),
    ] = Field(default_factory=list)
    amounts_sats: Annotated[list[AmountSats], Field(max_length=MAX_RECIPIENTS)] | None = None
    description: Text | None = None
    op_return: Annotated[str, StringConstraints(min_length=1, max_length=MAX_OP_RETURN_TEXT)] | None = None
    contract_ids: Annotated[list[TextId], Field(max_length=100)] | None = None
    priority: Priority | None = None
    fee_rate: FeeRateText | None = None
    replaces_psbt_id: TextId | None = None
    cancel: bool = False
    accelerates_psbt_id: TextId | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "CreatePsbtRequest":
        pays = bool(self.recipients) or self.op_return is not None
        if self.cancel and self.replaces_psbt_id is None:
            raise ValueError("cancel: name the proposal that is taken back in replaces_psbt_id")
        if self.accelerates_psbt_id is not None and self.replaces_psbt_id is not None:
            raise ValueError("accelerates_psbt_id: a proposal replaces another one or pays for it, not both")
        if pays and (self.cancel or self.accelerates_psbt_id is not None):
            raise ValueError("recipients: what takes a payment back, or pays for its way, pays nobody else")
        return self

    @model_validator(mode="after")
    def _something_to_send(self) -> "CreatePsbtRequest":
        follows = self.replaces_psbt_id is not None or self.accelerates_psbt_id is not None
        if not self.recipients and self.op_return is None and not follows:
            raise ValueError("recipients: name at least one recipient, or give op_return")
        if self.amounts_sats is not None and len(self.amounts_sats) != len(self.recipients):
            raise ValueError("amounts_sats: give one amount for each recipient, in the same order")
        return self


class CreatePsbtResponse(Shape):
    psbt_id: str
    psbt_base64: str


class CancelPsbtRequest(Request):
    """``POST /api/v1/cancel-psbt``. ``release_coins``: frees what a cancelled proposal keeps because signatures are out."""

    psbt_id: TextId
    workspace_id: IntId
    reason: Text | None = None
    release_coins: bool = False


class CancelPsbtResponse(Shape):
    """``released_signatures``: how many stay valid for whoever kept a copy. ``self_spend_offered``: ``create-psbt`` with
    ``replaces_psbt_id`` and ``cancel`` takes its coins back for good. ``coins_kept``: they stay locked until then.
    """

    psbt_id: str
    status: ProposalStatus
    released_signatures: int
    coins_kept: bool
    self_spend_offered: bool
    detail: str


class SignPsbtRequest(Request):
    """``POST /api/v1/sign-psbt``: either a signed PSBT, or ``decision: "reject"`` with a reason."""

    psbt_id: TextId
    workspace_id: IntId
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
    psbt_id: str
    status: ProposalStatus
    collected_signatures: int
    required_signatures: int
    txid: str | None = None
    # Inputs of ours that still lack this signer's signature, and words about what was changed or not.
    missing_inputs: list[int] = Field(default_factory=list)
    detail: str | None = None


class ProposalSigner(Shape):
    key_id: str
    is_signed: bool
    user_id: str
    signed_at: Timestamp | None = None
    decision: Literal["approve", "reject"] | None = None


class DecodedCall(Shape):
    """What a proposal's own bytes do to a token (CPT-1, docs/tokens.md). Raw units are whole numbers in text.

    ``words`` is the sentence that a signer reads, ``data_hex`` what the device shows. ``ticker`` and the amounts in whole tokens
    are null where the token's bytecode is not known. A signer's machine decodes the PSBT by itself and compares.

    ``whitelist_count`` and ``whitelist_hash``: of a deployment whose bytecode is known, how many addresses it lists from the start, and
    the SHA-256 of that list (docs/tokens.md).
    """

    function: str
    words: str
    data_hex: str
    contract_id: str | None = None
    ticker: str | None = None
    decimals: int | None = None
    amount_raw: str | None = None
    amount: str | None = None
    address: str | None = None
    total_supply_raw: str | None = None
    total_supply: str | None = None
    max_supply_raw: str | None = None
    max_supply: str | None = None
    whitelist_enabled: bool | None = None
    bytecode_hash: str | None = None
    whitelist_count: int | None = None
    whitelist_hash: str | None = None


class Proposal(Shape):
    """``GET /api/v1/psbt``. ``txid`` is null until the transaction was broadcast; ``fee_rate`` is in sat/vB."""

    psbt_id: str
    workspace_id: str
    vault_id: str
    tx_type: TxType
    status: ProposalStatus
    contract_uid: int | None = None
    call_uid: int | None = None
    decoded_call: DecodedCall | None = None
    created_by: str
    description: str | None = None
    psbt_base64: str
    txid: str | None = None
    txid_expected: str
    recipients: list[str]
    amounts_sats: list[int]
    fee_sats: int
    fee_rate: str
    op_return: str | None = None
    contract_ids: list[str] = Field(default_factory=list)
    m: int
    n: int
    signers: list[ProposalSigner]
    collected_signatures: int
    required_signatures: int
    expires_at: Timestamp
    created_at: Timestamp
    updated_at: Timestamp
    confirmations: int
    block_hash: str | None = None
    block_height: int | None = None
    failure_code: str | None = None
    failure_reason: str | None = None
    replaces_psbt_id: str | None = None
    replaced_by_psbt_id: str | None = None
    # Whether create-psbt takes its id in replaces_psbt_id: it waits, and no newer version of it does.
    may_be_replaced: bool = False
