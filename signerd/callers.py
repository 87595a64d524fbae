"""Callers and their rights. Each call of the loopback needs one right.

The person has all rights, at the command line and on the page. An app has those that the person granted,
never ``PERSON``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from types import MappingProxyType

from custody.common.text import foreign
from signerd.errors import NotAllowed, NotPaired


@unique
class Right(StrEnum):
    """A right that a call may need."""

    ANYONE = "anyone"
    """Any caller that reaches the interface: asking to be paired."""
    READ = "read"
    XPUB = "xpub"
    DISPLAY = "display"
    PROPOSE = "propose"
    APPROVE = "approve"
    PERSON = "person"
    """The person alone: signing in, pins, PINs, who is paired."""


# What an app may ask for, from the least to the most dangerous.
GRANTABLE = (Right.READ, Right.XPUB, Right.DISPLAY, Right.PROPOSE, Right.APPROVE)

# Shown to the person who grants it, at the command line and on the page.
RIGHT_WORDS: Mapping[Right, str] = MappingProxyType(
    {
        Right.READ: "see vaults, proposals, devices and what happens here",
        Right.XPUB: (
            "read public keys and addresses: it can then see every payment, past and future, of your vaults "
            "and of your own account"
        ),
        Right.DISPLAY: "have an address shown on your device",
        Right.PROPOSE: "import transactions for you to look at; nothing is signed before you approve it",
        Right.APPROVE: (
            "approve and decline payments in your name, without asking you: then only your device still asks"
        ),
    }
)


def granted(rights: Iterable[str]) -> tuple[Right, ...]:
    """Those of ``rights`` that an app may have, from the least to the most dangerous."""
    given = frozenset(rights)
    return tuple(right for right in GRANTABLE if right in given)


def rights_words(rights: Iterable[str]) -> tuple[str, ...]:
    """A line for each right, such as ``read: see vaults, …``."""
    return tuple(f"{right}: {RIGHT_WORDS[right]}" for right in granted(rights))


@unique
class CallerKind(StrEnum):
    TERMINAL = "terminal"
    """A program of the same user, over the private socket."""
    PAGE = "page"
    APP = "app"
    STRANGER = "stranger"


@dataclass(frozen=True)
class LoopbackCaller:
    """``app_id``: of a paired app; ``origin``: of an app that is a web site."""

    kind: CallerKind
    name: str
    rights: frozenset[Right]
    app_id: str | None = None
    origin: str | None = None

    @property
    def audit_name(self) -> str:
        """For the audit chain: an app by its name and by its id, which no other app can take."""
        return str(self.kind) if self.app_id is None else f"app {self.app_id} '{self.name}'"

    @property
    def shown(self) -> str:
        """For the person: an app is always shown as an app, whatever its name."""
        return self.name if self.app_id is None else app_words(self.name, self.origin)

    def require(self, right: Right) -> None:
        """Raises NotPaired for an unpaired caller, NotAllowed for an app without that right (L13)."""
        if right in self.rights:
            return
        if self.kind is CallerKind.STRANGER:
            raise NotPaired("this needs a paired app's token, or the person on the page")
        if right is Right.PERSON:
            raise NotAllowed(
                "only the person may do this, on the page or at the command line",
                hint="Ask the person to do it there. No app is granted this.",
            )
        raise NotAllowed(f"this app was not granted '{right}'")


def app_words(name: str, origin: str | None) -> str:
    """The origin, which is known, before the name, which the app chose and which may pretend to be a site
    (L8).
    """
    return f"the program '{foreign(name)}'" if origin is None else f"the site {origin} ('{foreign(name)}')"


TERMINAL = LoopbackCaller(CallerKind.TERMINAL, "command line", frozenset(Right))
PAGE = LoopbackCaller(CallerKind.PAGE, "page", frozenset(Right))
STRANGER = LoopbackCaller(CallerKind.STRANGER, "stranger", frozenset({Right.ANYONE}))
