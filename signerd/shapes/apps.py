"""Apps: asking to be paired, being answered, and what they were granted. Times are RFC 3339, UTC, by this machine's clock."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from signerd.shapes.common import Answer, Request

# As ``callers.GRANTABLE``.
AppRight = Literal["read", "xpub", "display", "propose", "approve"]
AppRights = Annotated[frozenset[AppRight], Field(min_length=1)]
# As it is typed into the command line or a page; what is a name, and an origin, is judged by ``signerd.apps``.
NameText = Annotated[str, StringConstraints(min_length=1, max_length=200)]
OriginText = Annotated[str, StringConstraints(min_length=1, max_length=300)]
# 256 bits in base64 without padding.
SecretText = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]

DAYS = 90
# A token that nobody renews for a year is a forgotten one.
MAX_DAYS = 365
# Long enough to find the app's button, short enough to be over when the person has gone.
LET_IN_MINUTES = 5
MAX_LET_IN_MINUTES = 60


class PairingRequest(Request):
    """``name``: what the person knows the app by. ``rights``: those that it needs; the person may grant fewer."""

    name: NameText
    rights: AppRights


class Pairing(Answer):
    """For the app alone, once. It shows ``code``, and fetches its token with ``secret`` within ``seconds``."""

    id: str
    secret: str = Field(repr=False)
    code: str = Field(repr=False)
    seconds: int


class CollectRequest(Request):
    secret: SecretText = Field(repr=False)


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


class AcceptRequest(Request):
    """``rights``: those that are granted of the ones that were asked for; None grants all of them."""

    code: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=20)] = Field(
        repr=False
    )
    rights: AppRights | None = None
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = DAYS


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


class LetInRequest(Request):
    origin: OriginText
    minutes: Annotated[int, Field(ge=1, le=MAX_LET_IN_MINUTES)] = LET_IN_MINUTES


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
