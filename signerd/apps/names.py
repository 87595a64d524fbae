"""An app's name, its origin, and the hash of its bearer token."""

import re
import unicodedata
from hashlib import sha256
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from custody.common.text import name_key, require_seen
from signerd.asking import MAX_PORT
from signerd.callers import PAGE, TERMINAL
from signerd.errors import InvalidRequest

# Fits on one line with the rights that it asks for.
LONGEST_NAME = 40
# The person knows the importer of a payment by this name alone.
OURS = frozenset({TERMINAL.name, PAGE.name, "signerd"})


def clean_name(text: str) -> str:
    """The name in one spelling (NFKC), with single spaces.

    Raises:
        InvalidRequest: a character that a reader cannot see, no letter or digit, a name of ours, or more than
            ``LONGEST_NAME`` characters.
    """
    try:
        name = " ".join(unicodedata.normalize("NFKC", require_seen(" ".join(text.split()))).split())
    except ValueError as error:
        raise InvalidRequest(f"an app's name {error}") from None
    if not any(char.isalnum() for char in name):
        raise InvalidRequest("an app's name needs a letter or a digit")
    if name_key(name) in OURS:
        raise InvalidRequest(f"'{name}' is reserved: signerd uses it for the person's own actions")
    if len(name) > LONGEST_NAME:
        raise InvalidRequest(f"an app's name may have {LONGEST_NAME} characters at most")
    return name


DEFAULT_PORTS = {"http": 80, "https": 443}
# RFC 1035.
LONGEST_HOST = 253
_HINT = "Give it as the browser's address line begins, for instance https://wallet.example or http://localhost:3000."
_PARTS = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[^\[\]:/?#@\\\s]+)(?::(?P<port>[0-9]{1,5}))?/?"
)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# Browsers read a host as an IPv4 address if its last label is a number.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_HERE = re.compile(r"http://(?:(?:.+\.)?localhost|127\.[0-9.]+|\[::1\])(?::[0-9]+)?")


def exact_origin(text: str) -> str:
    """``scheme://host[:port]`` in lower case, without the scheme's own port.

    Raises:
        InvalidRequest: another scheme, a path, a user, a wildcard, or a host that a browser would spell
            otherwise.
    """
    typed = text.strip()
    if not typed.isascii():
        raise _refused(
            "write the host in ASCII, as the browser sends it (xn--…): look-alike letters show there"
        )
    match = _PARTS.fullmatch(typed.lower())
    if match is None:
        raise _refused(
            "an origin is https://host or http://host, with its port where it has one, and nothing more"
        )
    scheme, host = match["scheme"], _host(match["host"])
    port = DEFAULT_PORTS[scheme] if match["port"] is None else int(match["port"])
    if not 0 < port <= MAX_PORT:
        raise _refused(f"{port} is no port")
    return f"{scheme}://{host}" + ("" if port == DEFAULT_PORTS[scheme] else f":{port}")


def warning_of(origin: str | None) -> str | None:
    """A warning for the person before the origin is let in; None where none is needed."""
    if origin is None or origin.startswith("https://"):
        return None
    if _HERE.fullmatch(origin):
        return "Any program of this machine that has that port is this app."
    return "It is not encrypted: any machine on the network between you and it can be this app."


def _host(text: str) -> str:
    try:
        if text.startswith("["):
            return f"[{IPv6Address(text[1:-1]).compressed}]"
        if _NUMBER.fullmatch(text.rpartition(".")[2]):
            return str(IPv4Address(text))
    except AddressValueError:
        raise _refused(f"{text} is not an IP address as a browser writes it") from None
    if len(text) > LONGEST_HOST or not all(_LABEL.fullmatch(label) for label in text.split(".")):
        raise _refused(f"{text} is not a host name: wildcards are not supported")
    return text


def _refused(sentence: str) -> InvalidRequest:
    return InvalidRequest(sentence, hint=_HINT)


# A recognisable prefix, so that scanners find a token that leaked into a log or a repository.
PREFIX = "signerd_"


def token_hash(token: str) -> bytes:
    """What is stored of a token. It has 256 random bits, so a plain hash is enough."""
    return sha256(token.encode(errors="replace")).digest()
