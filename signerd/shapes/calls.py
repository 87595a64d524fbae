"""Every call of the loopback, written once: the daemon's routes are registered by it, and the client sends by
it.
"""

from dataclasses import dataclass
from types import NoneType
from typing import Final, Generic, TypeVar

from signerd.callers import Right
from signerd.endpoint import DEVICE_SECONDS, PERSON_SECONDS, QUICK_SECONDS
from signerd.shapes import (
    AccountKeys,
    AddressPage,
    AddressShown,
    AppView,
    AuditPage,
    AuditReport,
    BroughtLine,
    BroughtView,
    Collected,
    DeviceView,
    Me,
    OpenPairing,
    OriginView,
    PageEntry,
    Pairing,
    PinPreview,
    ProposalLine,
    ProposalView,
    PsbtReview,
    QuestionView,
    Registered,
    RegistrationPreview,
    SettingsView,
    SignedIn,
    Status,
    UnlockStep,
    VaultTokens,
    VaultView,
)
from signerd.shapes.proposals import MAX_PSBT_BODY

R = TypeVar("R")


@dataclass(frozen=True)
class Call(Generic[R]):
    """A row of the table. ``path``: below ``/v1``, its ids in braces. ``needs``: what its caller must have been granted.

    ``answer``: the shape of its answer; None's type where it has none, str where it is text. ``media_type``: of such a text.
    ``seconds``: how long its answer may take. ``max_body``: bytes that its body may have, where that is more than others'
    may; its path has no parameters then.
    """

    method: str
    path: str
    answer: type[R]
    needs: Right
    summary: str
    seconds: float = QUICK_SECONDS
    max_body: int | None = None
    media_type: str | None = None


# The daemon, and the account at the platform.
STATUS: Final = Call("GET", "/status", Status, Right.READ, "What the daemon does and what it needs")
SIGN_IN: Final = Call("POST", "/session", SignedIn, Right.PERSON, "Sign in to the platform")
CONFIRM_SIGN_IN: Final = Call(
    "POST", "/session/code", SignedIn, Right.PERSON, "Finish a sign-in with the one-time code"
)
SIGN_OUT: Final = Call("DELETE", "/session", NoneType, Right.PERSON, "Sign out")

# Devices.
DEVICES: Final = Call(
    "GET", "/devices", tuple[DeviceView, ...], Right.READ, "The devices that are there, and their state"
)
IDENTIFY_DEVICE: Final = Call(
    "POST",
    "/devices/{device_id}/identify",
    NoneType,
    Right.DISPLAY,
    "Have a device show itself",
    seconds=PERSON_SECONDS,
)
CANCEL_DEVICE: Final = Call(
    "POST",
    "/devices/{device_id}/cancel",
    NoneType,
    Right.PERSON,
    "Give up what runs on a device",
    seconds=DEVICE_SECONDS,
)
ANOTHER_ADDRESS: Final = Call(
    "POST",
    "/devices/{device_id}/another-address",
    NoneType,
    Right.PERSON,
    "Say that a device shows another address than this machine",
    seconds=DEVICE_SECONDS,
)
DEVICE_ACCOUNTS: Final = Call(
    "POST",
    "/devices/{device_id}/accounts",
    AccountKeys,
    Right.XPUB,
    "Read the keys of a standard account from a device",
    seconds=PERSON_SECONDS,
)
PREVIEW_REGISTRATION: Final = Call(
    "POST",
    "/registration/preview",
    RegistrationPreview,
    Right.PERSON,
    "Read the keys that would be registered",
    seconds=DEVICE_SECONDS,
)
REGISTER: Final = Call(
    "POST",
    "/registration",
    Registered,
    Right.PERSON,
    "Register the keys that were shown",
    seconds=PERSON_SECONDS,
)
START_UNLOCKING: Final = Call(
    "POST", "/devices/{device_id}/unlock", UnlockStep, Right.PERSON, "Begin to unlock a device"
)
UNLOCKING_STEP: Final = Call(
    "GET",
    "/devices/{device_id}/unlock",
    UnlockStep,
    Right.PERSON,
    "The next step of an unlocking, or how it ended",
)
QUESTIONS: Final = Call(
    "GET", "/questions", tuple[QuestionView, ...], Right.PERSON, "What devices ask of the person now"
)
ANSWER_QUESTION: Final = Call(
    "POST",
    "/questions/{question_id}",
    UnlockStep,
    Right.PERSON,
    "Answer a device's question, or leave it to the device",
)

# Vaults and addresses.
VAULTS: Final = Call(
    "GET", "/vaults", tuple[VaultView, ...], Right.READ, "The vaults that the platform shows, pinned or not"
)
VAULT_TOKENS: Final = Call(
    "GET",
    "/vaults/{vault_id}/tokens",
    VaultTokens,
    Right.PERSON,
    "What the platform says of a vault's tokens and calls",
)
PREVIEW_PIN: Final = Call(
    "POST",
    "/vaults/{vault_id}/pin/preview",
    PinPreview,
    Right.PERSON,
    "What to compare before pinning a vault",
)
PIN: Final = Call(
    "POST",
    "/vaults/{vault_id}/pin",
    VaultView,
    Right.PERSON,
    "Pin a vault by its verification code",
    seconds=PERSON_SECONDS,
)
UNPIN: Final = Call(
    "POST",
    "/vaults/{vault_id}/unpin",
    VaultView,
    Right.PERSON,
    "Forget a pinned vault, by the code it was pinned under",
)
ACCOUNTS: Final = Call("GET", "/accounts", AccountKeys, Right.XPUB, "The registered keys of this signer")
VAULT_ADDRESSES: Final = Call(
    "GET", "/vaults/{vault_id}/addresses", AddressPage, Right.XPUB, "Addresses of a pinned vault"
)
SHOW_VAULT_ADDRESS: Final = Call(
    "POST",
    "/vaults/{vault_id}/addresses/show",
    AddressShown,
    Right.DISPLAY,
    "Have the device show an address of a pinned vault",
    seconds=PERSON_SECONDS,
)
PROFILE_ADDRESSES: Final = Call(
    "GET", "/profile/addresses", AddressPage, Right.XPUB, "Addresses of the signer's profile"
)
SHOW_PROFILE_ADDRESS: Final = Call(
    "POST",
    "/profile/addresses/show",
    AddressShown,
    Right.DISPLAY,
    "Have the device show an address of the profile",
    seconds=PERSON_SECONDS,
)

# Proposals, and PSBTs that a program brings.
PROPOSALS: Final = Call("GET", "/proposals", tuple[ProposalLine, ...], Right.READ, "The proposals known here")
PROPOSAL: Final = Call(
    "GET", "/proposals/{psbt_id}", ProposalView, Right.READ, "Where the money goes, and every check"
)
APPROVE: Final = Call(
    "POST", "/proposals/{psbt_id}/approve", ProposalLine, Right.APPROVE, "Approve what was shown"
)
REJECT: Final = Call("POST", "/proposals/{psbt_id}/reject", ProposalLine, Right.APPROVE, "Decline")
INSPECT_PSBT: Final = Call(
    "POST",
    "/psbts/inspect",
    PsbtReview,
    Right.PROPOSE,
    "What signing a PSBT would do; nothing is stored",
    max_body=MAX_PSBT_BODY,
)
BRING_PSBT: Final = Call(
    "POST", "/psbts", BroughtView, Right.PROPOSE, "Bring a PSBT: the person is asked", max_body=MAX_PSBT_BODY
)
BROUGHT_PSBTS: Final = Call(
    "GET",
    "/psbts",
    tuple[BroughtLine, ...],
    Right.READ,
    "The PSBTs that the caller brought; the person's: all",
)
BROUGHT_PSBT: Final = Call(
    "GET", "/psbts/{psbt_id}", BroughtView, Right.READ, "A brought PSBT, signed once it is"
)
WITHDRAW_PSBT: Final = Call(
    "DELETE", "/psbts/{psbt_id}", BroughtLine, Right.PROPOSE, "Take back what was brought"
)

# Apps.
ASK_PAIRING: Final = Call("POST", "/pairings", Pairing, Right.ANYONE, "Ask to be paired")
COLLECT_PAIRING: Final = Call(
    "POST", "/pairings/{pairing_id}/collect", Collected, Right.ANYONE, "The person's answer; the token, once"
)
PAIRINGS: Final = Call(
    "GET",
    "/pairings",
    tuple[OpenPairing, ...],
    Right.PERSON,
    "The requests that wait for the person, or for the app to collect",
)
ACCEPT_PAIRING: Final = Call(
    "POST", "/pairings/{pairing_id}/accept", OpenPairing, Right.PERSON, "Grant what was asked for, or less"
)
REFUSE_PAIRING: Final = Call(
    "POST", "/pairings/{pairing_id}/refuse", OpenPairing, Right.PERSON, "Grant nothing"
)
ME: Final = Call("GET", "/me", Me, Right.ANYONE, "Who asks, with which rights, and until when")
APPS: Final = Call("GET", "/apps", tuple[AppView, ...], Right.PERSON, "The apps that were paired")
REVOKE_APP: Final = Call(
    "DELETE", "/apps/{app_id}", AppView, Right.PERSON, "Make an app's token worth nothing"
)
ORIGINS: Final = Call(
    "GET", "/origins", tuple[OriginView, ...], Right.PERSON, "The sites that may send requests from a browser"
)
LET_IN: Final = Call(
    "POST", "/origins", OriginView, Right.PERSON, "Let a site's pages ask to be paired, for minutes"
)
SHUT_OUT: Final = Call("DELETE", "/origins", OriginView, Right.PERSON, "Shut a site out, and revoke its apps")

# What happened and what happens; the page.
SETTINGS: Final = Call(
    "GET", "/settings", SettingsView, Right.PERSON, "The configuration and the rules, in words"
)
VERIFY_AUDIT: Final = Call(
    "GET", "/audit", AuditReport, Right.READ, "Whether the chain of decisions is whole"
)
AUDIT_ENTRIES: Final = Call(
    "GET", "/audit/entries", AuditPage, Right.PERSON, "The chain of decisions, a page at a time"
)
EVENTS: Final = Call(
    "GET", "/events", str, Right.READ, "What happens, as server-sent events", media_type="text/event-stream"
)
ENTER_PAGE: Final = Call(
    "POST", "/page/entry", PageEntry, Right.PERSON, "A code to enter the page with, good once"
)
METRICS: Final = Call(
    "GET",
    "/metrics",
    str,
    Right.READ,
    "Figures about the daemon, as Prometheus reads them",
    media_type="text/plain",
)
