"""Tokens: their records, the calls on them, what vaults hold, and who may receive them (CPT-1,
docs/understand/tokens.md).
"""

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr, StringConstraints, model_validator

from custody.schemas.call import (
    VAULT_READERS,
    VAULT_VIEWERS,
    WORKSPACE_MANAGERS,
    Call,
    PermissionName,
    Way,
    many,
    pages,
)
from custody.schemas.common import (
    MAX_INT64,
    ApiNetwork,
    Count,
    Few,
    Int64,
    IntId,
    Label,
    Many,
    Name,
    PageSize,
    Priority,
    Prose,
    QueryId,
    Request,
    Shape,
    TextId,
    Timestamp,
    TransactionHex,
    VaultQuery,
    VaultRequest,
    WorkspaceQuery,
    WorkspaceRequest,
    is_absent,
)
from custody.schemas.errors import ErrorCode
from custody.schemas.proposals import ADDRESS_CHARACTERS, AddressText, CreatePsbtResponse, PsbtPreview

# A thousand addresses is what a bytecode lists; more are added by calls.
MAX_FIRST_WHITELIST = 1_000
MAX_RECORDED_RECIPIENTS = 100

# Raw units in decimal digits: no sign, no exponent, no separator (P21). Whether it fits is the token's own
# rule.
RawUnits = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]{0,39})$"), Field(examples=["100000"])]
# The canonical JSON of a deployment is at most 80,000 bytes (docs/understand/tokens.md).
BytecodeText = Annotated[str, StringConstraints(max_length=80_000)]


class ContractStatus(StrEnum):
    PENDING = "PENDING"
    BROADCASTING = "BROADCASTING"
    CONFIRMED = "CONFIRMED"
    FAILED = "FAILED"


class CallStatus(StrEnum):
    PENDING = "PENDING"
    STALLED = "STALLED"
    BROADCASTING = "BROADCASTING"
    CONFIRMED = "CONFIRMED"
    FAILED = "FAILED"


FunctionName = Literal[
    "transfer",
    "mint",
    "burn",
    "pause",
    "unpause",
    "transfer_ownership",
    "enable_whitelist",
    "disable_whitelist",
    "add_to_whitelist",
    "remove_from_whitelist",
    "init",
]


class CreateTokenRequest(VaultRequest):
    """Supplies are raw units; ``white_list_ids`` are ``uid``s of the address book."""

    token_name: Name
    ticker: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=12)]
    icon: Annotated[str, StringConstraints(strip_whitespace=True, max_length=512)]
    decimals_num: Annotated[StrictInt, Field(ge=0, le=MAX_INT64)]
    total_supply: RawUnits
    max_supply: RawUnits
    whitelist_enabled: StrictBool
    network: ApiNetwork
    priority: Priority | None = None
    white_list_ids: Annotated[list[IntId], Field(max_length=MAX_FIRST_WHITELIST)] | None = None


class CreateTokenResponse(CreatePsbtResponse):
    contract_uid: Int64


class TextArg(Request):
    """A text, such as an address."""

    type: Literal["str"]
    value: Annotated[StrictStr, StringConstraints(max_length=ADDRESS_CHARACTERS)]


class NumberArg(Request):
    """An exact whole number, such as an amount of raw units: a bool or a fraction is refused."""

    type: Literal["int"]
    value: Annotated[StrictInt, Field(ge=0, le=MAX_INT64)]


CallArg = Annotated[TextArg | NumberArg, Field(discriminator="type")]


class CallContractRequest(WorkspaceRequest):
    """``wallet_id``: the vault that calls. ``recipients`` are recorded on the proposal and change nothing."""

    contract_uid: IntId
    wallet_id: TextId
    function_name: FunctionName
    args: Annotated[list[CallArg], Field(max_length=2)]
    recipients: Annotated[list[AddressText], Field(max_length=MAX_RECORDED_RECIPIENTS)] | None = None
    priority: Priority | None = None


class CallContractResponse(CreatePsbtResponse):
    call_uid: Int64


class ContractWhitelistRequest(WorkspaceRequest):
    contract_uid: IntId
    wallet_id: TextId
    address: AddressText
    priority: Priority | None = None


class ResubmitCallRequest(WorkspaceRequest):
    call_uid: IntId


class ResubmitCallResponse(Shape):
    txid: Label
    status: CallStatus


class ContractQuery(WorkspaceQuery):
    contract_uid: QueryId


class WorkspaceContractsQuery(WorkspaceQuery):
    """``after`` is the last ``contract_uid`` seen."""

    after: QueryId | None = None
    limit: PageSize | None = None


class ContractsQuery(WorkspaceContractsQuery):
    vault_id: TextId


class WorkspaceWhitelistQuery(WorkspaceQuery):
    """Of all tokens, or of one."""

    contract_uid: QueryId | None = None


class ContractCallsQuery(WorkspaceQuery):
    """Of a token, of a vault, or of both, in the ``order`` asked for; ``after`` is the last ``UID`` seen."""

    contract_uid: QueryId | None = None
    vault_id: TextId | None = None
    order: Literal["newest", "oldest"] = "oldest"
    after: QueryId | None = None
    limit: PageSize = 100

    @model_validator(mode="after")
    def _of_something(self) -> "ContractCallsQuery":
        if self.contract_uid is None and self.vault_id is None:
            raise ValueError("give contract_uid for a token's calls, or vault_id for a vault's")
        return self


class ContractSigner(Shape):
    key_id: Label
    is_signed: bool
    user_id: Label


class TokenState(Shape):
    """What a token is after the last block that was read. ``started``: ``init`` has run. ``owner_address``: null for a token
    that another workspace made.
    """  # noqa: E501

    started: bool
    paused: bool
    whitelist_on: bool
    owner_address: Label | None


class Contract(Shape):
    """The specification's token record. What the deployment gives is null until it was broadcast.

    Of a token that another workspace made, ``vault_id`` is the vault here that owns it, or holds some; without ``deploy_psbt_id`` and
    ``signers``, which are the maker's.

    ``total_supply`` is what exists by now; before ``init``, what ``init`` makes.

    ``bytecode`` is the canonical JSON that the deployment commits to by hash; ``deployment_hex`` the transaction that does: with
    both, anybody proves the token from bytes alone. Both only where one contract is asked for, and so is ``state``, which is
    absent until the index of tokens has read the deployment.
    """  # noqa: E501

    contract_uid: Int64
    vault_id: Label
    contract_id: Label | None
    symbol: Label
    icon: Prose
    decimals: Count
    total_supply: Label
    max_supply: Label
    status: ContractStatus
    bytecode_hash: Label | None
    network: Label | None
    deploy_psbt_id: Label | None
    whitelist_enabled: bool
    signers: Few[ContractSigner]
    name: Label = ""
    bytecode: BytecodeText | None = None
    deployment_hex: TransactionHex | None = None
    state: TokenState | None = Field(default=None, exclude_if=is_absent)


class TokenBalance(Shape):
    """What a vault holds of one token, in raw units. ``owned``: the vault owns the contract, and may mint and burn.

    ``total_supply`` is what exists by now: nothing before ``init``, and more or less with each mint and burn.
    """  # noqa: E501

    contract_uid: Int64
    contract_address: Label
    name: Label
    balance: Label
    decimals: Count
    icon: Prose
    owned: bool
    total_supply: Label
    max_supply: Label


class ContractCall(Shape):
    """One call on a token. ``Status`` FAILED with a ``FailureReason`` where it was mined and a rule gave it no effect."""  # noqa: E501

    uid: Int64 = Field(alias="UID")
    status: CallStatus = Field(alias="Status")
    contract_uid: Int64 = Field(alias="ContractUID")
    wallet_id: Label = Field(alias="WalletID")
    function_name: FunctionName = Field(alias="FunctionName")
    args: Few[CallArg] = Field(alias="Args")
    psbt_id: Label = Field(alias="PsbtID")
    tx_id: Label | None = Field(alias="TxID")
    failure_reason: Prose | None = Field(alias="FailureReason")
    created_by: Label = Field(alias="CreatedBy")
    created_at: Timestamp = Field(alias="CreatedAt")
    updated_at: Timestamp = Field(alias="UpdatedAt")
    confirmed_at: Timestamp | None = Field(alias="ConfirmedAt")


class ListedAddress(Shape):
    """``name``: the address book's, empty where it has none."""

    address: Label
    name: Label


class ContractWhitelist(Shape):
    """Who may receive one token. ``error``: why the list cannot be told; the addresses are then empty."""

    contract_uid: Int64
    symbol: Label
    name: Label
    vault_id: Label
    vault_name: Label
    addresses: Many[ListedAddress]
    error: Prose | None = None


class WhitelistedAddress(Shape):
    address: Label
    name: Label
    contract_uids: Many[Int64]


class VaultError(Shape):
    vault_id: Label
    error: Prose


class WorkspaceWhitelist(Shape):
    """By token, and by address."""

    contracts: Many[ContractWhitelist]
    aggregate: Many[WhitelistedAddress]
    vault_errors: Many[VaultError]

    @model_validator(mode="after")
    def _aggregate_is_of_the_contracts(self) -> "WorkspaceWhitelist":
        known = {contract.contract_uid for contract in self.contracts}
        if any(uid not in known for entry in self.aggregate for uid in entry.contract_uids):
            raise ValueError("aggregate: it names a contract that is not listed")
        return self


class TokenHistoryQuery(VaultQuery):
    """Of all tokens, or of one by ``contract_uid``. ``cursor`` is the last answer's ``next_cursor``."""

    contract_uid: QueryId | None = None
    order: Literal["newest", "oldest"] = "newest"
    cursor: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,10}\.[0-9]{1,10}$")] | None = None
    limit: PageSize = 100


class TokenMovement(Shape):
    """What a mined transaction did to what the vault holds of a token. Amounts in whole tokens by its ``decimals``, and raw.

    ``amount`` has a minus where the vault gave away. ``holding`` is what the vault holds of the token after it. ``function`` is
    what was called: ``transfer``, ``mint``, ``burn``, ``init``.
    """  # noqa: E501

    txid: Label
    function: Label
    contract_uid: Int64
    contract_address: Label
    name: Label
    ticker: Label
    decimals: Count
    amount: Label
    amount_raw: Label
    holding: Label
    holding_raw: Label
    height: Count
    at: Timestamp
    confirmations: Count


class TokenHistory(Shape):
    """A page; ``next_cursor`` is null at the end."""

    vault_id: Label
    movements: Few[TokenMovement]
    next_cursor: Label | None


# A transfer needs PAYMENT_INIT, everything else MANAGE_WORKSPACE: checked when the function is known.
CALLERS: Final = WORKSPACE_MANAGERS | {PermissionName.PAYMENT_INIT}
_PAYING: Final = (
    ErrorCode.BACKEND_UNAVAILABLE, ErrorCode.INSUFFICIENT_FUNDS, ErrorCode.LOCKED_FUNDS,
    ErrorCode.NOT_IN_ADDRESS_BOOK, ErrorCode.POLICY_UNAVAILABLE, ErrorCode.ROLE_LIMIT_EXCEEDED,
    ErrorCode.STATE_CONFLICT, ErrorCode.TOKEN_COIN_MISSING, ErrorCode.VAULT_FROZEN,
    ErrorCode.VAULT_LIMIT_EXCEEDED,
)  # fmt: skip
_CALLING: Final = (*_PAYING, ErrorCode.DEPLOYMENT_NOT_CONFIRMED, ErrorCode.WRONG_NETWORK_ADDRESS)
_PROGRAM: Final = frozenset({Way.PROGRAM})
CONTRACT = Call(
    "GET", "/api/v1/contract", ContractQuery, Contract,
    "One token, with its bytecode and, once it was broadcast, the transaction that deploys it: anybody "
    "proves it from these.\n\n"
    "Of another workspace's token, which a vault here holds or owns, only what is public.",
    VAULT_VIEWERS, attempt="see the tokens", open_to=_PROGRAM | {Way.SIGNER},
)  # fmt: skip
CONTRACTS = Call(
    "GET", "/api/v1/contracts", ContractsQuery, many(Contract),
    "The tokens that were made from a vault, live or still collecting approvals, the oldest first.",
    VAULT_VIEWERS, attempt="see the tokens", open_to=_PROGRAM,
)  # fmt: skip
WORKSPACE_CONTRACTS = Call(
    "GET", "/api/v1/workspace-contracts", WorkspaceContractsQuery, many(Contract),
    "The same of all the workspace's vaults.",
    VAULT_VIEWERS, attempt="see the tokens", open_to=_PROGRAM,
)  # fmt: skip
CONTRACT_CALLS = Call(
    "GET", "/api/v1/contract-calls", ContractCallsQuery, pages(ContractCall, by="uid"),
    "The workspace's calls on a token or from a vault, the oldest or the newest first. A mined call "
    "without effect is FAILED, with the rule in words.",
    VAULT_READERS, attempt="see the tokens", open_to=_PROGRAM | {Way.SIGNER},
)  # fmt: skip
TOKENS = Call(
    "GET", "/api/v1/get-tokens", VaultQuery, many(TokenBalance),
    "What a vault holds of tokens, and which of them it owns, by the blocks that were read.",
    VAULT_VIEWERS, attempt="see the tokens", open_to=_PROGRAM | {Way.SIGNER},
    refuses=(ErrorCode.BACKEND_UNAVAILABLE,),
)  # fmt: skip
WORKSPACE_WHITELIST = Call(
    "GET", "/api/v1/get-workspace-whitelist", WorkspaceWhitelistQuery, WorkspaceWhitelist,
    "Who may receive the workspace's tokens while their whitelists are on: the owner, and every address on "
    "the list on chain.",
    CALLERS, attempt="see the tokens", open_to=_PROGRAM,
)  # fmt: skip
RESUBMIT_CONTRACT_CALL = Call(
    "POST", "/api/v1/contract-calls/resubmit", ResubmitCallRequest, ResubmitCallResponse,
    "Offers the final transaction of a stalled call to the network once more; nothing is signed again. The "
    "answer waits a\nmoment for what comes of it.",
    WORKSPACE_MANAGERS, attempt="send the call of a token again", open_to=_PROGRAM, repeatable=True,
    refuses=(ErrorCode.CALL_NOT_STALLED,),
)  # fmt: skip
CREATE_TOKEN = Call(
    "POST", "/api/v1/create-token", CreateTokenRequest, CreateTokenResponse,
    "Records a token and proposes its deployment from the vault, whose address is its owner. Nothing is "
    "signed and nothing\nreaches the network.",
    WORKSPACE_MANAGERS, creates=True, attempt="make a token", open_to=_PROGRAM, refuses=_PAYING,
)  # fmt: skip
CALL_CONTRACT = Call(
    "POST", "/api/v1/call-contract", CallContractRequest, CallContractResponse,
    "Proposes a call of a token's function by a vault. What could only fail, behind the calls that wait, is "
    "refused with the\nrule that it would break. PAYMENT_INIT for transfer, MANAGE_WORKSPACE for all else.",
    CALLERS, creates=True, attempt="call a token", open_to=_PROGRAM,
    refuses=(*_CALLING, ErrorCode.ALREADY_PAUSED, ErrorCode.NOT_PAUSED),
)  # fmt: skip
PREVIEW_CALL = Call(
    "POST", "/api/v1/preview-call", CallContractRequest, PsbtPreview,
    "What ``call-contract`` would make of the same request now: coins, change, fee, and what the limits "
    "leave. It stores\nand reserves nothing, and refuses what that call refuses.",
    CALLERS, reads=True, attempt="preview a call of a token", open_to=_PROGRAM,
    refuses=(*_CALLING, ErrorCode.ALREADY_PAUSED, ErrorCode.NOT_PAUSED),
)  # fmt: skip
ADD_TO_CONTRACT_WHITELIST = Call(
    "POST", "/api/v1/add-to-contract-whitelist", ContractWhitelistRequest, CallContractResponse,
    "As call-contract with add_to_whitelist and the address.",
    WORKSPACE_MANAGERS, creates=True, attempt="change who may receive a token",
    open_to=_PROGRAM, refuses=_CALLING,
)  # fmt: skip
REMOVE_FROM_CONTRACT_WHITELIST = Call(
    "POST", "/api/v1/remove-from-contract-whitelist", ContractWhitelistRequest, CallContractResponse,
    "As call-contract with remove_from_whitelist and the address.",
    WORKSPACE_MANAGERS, creates=True, attempt="change who may receive a token",
    open_to=_PROGRAM, refuses=_CALLING,
)  # fmt: skip
TOKEN_HISTORY = Call(
    "GET", "/api/v1/token-history", TokenHistoryQuery, TokenHistory,
    "What a vault received of tokens and gave away, with what it held after each. Follow ``next_cursor``.",
    VAULT_VIEWERS, attempt="see the tokens", open_to=_PROGRAM, refuses=(ErrorCode.BACKEND_UNAVAILABLE,),
)  # fmt: skip
