"""Proposals, and PSBTs that a program imports."""

from typing import Annotated, Literal

from pydantic import StringConstraints

from signerd.shapes.account import Answer, Shown
from signerd.shapes.limits import MAX_PSBT_TEXT


class TroubleView(Answer):
    """Why a transaction gets no further: all of it by the platform's word. ``sentence``: what that is and what helps, in this
    machine's words; ``words`` are the platform's own. ``kind``: conflict, double-spent, coin-missing, not-in-mempool, fee-too-low or slow;
    ``advice``: bump, wait, cancel, resend or none. ``since``: RFC 3339 UTC. ``txid``: of the transaction that takes a coin of it, and
    ``psbt_id`` the proposal that that one is of, where it is one.
    """

    kind: str
    advice: str
    sentence: str
    words: Shown
    since: str
    txid: Shown | None = None
    psbt_id: Shown | None = None


class DeclineView(Answer):
    """That a signer declined, by the platform's word; ``at``: RFC 3339 UTC, None where it is not told."""

    by: Shown
    reason: Shown
    at: str | None


class ProposalLine(Answer):
    """A proposal in a list. ``paid_sats`` and ``fee_sats`` are the PSBT's, None where it could not be judged. A message (BIP-322)
    pays nobody, 0, and no fee, None.

    ``title``: in one line what it does, as its bytes and the pinned vault prove it. ``labels``: the names that the person gave to
    those whom it pays (``[addresses]`` of the configuration). ``memo``, ``proposed_by`` and ``proposed_at`` (RFC 3339 UTC, None where
    it is not told) are the platform's words, not believed: show them as such, beside the title and never in it.

    ``imported_by``: it is not the platform's; this app, or the person, imported it. ``from_profile``: it spends the person's own
    money, and no vault's. ``token``: what it does with a token, in a few words; None where it carries none, or bytes have
    not proven which it is. ``trouble``: None where the platform tells of none.

    ``declines``: of all signers, by the platform's word. ``declined``: why the person declined it, which may be empty; None where they did not. ``on_decline``:
    what that does, or would do. ``signed_here``, ``exported_here``: a signature is stored, or the PSBT was given to a device without a cable.
    ``held``: a warning has to be acknowledged before it is approved.
    """

    psbt_id: str
    network: str
    workspace_id: int
    vault_id: str
    vault_name: Shown | None
    state: str
    reason: Shown
    alarm: Shown
    platform_status: str
    collected: int
    required: int
    paid_sats: int | None
    fee_sats: int | None
    imported_by: Shown | None = None
    from_profile: bool = False
    token: str | None = None
    title: str = ""
    labels: tuple[str, ...] = ()
    memo: str = ""
    proposed_by: str = ""
    proposed_at: str | None = None
    trouble: TroubleView | None = None
    declines: tuple[DeclineView, ...] = ()
    declined: Shown | None = None
    on_decline: str = ""
    signed_here: bool = False
    exported_here: bool = False
    held: bool = False


class CoinView(Answer):
    """A coin that is spent; ``amount_sats`` is None where its amount is not proven."""

    txid: str
    vout: int
    amount_sats: int | None


class PaymentView(Answer):
    """``address`` is None where the script has none; ``script`` is hex. ``label``: the person's own name of it.

    ``on_screen``: the address as devices write it, which is what a person compares there. ``pinned``: which address of which vault
    that is pinned here it is, in words, where its script was derived again from that vault; an app is not told.
    """

    output_index: int
    amount_sats: int
    address: str | None
    script: str
    on_screen: str | None = None
    label: str | None = None
    pinned: str | None = None


class ChangeView(Answer):
    """Proven to come back: its script was derived again from the pinned vault. ``chain``: 0 receive, 1 change.

    ``on_screen``: as of a payment.
    """

    output_index: int
    amount_sats: int
    address: str
    chain: int
    index: int
    on_screen: str


class ListedView(Answer):
    """``name``: what this machine knows the address as, in words; None where it does not know it."""

    address: str
    name: str | None


class TokenView(Answer):
    """What a token's payload says: ``sentence`` is what would happen, ``details`` are label and value.

    ``hex`` is the whole payload. ``on_screen``: as much of it as the signer's device prints; None where that is not known.
    ``not_on_screen``: the parts that it does not show whole, by name. ``proven``: the bytes of its deployment prove which token
    it is; else there is no name, and amounts are raw units. Supplies are of the bytecode, in whole tokens: what exists by now
    only the chain knows. ``notes``: what to know before looking at the device.

    ``listed``: of a deployment every address that its bytecode lists from the start, in the order there; ``listed_hash``: the SHA-256
    of that list (docs/understand/tokens.md). No device shows either.
    """

    sentence: Shown
    details: tuple[tuple[Shown, Shown], ...]
    hex: str
    on_screen: str | None = None
    not_on_screen: tuple[str, ...] = ()
    proven: bool = False
    name: Shown | None = None
    ticker: str | None = None
    decimals: int | None = None
    first_supply: str | None = None
    max_supply: str | None = None
    notes: tuple[str, ...] = ()
    listed: tuple[ListedView, ...] = ()
    listed_hash: str | None = None


class DataView(Answer):
    """OP_RETURN data: ``data`` is hex, ``text`` its reading where all of it is printable, ``token`` where it is a token's."""

    output_index: int
    data: str
    text: str | None
    token: TokenView | None = None


class ProofView(Answer):
    """A message that is signed to prove control (BIP-322). ``sentence``: of how many addresses and coins, and at which block by the
    message's own word. ``address``: whose script signs the message; ``on_screen``: as of a payment.
    """

    sentence: str
    message: Shown
    address: str
    on_screen: str


class MoneyView(Answer):
    """Where the money goes, from the PSBT's bytes and the pinned vault alone. ``fee_rate``: sat/vB as decimal text.
    ``total_in_sats``, ``fee_sats`` and ``fee_rate`` are None where the amount of a coin is not proven.

    ``proof``: the bytes prove that it is a message, which moves no money: inputs are the coins that it names, and no fee is paid.
    """

    txid: str
    inputs: int
    total_in_sats: int | None
    payments: tuple[PaymentView, ...]
    change: tuple[ChangeView, ...]
    data: tuple[DataView, ...]
    paid_sats: int
    change_sats: int
    fee_sats: int | None
    fee_rate: str | None
    vsize: int
    version: int
    locktime: int
    replaceable: bool
    coins: tuple[CoinView, ...] = ()
    proof: ProofView | None = None


class CheckView(Answer):
    """``outcome``: allow, warn or refuse. ``acknowledge``: the warning holds the proposal until it is named."""

    name: str
    outcome: str
    sentence: Shown
    acknowledge: bool
    figures: dict[str, Shown | int]


class FigureView(Answer):
    """``value``: as the device writes it. ``pinned``: as of a payment."""

    label: str
    value: Shown
    pinned: str | None = None


class ScreenView(Answer):
    """A screen of the device, by what is to be compared on it."""

    figures: tuple[FigureView, ...]


class ProposalView(ProposalLine):
    """The whole review. ``digest`` covers what is shown; ``allowed``: nothing refuses.

    ``description``, ``created_by``, ``kind`` and ``recorded_*`` are the platform's words, not believed.
    ``money`` is None where the vault is unknown here or a check refuses before the transaction can be judged.
    ``screens``: what the signer's device shows of it, in its order; empty while it is not connected, or where its maker's
    screens are not known. ``outputs_left_out``: how many outputs more it shows than are written there.
    """

    digest: str
    allowed: bool
    to_acknowledge: tuple[str, ...]
    money: MoneyView | None
    checks: tuple[CheckView, ...]
    verification_code: str | None
    kind: str
    description: Shown
    created_by: Shown
    recorded_txid: Shown | None
    confirmations: int
    screens: tuple[ScreenView, ...] = ()
    outputs_left_out: int = 0


class ExportedPsbt(Answer):
    """What a device without a cable is given to sign. ``file_name``: for a card; ``psbt``: base64.

    It counts as signed from now on.
    """

    psbt_id: str
    network: str
    file_name: str
    psbt: str


# RFC 4648, section 4, with padding and without line breaks, so that it has one reading.
PSBT_PATTERN = r"^[A-Za-z0-9+/]+={0,2}$"
PsbtText = Annotated[str, StringConstraints(pattern=PSBT_PATTERN, min_length=8, max_length=MAX_PSBT_TEXT)]


# The version of an answer's PSBT: BIP-174 or BIP-370.
PsbtVersion = Literal["0", "2"]


class PsbtReview(Answer):
    """What would be asked about a PSBT. Nothing is stored.

    ``vault_id`` is None where its coins are no pinned vault's. ``allowed``: nothing refuses; what refuses is in ``checks``.
    ``proposal_id``: the platform proposes this very transaction, and the person is asked about that proposal only.
    ``title``: as of a proposal; an app is told none of the person's own names of addresses.
    """

    network: str
    vault_id: str | None
    vault_name: Shown | None
    allowed: bool
    to_acknowledge: tuple[str, ...]
    money: MoneyView | None
    checks: tuple[CheckView, ...]
    proposal_id: str | None
    title: str = ""


class ImportedLine(Answer):
    """A PSBT that was imported. ``expires_at``: RFC 3339 UTC, until when the person may decide. ``state``: as a proposal's."""

    psbt_id: str
    network: str
    imported_by: Shown
    state: str
    reason: Shown
    vault_id: str | None
    vault_name: Shown | None
    paid_sats: int | None
    fee_sats: int | None
    expires_at: str


class ImportedView(ImportedLine):
    """``review``: what the person is shown now. ``signed_psbt`` (base64): with this device's signatures, once they are there,
    and all that came with any copy.

    ``final``: the complete transaction as hex, where its signatures are enough; signerd does not send it. ``is_new``: this very call imported it; another one may wait for it otherwise.
    """

    review: PsbtReview
    is_new: bool = False
    signed_psbt: str | None
    final: str | None
