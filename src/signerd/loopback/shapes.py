"""What the daemon answers, and what it takes, under ``/v1``. Amounts are whole satoshis; the network is always there.

Text that came from the platform or a device is cleaned by ``views`` before it gets here; what a terminal or a page
shows is cleaned again where it is shown.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

# The platform's ids, the devices' and the checks' names all fit; nothing in them splits a path or a line.
ID_PATTERN = r"^[A-Za-z0-9_-]{1,100}$"
Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
# A verification code as people type it, with or without its dashes.
Code = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
# What ``multisig`` reads of a descriptor at most.
Descriptor = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_096)]
# The platform's bound on a reason.
Reason = Annotated[str, StringConstraints(strip_whitespace=True, max_length=1_000)]
# There are fewer than twenty checks.
Acknowledged = Annotated[frozenset[Id], Field(max_length=50)]


class Answer(BaseModel):
    """Frozen; an older client passes over what a newer daemon adds."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Request(BaseModel):
    """An unknown field is a mistake that must not pass in silence. What was sent is not repeated in errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Status(Answer):
    """``position``: the number of the newest line of the feed, to follow from. ``notes``: what needs attention."""

    version: str
    network: str
    state_folder: str
    platform_url: str
    email: str | None
    signed_in: bool
    platform_reachable: bool
    secrets: str
    fingerprint: str | None
    devices_ready: int
    vaults_pinned: int
    waiting_for_you: int
    journal_entries: int
    journal_head: str
    position: int
    notes: tuple[str, ...] = ()


class SignedIn(Answer):
    """``code_needed``: a one-time code is wanted, the mailed one or the authenticator's; go on with it."""

    email: str
    code_needed: bool
    secrets: str


class SignInRequest(Request):
    email: Annotated[str, StringConstraints(min_length=3, max_length=320)]
    password: Annotated[str, StringConstraints(min_length=1, max_length=1_000)] = Field(repr=False)


class CodeRequest(Request):
    code: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=40)] = Field(
        repr=False
    )


class AdvisoryView(Answer):
    """A known flaw of a device's firmware (S22). ``severity``: "stop-using" or "warn"; ``sources``: where to read on."""

    id: str
    severity: str
    text: str
    advice: str
    sources: tuple[str, ...]


class DeviceView(Answer):
    """``advice`` says what to do where the device is not ready; ``label`` and ``firmware`` are the device's own words.

    ``advisories``: what is known to be wrong with its firmware, the worst first.
    """

    id: str
    family: str
    model: str
    label: str | None
    endpoint: str
    state: str
    fingerprint: str | None
    virtual: bool
    detail: str | None
    advice: str | None
    firmware: str | None = None
    advisories: tuple[AdvisoryView, ...] = ()


class KeyView(Answer):
    """``purpose``: "vault" or "profile"; ``path`` starts with ``m/``."""

    purpose: str
    account: int
    path: str
    xpub: str


class RegistrationPreview(Answer):
    """What the device gives and would be registered; ``digest`` is what the person's yes is bound to.

    ``advisories`` are known flaws of its firmware, ``notes`` what else to know before it is trusted with keys.
    """

    network: str
    device_id: str
    device: str
    fingerprint: str
    keys: tuple[KeyView, ...]
    digest: str
    firmware: str | None = None
    advisories: tuple[AdvisoryView, ...] = ()
    notes: tuple[str, ...] = ()


class RegisterRequest(Request):
    """``replace``: put these keys in the place of those that the account has registered before."""

    device_id: Id
    digest: Digest
    replace: bool = False


class Registered(Answer):
    key_id: str
    network: str
    fingerprint: str
    label: str


class CosignerView(Answer):
    """A key of a vault. ``fingerprint`` is a label only: anybody can make a key that bears it (BIP-129).

    ``ours``: it is exactly a registered key of this signer's device.
    """

    fingerprint: str
    path: str
    xpub: str
    ours: bool


class VaultView(Answer):
    """A vault as it was pinned, else as the platform shows it, read by this machine.

    ``fault``: why it cannot be pinned or used. The figures are None where its descriptor cannot be read. ``account``: that
    of our own key in it. ``address_shown``: the device has shown the same first address. ``changes``: in what the platform
    has shown the pinned vault otherwise, until the person has looked and unpinned it. ``renamed``: what the platform calls
    the pinned vault now, where that is another name.
    """

    vault_id: str
    workspace_id: int
    name: str
    network: str
    threshold: int | None
    signers: int | None
    first_address: str | None
    verification_code: str | None
    account: int | None
    pinned: bool
    enrolled: bool
    fault: str | None
    address_shown: bool = False
    cosigners: tuple[CosignerView, ...] = ()
    changes: tuple[str, ...] = ()
    renamed: str | None = None


class BroughtQuorum(Request):
    """A vault that the person has from elsewhere, as its descriptor with checksum; what read it proved it to be whole.

    ``source``: a file (a descriptor, or a record of BIP-129), or the account keys of a PSBT.
    """

    source: Literal["file", "psbt"]
    descriptor: Descriptor


class PinPreviewRequest(Request):
    brought: BroughtQuorum | None = None


class PinPreview(Answer):
    """What would be pinned, to be compared by the person; ``advice``: with whom, and how. Nothing was changed.

    ``source``: "record", "file" or "psbt"; whichever it is, the platform's record says the same.
    """

    vault: VaultView
    source: str
    advice: tuple[str, ...]


class PinRequest(Request):
    """``code``: typed by the person. ``without_device_address``: pin though the device does not show the first address."""

    code: Code
    brought: BroughtQuorum | None = None
    without_device_address: bool = False


class UnpinRequest(Request):
    """``code``: that under which the vault was pinned."""

    code: Code


class ProposalLine(Answer):
    """A proposal in a list. ``paid_sats`` and ``fee_sats`` are the PSBT's, None where it could not be judged."""

    psbt_id: str
    network: str
    workspace_id: int
    vault_id: str
    vault_name: str | None
    state: str
    reason: str
    alarm: str
    platform_status: str
    collected: int
    required: int
    paid_sats: int | None
    fee_sats: int | None


class PaymentView(Answer):
    """``address`` is None where the script has none; ``script`` is hex."""

    output_index: int
    amount_sats: int
    address: str | None
    script: str


class ChangeView(Answer):
    """Proven to come back: its script was derived again from the pinned vault. ``chain``: 0 receive, 1 change."""

    output_index: int
    amount_sats: int
    address: str
    chain: int
    index: int


class TokenView(Answer):
    """What a token's payload says: ``sentence`` is what would happen, ``details`` are label and value.

    ``hex`` is the whole payload, digit for digit as a device prints it.
    """

    sentence: str
    details: tuple[tuple[str, str], ...]
    hex: str


class DataView(Answer):
    """OP_RETURN data: ``data`` is hex, ``text`` its reading where all of it is printable, ``token`` where it is a token's."""

    output_index: int
    data: str
    text: str | None
    token: TokenView | None = None


class MoneyView(Answer):
    """Where the money goes, from the PSBT's bytes and the pinned vault alone. ``fee_rate``: sat/vB as decimal text."""

    txid: str
    inputs: int
    total_in_sats: int
    payments: tuple[PaymentView, ...]
    change: tuple[ChangeView, ...]
    data: tuple[DataView, ...]
    paid_sats: int
    change_sats: int
    fee_sats: int
    fee_rate: str
    vsize: int
    locktime: int
    replaceable: bool


class CheckView(Answer):
    """``outcome``: allow, warn or refuse. ``acknowledge``: the warning holds the proposal until it is named."""

    name: str
    outcome: str
    sentence: str
    acknowledge: bool
    figures: dict[str, str | int]


class ProposalView(ProposalLine):
    """The whole review. ``digest`` covers what is shown; ``allowed``: nothing refuses.

    ``description``, ``created_by``, ``kind`` and ``recorded_*`` are the platform's words, not believed.
    ``money`` is None where the vault is unknown here or a check refuses before the transaction can be judged.
    """

    digest: str
    allowed: bool
    to_acknowledge: tuple[str, ...]
    money: MoneyView | None
    checks: tuple[CheckView, ...]
    verification_code: str | None
    kind: str
    description: str
    created_by: str
    recorded_txid: str | None
    confirmations: int
    signed_here: bool


class ApproveRequest(Request):
    digest: Digest
    acknowledged: Acknowledged = frozenset()


class RejectRequest(Request):
    reason: Reason = ""


class AuditReport(Answer):
    """``fault`` is None where every entry follows from the one before; else ``at`` is the place of the first fault.

    Writing ``entries`` and ``head`` down elsewhere shows a tail that was cut off.
    """

    entries: int
    head: str
    at: int | None
    fault: str | None


class Happened(Answer):
    """A line of the feed. ``subject``: a proposal, a vault, a device or "registration".

    ``kind``: ask, progress, device, info, attention, alarm, or state, where ``text`` is the proposal's new state.
    """

    number: int
    subject: str
    kind: str
    text: str
