"""Every call of the loopback, defined once for the daemon's routes and for the client."""

from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Final, Generic, TypeVar

from signerd import shapes
from signerd.callers import Right
from signerd.endpoint import DEVICE_SECONDS, PERSON_SECONDS, QUICK_SECONDS

R = TypeVar("R")
# The largest PSBT that is parsed: ``multisig.PsbtLimits``, repeated here to avoid the import.
MAX_PSBT_BYTES = 2 * 1024 * 1024
# Base64: four characters for three bytes.
MAX_PSBT_TEXT = (MAX_PSBT_BYTES + 2) // 3 * 4
# That, and the JSON around it.
MAX_PSBT_BODY = MAX_PSBT_TEXT + 1024
DAYS = 90
# Long enough to find the app's button, short enough to expire once the person has left.
LET_IN_MINUTES = 5


@dataclass(frozen=True)
class Call(Generic[R]):
    """A row of the table. ``path``: below ``/v1``, its ids in braces. ``needs``: the right that its caller needs.

    ``answer``: returns the shape of the answer; ``nothing`` for none, ``text`` for text of ``media_type``.
    ``seconds``: how long the answer may take. ``max_body``: the body's limit in bytes where it is above the
    common one; the path has no parameters then.
    """

    method: str
    path: str
    answer: Callable[[], type[R]]
    needs: Right
    summary: str
    seconds: float = QUICK_SECONDS
    max_body: int | None = None
    media_type: str | None = None


def nothing() -> type[None]:
    return NoneType


def text() -> type[str]:
    return str


# The daemon, and the account at the platform.
STATUS: Final = Call(
    "GET", "/status", lambda: shapes.Status, Right.READ, "What the daemon does and what it needs"
)
# A locked keyring may ask the person before it stores the session.
SIGN_IN: Final = Call(
    "POST",
    "/session",
    lambda: shapes.SignedIn,
    Right.PERSON,
    "Sign in to the platform",
    seconds=PERSON_SECONDS,
)
CONFIRM_SIGN_IN: Final = Call(
    "POST",
    "/session/code",
    lambda: shapes.SignedIn,
    Right.PERSON,
    "Finish a sign-in with the one-time code",
    seconds=PERSON_SECONDS,
)
SIGN_OUT: Final = Call("DELETE", "/session", nothing, Right.PERSON, "Sign out")

# Devices.
DEVICES: Final = Call(
    "GET",
    "/devices",
    lambda: tuple[shapes.DeviceView, ...],
    Right.READ,
    "The devices that are there, and their state",
)
IDENTIFY_DEVICE: Final = Call(
    "POST",
    "/devices/{device_id}/identify",
    nothing,
    Right.DISPLAY,
    "Have a device show itself",
    seconds=PERSON_SECONDS,
)
CANCEL_DEVICE: Final = Call(
    "POST",
    "/devices/{device_id}/cancel",
    nothing,
    Right.PERSON,
    "Give up what runs on a device",
    seconds=DEVICE_SECONDS,
)
ANOTHER_ADDRESS: Final = Call(
    "POST",
    "/devices/{device_id}/another-address",
    nothing,
    Right.PERSON,
    "Say that a device shows another address than this machine",
    seconds=DEVICE_SECONDS,
)
DEVICE_ACCOUNTS: Final = Call(
    "POST",
    "/devices/{device_id}/accounts",
    lambda: shapes.AccountKeys,
    Right.XPUB,
    "Read the keys of a standard account from a device",
    seconds=PERSON_SECONDS,
)
PREVIEW_REGISTRATION: Final = Call(
    "POST",
    "/registration/preview",
    lambda: shapes.RegistrationPreview,
    Right.PERSON,
    "Read the keys that would be registered",
    seconds=DEVICE_SECONDS,
)
REGISTER: Final = Call(
    "POST",
    "/registration",
    lambda: shapes.Registered,
    Right.PERSON,
    "Register the keys that were shown",
    seconds=PERSON_SECONDS,
)
PREVIEW_AIRGAPPED: Final = Call(
    "POST",
    "/registration/airgapped/preview",
    lambda: shapes.RegistrationPreview,
    Right.PERSON,
    "What the files of a device without a cable would register",
)
CHALLENGE_AIRGAPPED: Final = Call(
    "POST",
    "/registration/airgapped/challenge",
    lambda: shapes.AirgapChallenge,
    Right.PERSON,
    "What a device without a cable signs to prove its keys",
    seconds=DEVICE_SECONDS,
)
REGISTER_AIRGAPPED: Final = Call(
    "POST",
    "/registration/airgapped",
    lambda: shapes.Registered,
    Right.PERSON,
    "Register the keys of a device without a cable, by its signed message",
    seconds=DEVICE_SECONDS,
)
START_UNLOCKING: Final = Call(
    "POST", "/devices/{device_id}/unlock", lambda: shapes.UnlockStep, Right.PERSON, "Begin to unlock a device"
)
UNLOCKING_STEP: Final = Call(
    "GET",
    "/devices/{device_id}/unlock",
    lambda: shapes.UnlockStep,
    Right.PERSON,
    "The next step of an unlocking, or how it ended",
)
QUESTIONS: Final = Call(
    "GET",
    "/questions",
    lambda: tuple[shapes.QuestionView, ...],
    Right.PERSON,
    "What devices ask of the person now",
)
ANSWER_QUESTION: Final = Call(
    "POST",
    "/questions/{question_id}",
    lambda: shapes.UnlockStep,
    Right.PERSON,
    "Answer a device's question, or leave it to the device",
)

# Vaults and addresses.
VAULTS: Final = Call(
    "GET",
    "/vaults",
    lambda: tuple[shapes.VaultView, ...],
    Right.READ,
    "The vaults that the platform shows, pinned or not",
)
VAULT_TOKENS: Final = Call(
    "GET",
    "/vaults/{vault_id}/tokens",
    lambda: shapes.VaultTokens,
    Right.PERSON,
    "What the platform says of a vault's tokens and calls",
)
VAULT_FUNDS: Final = Call(
    "GET",
    "/vaults/{vault_id}/funds",
    lambda: shapes.VaultFunds,
    Right.PERSON,
    "What the platform says that a vault holds, and the next address to be paid to",
)
VAULT_MOVEMENTS: Final = Call(
    "GET",
    "/vaults/{vault_id}/movements",
    lambda: shapes.VaultMovements,
    Right.PERSON,
    "What the platform says came into a vault and left it, a page at a time",
)
PREVIEW_PIN: Final = Call(
    "POST",
    "/vaults/{vault_id}/pin/preview",
    lambda: shapes.PinPreview,
    Right.PERSON,
    "What to compare before pinning a vault",
)
PIN: Final = Call(
    "POST",
    "/vaults/{vault_id}/pin",
    lambda: shapes.VaultView,
    Right.PERSON,
    "Pin a vault by its verification code",
    seconds=PERSON_SECONDS,
)
ENROLMENT: Final = Call(
    "GET",
    "/vaults/{vault_id}/enrolment",
    lambda: shapes.EnrolmentFile,
    Right.PERSON,
    "The file by which a device without a cable knows a vault",
)
UNPIN: Final = Call(
    "POST",
    "/vaults/{vault_id}/unpin",
    lambda: shapes.VaultView,
    Right.PERSON,
    "Forget a pinned vault, by the code it was pinned under",
)
ACCOUNTS: Final = Call(
    "GET", "/accounts", lambda: shapes.AccountKeys, Right.XPUB, "The registered keys of this signer"
)
VAULT_ADDRESSES: Final = Call(
    "GET",
    "/vaults/{vault_id}/addresses",
    lambda: shapes.AddressPage,
    Right.XPUB,
    "Addresses of a pinned vault",
)
SHOW_VAULT_ADDRESS: Final = Call(
    "POST",
    "/vaults/{vault_id}/addresses/show",
    lambda: shapes.AddressShown,
    Right.DISPLAY,
    "Have the device show an address of a pinned vault",
    seconds=PERSON_SECONDS,
)
PROFILE_ADDRESSES: Final = Call(
    "GET", "/profile/addresses", lambda: shapes.AddressPage, Right.XPUB, "Addresses of the signer's profile"
)
SHOW_PROFILE_ADDRESS: Final = Call(
    "POST",
    "/profile/addresses/show",
    lambda: shapes.AddressShown,
    Right.DISPLAY,
    "Have the device show an address of the profile",
    seconds=PERSON_SECONDS,
)

# Proposals, and PSBTs that a program imports.
PROPOSALS: Final = Call(
    "GET", "/proposals", lambda: tuple[shapes.ProposalLine, ...], Right.READ, "The proposals known here"
)
PROPOSAL: Final = Call(
    "GET",
    "/proposals/{psbt_id}",
    lambda: shapes.ProposalView,
    Right.READ,
    "Where the money goes, and every check",
)
APPROVE: Final = Call(
    "POST",
    "/proposals/{psbt_id}/approve",
    lambda: shapes.ProposalLine,
    Right.APPROVE,
    "Approve what was shown",
)
REJECT: Final = Call(
    "POST", "/proposals/{psbt_id}/reject", lambda: shapes.ProposalLine, Right.APPROVE, "Decline"
)
EXPORT_PSBT: Final = Call(
    "POST",
    "/proposals/{psbt_id}/export",
    lambda: shapes.ExportedPsbt,
    Right.PERSON,
    "Give an approved proposal out, for a device without a cable",
)
IMPORT_ANSWER: Final = Call(
    "POST",
    "/answers",
    lambda: shapes.ProposalLine,
    Right.PERSON,
    "Bring what a device without a cable signed",
    max_body=MAX_PSBT_BODY,
)
INSPECT_PSBT: Final = Call(
    "POST",
    "/psbts/inspect",
    lambda: shapes.PsbtReview,
    Right.PROPOSE,
    "What signing a PSBT would do; nothing is stored",
    max_body=MAX_PSBT_BODY,
)
IMPORT_PSBT: Final = Call(
    "POST",
    "/psbts",
    lambda: shapes.ImportedView,
    Right.PROPOSE,
    "Import a PSBT: the person is asked",
    max_body=MAX_PSBT_BODY,
)
IMPORTED_PSBTS: Final = Call(
    "GET",
    "/psbts",
    lambda: tuple[shapes.ImportedLine, ...],
    Right.READ,
    "The PSBTs that the caller imported; the person's: all",
)
IMPORTED_PSBT: Final = Call(
    "GET", "/psbts/{psbt_id}", lambda: shapes.ImportedView, Right.READ, "An imported PSBT, signed once it is"
)
WITHDRAW_PSBT: Final = Call(
    "DELETE", "/psbts/{psbt_id}", lambda: shapes.ImportedLine, Right.PROPOSE, "Take back what was imported"
)

# Apps.
ASK_PAIRING: Final = Call("POST", "/pairings", lambda: shapes.Pairing, Right.ANYONE, "Ask to be paired")
COLLECT_PAIRING: Final = Call(
    "POST",
    "/pairings/{pairing_id}/collect",
    lambda: shapes.Collected,
    Right.ANYONE,
    "The person's answer; the token, once",
)
PAIRINGS: Final = Call(
    "GET",
    "/pairings",
    lambda: tuple[shapes.OpenPairing, ...],
    Right.PERSON,
    "The requests that wait for the person, or for the app to collect",
)
ACCEPT_PAIRING: Final = Call(
    "POST",
    "/pairings/{pairing_id}/accept",
    lambda: shapes.OpenPairing,
    Right.PERSON,
    "Grant what was asked for, or less",
)
REFUSE_PAIRING: Final = Call(
    "POST", "/pairings/{pairing_id}/refuse", lambda: shapes.OpenPairing, Right.PERSON, "Grant nothing"
)
ME: Final = Call("GET", "/me", lambda: shapes.Me, Right.ANYONE, "Who asks, with which rights, and until when")
APPS: Final = Call(
    "GET", "/apps", lambda: tuple[shapes.AppView, ...], Right.PERSON, "The apps that were paired"
)
REVOKE_APP: Final = Call(
    "DELETE", "/apps/{app_id}", lambda: shapes.AppView, Right.PERSON, "Make an app's token worth nothing"
)
ORIGINS: Final = Call(
    "GET",
    "/origins",
    lambda: tuple[shapes.OriginView, ...],
    Right.PERSON,
    "The sites that may send requests from a browser",
)
LET_IN: Final = Call(
    "POST",
    "/origins",
    lambda: shapes.OriginView,
    Right.PERSON,
    "Let a site's pages ask to be paired, for minutes",
)
SHUT_OUT: Final = Call(
    "DELETE", "/origins", lambda: shapes.OriginView, Right.PERSON, "Shut a site out, and revoke its apps"
)

# Settings, history and events; the page.
SETTINGS: Final = Call(
    "GET", "/settings", lambda: shapes.SettingsView, Right.PERSON, "The configuration and the rules, in words"
)
VERIFY_AUDIT: Final = Call(
    "GET", "/audit", lambda: shapes.AuditReport, Right.READ, "Whether the chain of decisions is whole"
)
AUDIT_ENTRIES: Final = Call(
    "GET",
    "/audit/entries",
    lambda: shapes.AuditPage,
    Right.PERSON,
    "The chain of decisions, a page at a time",
)
EVENTS: Final = Call(
    "GET", "/events", text, Right.READ, "What happens, as server-sent events", media_type="text/event-stream"
)
ENTER_PAGE: Final = Call(
    "POST", "/page/entry", lambda: shapes.PageEntry, Right.PERSON, "A code to enter the page with, good once"
)
