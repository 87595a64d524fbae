"""The bases of all shapes; the daemon, its account and settings, its audit chain, and apps.

Amounts are whole satoshis; every answer names its network; times are RFC 3339 in UTC, by this machine's clock.
Text of the platform, a device or an app is ``Shown``: cleaned as it gets into an answer, and once more by a
terminal or page.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from custody.common.text import plain
from signerd.shapes.limits import MAX_DAYS, MOST_ENTRIES


class Answer(BaseModel):
    """Frozen; an older client ignores fields that a newer daemon adds. Its schema is built at first use,
    because a daemon uses few of them.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class LoopbackRequest(BaseModel):
    """An unknown field is an error. Errors do not repeat values."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


# Without anything that moves a terminal's cursor or reorders what is read (L8).
Shown = Annotated[str, AfterValidator(plain)]

# Covers the ids of the platform and of devices and the names of checks; safe in a path and a line.
ID_PATTERN = r"^[A-Za-z0-9_-]{1,100}$"

Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]

DIGEST_PATTERN = r"^[0-9a-f]{64}$"
Digest = Annotated[str, StringConstraints(pattern=DIGEST_PATTERN)]

# A verification code as people type it, with or without its dashes.
Code = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]

# ``multisig``'s limit of a descriptor.
Descriptor = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_096)]

# The platform's bound on a reason.
Reason = Annotated[str, StringConstraints(strip_whitespace=True, max_length=1_000)]

Email = Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=320)]

Password = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]

SignInCode = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=40)]

# A place in the chain or the feed, up to the largest SQLite integer.
Position = Annotated[int, Field(ge=0, le=2**63 - 1)]

EntrySearch = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]

EntryCount = Annotated[int, Field(ge=1, le=MOST_ENTRIES)]

# There are fewer than twenty checks.
Acknowledged = Annotated[frozenset[Id], Field(max_length=50)]


class Status(Answer):
    """``position``: the number of the newest line of the feed, to follow from. ``page_url``: where apps call, and a browser is told how to open the page; None where it is not served: the notes say why.
    ``backup_fingerprint``: of the last backup made here (``backup_made_at``, RFC 3339): a restore shows the same one where nothing in it was changed.
    ``devices_ready``: those that are asked something now, too. ``notes``: what needs attention.
    """

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
    backup_made_at: str | None = None
    backup_fingerprint: str | None = None
    position: int
    page_url: str | None = None
    notes: tuple[str, ...] = ()


class SignedIn(Answer):
    """``code_needed``: a one-time code is wanted, the mailed one or the authenticator's; go on with it."""

    email: str
    code_needed: bool
    secrets: str


class LoweredView(Answer):
    """A check that the configuration lowers. ``guards``: what it makes sure of; ``becomes``: "asks" or "warns"."""

    name: str
    guards: str
    becomes: str


class SettingsView(Answer):
    """``rules`` are those of rules.toml, each in a sentence, in the order in which they are judged. ``max_fee_rate``: sat/vB.

    ``workspaces`` empty: every one of the account that is on this network. ``endpoints``: devices that no USB bus shows.
    """

    network: str
    label: Shown
    state_folder: str
    platform_url: str
    own_authority: bool
    workspaces: tuple[int, ...]
    secrets: str
    usb: bool
    endpoints: tuple[str, ...]
    max_fee_sats: int
    max_fee_rate: str
    max_fee_percent: int
    warn_fee_percent: int
    lowered: tuple[LoweredView, ...]
    rules: tuple[Shown, ...]


class SettingsFile(Answer):
    """A file of settings as it stands on the disk; ``digest`` is the SHA-256 of its text, empty where there is none."""

    name: str
    path: str
    text: str
    digest: Digest


class AuditReport(Answer):
    """``fault`` is None where every entry follows from the one before; else ``at`` is the place of the first fault.

    Writing ``entries`` and ``head`` down elsewhere shows a tail that was cut off.
    """

    entries: int
    head: str
    at: int | None
    fault: str | None


class AuditEntryView(Answer):
    """An entry of the chain. ``at``: RFC 3339 UTC, the machine's word. ``facts``: names and values in words; ``digest``: hex."""

    sequence: int
    at: Shown
    kind: Shown
    subject: Shown
    facts: tuple[tuple[Shown, Shown], ...]
    digest: str


class AuditPage(Answer):
    """``more``: there are others beyond the last of these. ``total``: how long the whole chain is."""

    entries: tuple[AuditEntryView, ...]
    more: bool
    total: int


class Happened(Answer):
    """A line of the feed. ``subject``: a proposal, a vault, a device or "registration".

    ``kind``: ask, progress, device, question, info, attention, trouble, alarm, or state, where ``text`` is the new one of a proposal, or of a device that is asked.
    "question": a device waits for an answer of the person's; what it asks stands in ``/questions``.
    """

    number: int
    subject: str
    kind: str
    text: str


class PageEntry(Answer):
    """``code``: good once, at ``url``, for so many ``seconds``."""

    url: str
    code: str = Field(repr=False)
    seconds: int


# The values of ``callers.GRANTABLE``.
AppRight = Literal["read", "xpub", "display", "propose", "approve"]

AppRights = Annotated[frozenset[AppRight], Field(min_length=1)]

# As typed into the command line or a page; ``signerd.apps`` decides what is a valid name or origin.
NameText = Annotated[str, StringConstraints(min_length=1, max_length=200)]

OriginText = Annotated[str, StringConstraints(min_length=1, max_length=300)]

# 256 bits in base64 without padding.
SecretText = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]


PairingCode = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=20)]

Days = Annotated[int, Field(ge=1, le=MAX_DAYS)]

LetInMinutes = Annotated[int, Field(ge=1, le=60)]


class Pairing(Answer):
    """For the app alone, once. It shows ``code``, and fetches its token with ``secret`` within ``seconds``."""

    id: str
    secret: str = Field(repr=False)
    code: str = Field(repr=False)
    seconds: int


class Collected(Answer):
    """``state`` "waiting": ask again in a second. The token comes once, with "accepted"; "refused" comes once, too."""

    state: Literal["waiting", "refused", "accepted"]
    token: str | None = Field(default=None, repr=False)
    app_id: str | None = None
    rights: tuple[str, ...] = ()
    expires: str | None = None


class OpenPairing(Answer):
    """A request that waits for the person. ``code`` must be the one that the app shows; ``origin``: of a browser's app alone.

    ``state`` "accepted": it was granted ``rights``, and the app has not fetched its token; refusing it takes that back.
    """

    id: str
    name: str
    origin: str | None
    rights: tuple[str, ...]
    state: Literal["waiting", "accepted"]
    code: str = Field(repr=False)
    seconds_left: int
    tries_left: int
    warning: str | None


class AppView(Answer):
    """``state``: "live", "expired" or "revoked". ``last_used``: a day, or None where its token was never used."""

    id: str
    name: str
    origin: str | None
    rights: tuple[str, ...]
    state: Literal["live", "expired", "revoked"]
    created: str
    expires: str
    revoked: str | None
    last_used: str | None


class OriginView(Answer):
    """``until``: while its pages may ask to be paired; None where that is over. ``apps``: the ids of its live apps."""

    origin: str
    until: str | None
    apps: tuple[str, ...]
    warning: str | None


class Me(Answer):
    """Who asks, as the daemon knows it. ``id`` and ``expires``: of an app alone."""

    kind: Literal["terminal", "page", "app"]
    name: str
    network: str
    rights: tuple[str, ...]
    id: str | None = None
    origin: str | None = None
    expires: str | None = None
