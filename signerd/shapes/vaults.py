"""Devices, their registration and questions; vaults, their pins, tokens and addresses; accounts."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from custody.schemas.history import CursorText
from signerd.shapes.account import Answer, Descriptor, Id, LoopbackRequest, Shown
from signerd.shapes.limits import CHANGE, MAX_INDEX, MOST_MOVEMENTS, RECEIVE


class AdvisoryView(Answer):
    """A known flaw of a device's firmware (S22). ``severity``: "stop-using" or "warn"; ``sources``: where to read on."""

    id: str
    date: str
    severity: str
    text: str
    advice: str
    sources: tuple[str, ...]


class DeviceView(Answer):
    """``advice`` says what to do where the device is not ready; ``label`` and ``firmware`` are the device's own words;
    ``name`` is the label, else the model.
    ``emulator``: it is a program at an address, not a thing on the bus.

    ``advisories``: what is known to be wrong with its firmware, the worst first.
    """

    id: str
    family: str
    name: Shown
    model: Shown
    label: Shown | None
    endpoint: Shown
    state: str
    fingerprint: str | None
    emulator: bool
    detail: Shown | None
    advice: str | None
    firmware: Shown | None = None
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
    device: Shown
    fingerprint: str
    keys: tuple[KeyView, ...]
    digest: str
    firmware: Shown | None = None
    advisories: tuple[AdvisoryView, ...] = ()
    notes: tuple[str, ...] = ()


# A Coldcard's largest export has about 5 kB; a device has a few.
ExportText = Annotated[str, StringConstraints(min_length=1, max_length=16_384)]

Exports = Annotated[tuple[ExportText, ...], Field(min_length=1, max_length=16)]

Challenge = Annotated[str, StringConstraints(pattern=r"^Register signing key [ -~]+$", max_length=240)]

SignatureText = Annotated[str, StringConstraints(min_length=1, max_length=4_096)]


class AirgapChallenge(Answer):
    """One line that the device signs at ``path``, within ten minutes. ``file``: the same as a file that a Coldcard signs."""

    challenge: str
    path: str
    file_name: str
    file: str


class Registered(Answer):
    key_id: Shown
    network: str
    fingerprint: str
    label: str


# A Trezor accepts 50 bytes of passphrase, and a PIN has at most 50 places; the device enforces its own limit.
AnswerText = Annotated[str, StringConstraints(max_length=200)]


class QuestionView(Answer):
    """An open question. ``kind``: "pin", "passphrase", "password" or "pairing"; ``text``: what the device told before it asked.

    A PIN is answered with the places of its digits in the matrix on the device, 7 8 9 above 4 5 6 above 1 2 3. A pairing is
    answered with any text once the code in ``text`` stands on the device, and with null else.
    """

    id: Id
    device_id: str
    device: str
    kind: str
    text: str
    seconds_left: int


class UnlockStep(Answer):
    """Where an unlocking is. ``question``: what is to be answered next, where the state is "asks".

    ``text``: what the device does or waits for. ``device``: as it is now, where the state is "unlocked".
    """

    device_id: str
    state: Literal["asks", "works", "unlocked"]
    text: str = ""
    question: QuestionView | None = None
    device: DeviceView | None = None


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
    the pinned vault now, where that is another name. ``cosigners`` is empty for an app that may not read keys.
    ``first_on_screen``: the first address as devices write it, which is what a person compares there. ``descriptor``: with
    its checksum (BIP-380), where ``cosigners`` is given.
    """

    vault_id: str
    workspace_id: int
    name: Shown
    network: str
    threshold: int | None
    signers: int | None
    first_address: str | None
    verification_code: str | None
    account: int | None
    pinned: bool
    enrolled: bool
    fault: Shown | None
    address_shown: bool = False
    cosigners: tuple[CosignerView, ...] = ()
    changes: tuple[Shown, ...] = ()
    renamed: Shown | None = None
    first_on_screen: str | None = None
    descriptor: str | None = None


class ImportedQuorum(LoopbackRequest):
    """A vault that the person has from elsewhere, as its descriptor with checksum; what read it proved it to be whole.

    ``source``: a file (a descriptor, or a record of BIP-129), or the account keys of a PSBT.
    """

    source: Literal["file", "psbt"]
    descriptor: Descriptor


class PinPreview(Answer):
    """What would be pinned, to be compared by the person; ``advice``: with whom, and how. Nothing was changed.

    ``source``: "record", "file" or "psbt"; whichever it is, the platform's record says the same.
    """

    vault: VaultView
    source: str
    advice: tuple[str, ...]


Compared = Literal["same", "another"]

# The values of ``firmware_bridge.airgap.EnrolmentForm``.
EnrolmentForm = Literal["coldcard", "descriptor", "bsms"]


class EnrolmentFile(Answer):
    """By which a device without a cable knows a vault. ``first_address``: as its screen writes it, to be compared there."""

    vault_id: str
    network: str
    first_address: str
    file_name: str
    text: str


class DeviceRegistration(Answer):
    """A Ledger's own proof that its owner has approved the policy under ``name``: with it, no program has to ask again."""

    fingerprint: str
    name: str
    hmac: str


class VaultPolicy(Answer):
    """A pinned vault as BIP-388 writes it. ``registrations``: what Ledgers returned for this template and these keys, on this machine.

    ``caravan``: Caravan's file with them, those of the first one's name.
    """

    name: str
    template: str
    keys: tuple[str, ...]
    registrations: tuple[DeviceRegistration, ...]
    caravan: str


class HoldingView(Answer):
    """``balance`` and ``supply`` in whole tokens, in the decimals that the platform gives. ``contract`` None: not deployed yet.

    ``proven``: this machine has proven the contract's bytecode, and the name and decimals are its; the balance never is.
    """

    contract: Shown | None
    name: Shown
    balance: str
    supply: str
    owned: bool
    proven: bool


class TokenCallView(Answer):
    """``arguments``: as they were asked for, amounts in raw units."""

    uid: int
    function: str
    arguments: tuple[Shown, ...]
    status: str
    created_at: Shown
    psbt_id: Shown
    failure: Shown | None


class VaultTokens(Answer):
    """What the platform says that a vault holds, and its newest calls first. ``more``: there are older calls, or more tokens."""

    vault_id: str
    network: str
    holdings: tuple[HoldingView, ...]
    calls: tuple[TokenCallView, ...]
    more: bool


# An address costs some 0.25 ms per cosigner: fifty of a vault of fifteen take a fifth of a second.
MAX_ADDRESSES = 50

# Trezor warns of BIP-48 and BIP-84 accounts above 100 (core/src/apps/common/paths.py).
MAX_ACCOUNT = 100

Cursor = CursorText

MovementSearch = Annotated[str, StringConstraints(strip_whitespace=True, max_length=100)]

MovementCount = Annotated[int, Field(ge=1, le=MOST_MOVEMENTS)]

Chain = Annotated[int, Field(ge=RECEIVE, le=CHANGE)]

Index = Annotated[int, Field(ge=0, le=MAX_INDEX)]

Count = Annotated[int, Field(ge=1, le=MAX_ADDRESSES)]

AccountNumber = Annotated[int, Field(ge=0, le=MAX_ACCOUNT)]


class AccountKeys(Answer):
    """Keys of standard accounts: BIP-48 P2WSH for vaults, BIP-84 for the profile. ``fingerprint``: None where there are none."""

    network: str
    fingerprint: str | None
    keys: tuple[KeyView, ...]


class AddressView(Answer):
    """``chain``: 0 for receiving, 1 for change. ``on_screen``: as devices write it, to be compared there."""

    chain: int
    index: int
    address: str
    on_screen: str


class AddressPage(Answer):
    """``vault_id``: None for the profile. ``fault``: why nothing should be sent there before the person has looked."""

    network: str
    vault_id: str | None
    name: Shown
    addresses: tuple[AddressView, ...]
    fault: str | None = None


class VaultFunds(Answer):
    """What the platform says that a pinned vault holds, each None where it could not be asked, and where to be paid next.

    ``unconfirmed_sats``: on their way to the vault or within it; ``locked_sats``: in proposals that are not decided. ``fresh``: the
    first receive address of which no use is known, derived here; those below it were used, or given out. ``note``: what to know first.
    ``fault``: as of an ``AddressPage``.
    """

    vault_id: str
    network: str
    confirmed_sats: int | None
    unconfirmed_sats: int | None
    locked_sats: int | None
    fresh: AddressView
    note: str | None = None
    fault: str | None = None


class MovementView(Answer):
    """A transaction that came into a vault or left it, by the platform's word. ``amount_sats``: what it brought, below zero
    what it took, the fee included. ``kind``: deposit, forward, payment, consolidation, token, or outside, which spends the
    vault's coins and was not proposed. ``at``: RFC 3339 UTC. ``height`` and ``balance_sats``, the balance after it, are None
    until it confirms. ``memo``: the proposal's description. ``names``: of whom it pays, by the person's own labels;
    ``platform_names``: by the platform's word, where there is no own one.

    ``psbt_id`` and ``title``: of the proposal that this machine knows it as; what it took is then read from its bytes.
    """

    txid: Shown
    kind: str
    at: str
    height: int | None
    amount_sats: int
    fee_sats: int | None
    balance_sats: int | None
    names: tuple[str, ...] = ()
    platform_names: tuple[str, ...] = ()
    memo: str = ""
    psbt_id: str | None = None
    title: str | None = None


class VaultMovements(Answer):
    """A page, the newest first; ``next``: the ``cursor`` of the next one, None at the end. It may be shorter than asked for where
    a filter leaves much out. ``left_out``: entries that could not be read.
    """

    vault_id: str
    network: str
    movements: tuple[MovementView, ...]
    next: str | None
    left_out: int = 0


class AddressShown(AddressView):
    """The device has shown this address, which is the one that this machine derives.

    ``on_screen``: as this device writes it; most know no form of regtest's own.
    """

    network: str
    device_id: str
