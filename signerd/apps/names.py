"""What an app calls itself, and where it comes from: a name that cannot pass for another's, an exact origin."""

import re
import unicodedata
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from signerd.callers import PAGE, TERMINAL
from signerd.core.text import plain
from signerd.errors import InvalidRequest

# As much as stands on a line beside what it asks for.
LONGEST_NAME = 40
# The person is told who brought a payment by this name alone.
OURS = frozenset({TERMINAL.name, PAGE.name, "signerd"})
# Letters, symbols and marks that show nothing: fillers of Hangul, Khmer and Braille, and what only varies a glyph before it.
_UNSEEN = frozenset(
    "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f" + "".join(map(chr, range(0xFE00, 0xFE10)))
)


def folded(name: str) -> str:
    """Equal for names that differ in their capitals alone: caseless matching of Unicode, after NFKC."""
    return unicodedata.normalize("NFKC", name.casefold())


def clean_name(text: str) -> str:
    """The name in one spelling (NFKC), with single spaces.

    Raises:
        InvalidRequest: hidden characters, no letter or digit, a name of ours, or more than ``LONGEST_NAME`` characters.
    """
    name = " ".join(unicodedata.normalize("NFKC", text).split())
    if plain(name) != name or not _UNSEEN.isdisjoint(text) or not _UNSEEN.isdisjoint(name):
        raise InvalidRequest("an app's name may have no characters that cannot be seen")
    if not any(char.isalnum() for char in name):
        raise InvalidRequest("an app's name needs a letter or a digit")
    if folded(name) in OURS:
        raise InvalidRequest(f"'{name}' is what signerd calls the person's own doing")
    if len(name) > LONGEST_NAME:
        raise InvalidRequest(f"an app's name may have {LONGEST_NAME} characters at most")
    return name


DEFAULT_PORTS = {"http": 80, "https": 443}
# RFC 1035.
LONGEST_HOST = 253
MAX_PORT = 65_535
_HINT = "Give it as the browser's address line begins, for instance https://wallet.example or http://localhost:3000."
_PARTS = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[^\[\]:/?#@\\\s]+)(?::(?P<port>[0-9]{1,5}))?/?"
)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# A name of which the last part is a number is an address to a browser, in whatever spelling.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_HERE = re.compile(r"http://(?:(?:.+\.)?localhost|127\.[0-9.]+|\[::1\])(?::[0-9]+)?")


def exact_origin(text: str) -> str:
    """``scheme://host[:port]`` in lower case, without the scheme's own port.

    Raises:
        InvalidRequest: another scheme, a path, a user, a wildcard, or a host that a browser would spell otherwise.
    """
    typed = text.strip()
    if not typed.isascii():
        raise _refused(
            "write the host in ASCII, as the browser sends it (xn--…): look-alike letters show there"
        )
    found = _PARTS.fullmatch(typed.lower())
    if found is None:
        raise _refused(
            "an origin is https://host or http://host, with its port where it has one, and nothing more"
        )
    scheme, host = found["scheme"], _host(found["host"])
    port = DEFAULT_PORTS[scheme] if found["port"] is None else int(found["port"])
    if not 0 < port <= MAX_PORT:
        raise _refused(f"{port} is no port")
    return f"{scheme}://{host}" + ("" if port == DEFAULT_PORTS[scheme] else f":{port}")


def warning_of(origin: str | None) -> str | None:
    """What the person should know before letting it in; None where there is nothing."""
    if origin is None or origin.startswith("https://"):
        return None
    if _HERE.fullmatch(origin):
        return "Whatever program of this machine has that port is this app."
    return "It is not encrypted: whoever is on the network between you and it can be this app."


def _host(text: str) -> str:
    try:
        if text.startswith("["):
            return f"[{IPv6Address(text[1:-1]).compressed}]"
        if _NUMBER.fullmatch(text.rpartition(".")[2]):
            return str(IPv4Address(text))
    except AddressValueError:
        raise _refused(f"{text} is no address as a browser writes it") from None
    if len(text) > LONGEST_HOST or not all(_LABEL.fullmatch(label) for label in text.split(".")):
        raise _refused(f"{text} is no host: every origin is let in by its own whole name")
    return text


def _refused(sentence: str) -> InvalidRequest:
    return InvalidRequest(sentence, hint=_HINT)
