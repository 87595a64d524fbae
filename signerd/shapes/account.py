"""The daemon itself and its account at the platform."""

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
