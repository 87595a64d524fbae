"""Bytecode: the description of a token, as canonical JSON, to whose hash a deployment commits
(docs/understand/tokens.md).
"""

import itertools
import re
from dataclasses import dataclass, fields

from multisig.canonical_json import JsonError, JsonValue, canonical_json, parse_canonical
from multisig.errors import InvalidToken
from multisig.hashes import sha256
from multisig.shown import ByMember
from multisig.tokens.payload import Deploy, check_holder
from multisig.tokens.values import TokenAmount, check_icon, check_name, check_supplies, check_ticker

TEMPLATE_VERSION = 1
# Longer lists are built by calls of add_to_whitelist. An entry has at most 71 bytes in JSON.
MAX_WHITELIST = 1000
# More than the largest valid blob; a caller that fetches one stops reading here.
MAX_BYTECODE_BYTES = 80_000

# Whole numbers beyond 2^53 have no safe form in JSON (RFC 8785, appendix D), so that supplies are strings.
_SUPPLY = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_HEX = re.compile(r"(?:[0-9a-f]{2}){22,34}", re.ASCII)
_INVALID = "The bytecode is not valid"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Bytecode(ByMember):
    """The description of a token. Supplies are in raw units, scripts are output scripts, `icon` may be empty.

    `whitelist` is in ascending order of its bytes without repetition: one list, one hash. Raises
    InvalidToken.
    """

    name: str
    ticker: str
    decimals: int
    total_supply: TokenAmount
    max_supply: TokenAmount
    whitelist_enabled: bool
    icon: str
    whitelist: tuple[bytes, ...]
    owner_script: bytes
    template_version: int = TEMPLATE_VERSION

    def __post_init__(self) -> None:
        if type(self.template_version) is not int or self.template_version != TEMPLATE_VERSION:
            raise InvalidToken(f"The template's version is not {TEMPLATE_VERSION}, the only one known.")
        if not isinstance(self.whitelist_enabled, bool):
            raise InvalidToken("The whitelist is either on or off.")
        check_name(self.name)
        check_ticker(self.ticker)
        check_supplies(self.total_supply, self.max_supply, self.decimals)
        check_icon(self.icon)
        check_holder(self.owner_script)
        _check_whitelist(self.whitelist)

    @property
    def blob(self) -> bytes:
        """The canonical bytes: what is published and hashed."""
        return canonical_json(
            {
                "decimals": self.decimals,
                "icon": self.icon,
                "max_supply": str(self.max_supply),
                "name": self.name,
                "owner_script": self.owner_script.hex(),
                "template_version": self.template_version,
                "ticker": self.ticker,
                "total_supply": str(self.total_supply),
                "whitelist": [script.hex() for script in self.whitelist],
                "whitelist_enabled": self.whitelist_enabled,
            }
        )

    @property
    def whitelist_hash(self) -> bytes:
        """SHA-256 of the member `whitelist` as it is written in the blob; equal lists of different tokens
        have equal hashes.
        """
        listed = ",".join(f'"{script.hex()}"' for script in self.whitelist)
        return sha256(f"[{listed}]".encode())

    @property
    def deployment(self) -> Deploy:
        """The payload that deploys it."""
        return Deploy(
            bytecode_hash=bytecode_hash(self.blob),
            ticker=self.ticker,
            decimals=self.decimals,
            total_supply=self.total_supply,
            max_supply=self.max_supply,
            whitelist_enabled=self.whitelist_enabled,
        )


def bytecode_hash(blob: bytes) -> bytes:
    """SHA-256 of a blob, as a deployment carries it; says nothing about whether the blob is valid."""
    return sha256(blob)


def parse_bytecode(blob: bytes) -> Bytecode:
    """Parse an untrusted blob. Raises InvalidToken for all but the one canonical form."""
    if len(blob) > MAX_BYTECODE_BYTES:
        raise InvalidToken(f"{_INVALID}: it has more than {MAX_BYTECODE_BYTES} bytes.")
    try:
        value = parse_canonical(blob)
    except JsonError as error:
        raise InvalidToken(f"{_INVALID}: {error}.") from error
    given = _BlobMembers(value)
    return Bytecode(
        name=given.text("name"),
        ticker=given.text("ticker"),
        decimals=given.number("decimals"),
        total_supply=given.supply("total_supply"),
        max_supply=given.supply("max_supply"),
        whitelist_enabled=given.flag("whitelist_enabled"),
        icon=given.text("icon"),
        whitelist=given.scripts("whitelist"),
        owner_script=given.script("owner_script"),
        template_version=given.number("template_version"),
    )


def check_deployment(deploy: Deploy, bytecode: Bytecode) -> None:
    """Check that a deployment agrees with its bytecode, of which it repeats parts for signers to read.

    Raises InvalidToken, which names what differs.
    """
    stated = bytecode.deployment
    differing = [f.name for f in fields(Deploy) if getattr(stated, f.name) != getattr(deploy, f.name)]
    if differing:
        raise InvalidToken(f"The deployment is not of this bytecode: they differ in {', '.join(differing)}.")


class _BlobMembers:
    """The members of a blob, each of exactly the type the schema has for it."""

    def __init__(self, value: JsonValue) -> None:
        if not isinstance(value, dict):
            raise InvalidToken(f"{_INVALID}: it is not a JSON object.")
        expected = {field.name for field in fields(Bytecode)}
        missing = sorted(expected - value.keys())
        if missing:
            raise InvalidToken(f"{_INVALID}: {missing[0]} is missing.")
        if value.keys() != expected:
            # Its name is not repeated in the error: the author of the blob chose it.
            raise InvalidToken(f"{_INVALID}: it has a member that is not known.")
        self._members = value

    def text(self, name: str) -> str:
        value = self._members[name]
        if not isinstance(value, str):
            raise _wrong(name, "is not a string")
        return value

    def number(self, name: str) -> int:
        value = self._members[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise _wrong(name, "is not a whole number")
        return value

    def flag(self, name: str) -> bool:
        value = self._members[name]
        if not isinstance(value, bool):
            raise _wrong(name, "is neither true nor false")
        return value

    def supply(self, name: str) -> TokenAmount:
        text = self.text(name)
        if _SUPPLY.fullmatch(text) is None:
            raise _wrong(name, "is not a whole number of at most 19 digits in a string")
        return TokenAmount(int(text))

    def script(self, name: str) -> bytes:
        return _script(name, self._members[name])

    def scripts(self, name: str) -> tuple[bytes, ...]:
        value = self._members[name]
        if not isinstance(value, list):
            raise _wrong(name, "is not a list")
        return tuple(_script(name, item) for item in value)


def _script(name: str, value: JsonValue) -> bytes:
    if not isinstance(value, str) or _HEX.fullmatch(value) is None:
        raise _wrong(name, "holds something else than an output script in lower-case hex")
    return bytes.fromhex(value)


def _wrong(name: str, sentence: str) -> InvalidToken:
    return InvalidToken(f"{_INVALID}: {name} {sentence}.")


def _check_whitelist(whitelist: tuple[bytes, ...]) -> None:
    if len(whitelist) > MAX_WHITELIST:
        raise InvalidToken(f"The initial whitelist has more than {MAX_WHITELIST} addresses.")
    for script in whitelist:
        check_holder(script)
    if any(first >= second for first, second in itertools.pairwise(whitelist)):
        raise InvalidToken("The initial whitelist is not in ascending order, or repeats an address.")
