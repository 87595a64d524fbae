"""The daemon itself, its account at the platform, its settings, and what happened: the chain of decisions and the feed."""

from typing import Annotated

from pydantic import Field, StringConstraints

from signerd.shapes.common import Answer, Request


class Status(Answer):
    """``position``: the number of the newest line of the feed, to follow from. ``page_url``: None where the page is not served; the notes say why.
    ``notes``: what needs attention.
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
    position: int
    page_url: str | None = None
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
    label: str
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
    rules: tuple[str, ...]


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
    at: str
    kind: str
    subject: str
    facts: tuple[tuple[str, str], ...]
    digest: str


class AuditPage(Answer):
    """``more``: there are others beyond the last of these. ``total``: how long the whole chain is."""

    entries: tuple[AuditEntryView, ...]
    more: bool
    total: int


class Happened(Answer):
    """A line of the feed. ``subject``: a proposal, a vault, a device or "registration".

    ``kind``: ask, progress, device, question, info, attention, alarm, or state, where ``text`` is the proposal's new state.
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
