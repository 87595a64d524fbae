"""Signed lists of advisories: which devices' keys a flaw concerns, according to a publisher.
A list is one line of canonical JSON (RFC 8785; the names are ASCII), signed by BIP-340 over a tagged hash of
itself without the signature. It replaces the publisher's previous list, so a reader of the newest one has all
that is in force. ``keys`` is a chain from a key that the reader trusts to the one that signs: each key signs
the next. Only the signature is trusted, never where the list came from (ADR 32).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Final, Literal, cast

from coincurve import PrivateKey, PublicKeyXOnly
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from custody.schemas.faults import fault_place, fault_words
from multisig.canonical_json import MAX_INTEGER, JsonError, JsonValue, canonical_json, parse_canonical
from multisig.firmware import Span, Version, lines_of, numbers

# Three times the list of known flaws in the package; as a JSON string it still fits a request body.
MAX_BYTES: Final = 60_000
MAX_ADVISORIES: Final = 200
# A rotation each year for a lifetime; the reader verifies each.
MAX_KEYS: Final = 64
# Small enough that a publisher's next serial always fits an integer.
MAX_SERIAL: Final = 2**32
_LIST_TAG: Final = b"custody/advisory-list"
_KEY_TAG: Final = b"custody/advisory-key"


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it is one line of printable characters")
    return text


def _is_date(text: str) -> str:
    date.fromisoformat(text)
    return text


def _is_moment(text: str) -> str:
    moment_of(text)
    return text


def _is_version(text: str) -> str:
    if numbers(text) is None:
        raise ValueError("it is not a version, such as 5.6.0")
    return text


Sentence = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_printable)]
Model = Annotated[str, StringConstraints(min_length=1, max_length=60), AfterValidator(_printable)]
Maker = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{2,20}$")]
AdvisoryId = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9][A-Z0-9.-]{2,59}$")]
Source = Annotated[str, StringConstraints(pattern=r"^https://[!-~]{4,300}$")]
Day = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), AfterValidator(_is_date)]
Moment = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"),
    AfterValidator(_is_moment),
]
VersionText = Annotated[str, StringConstraints(max_length=30), AfterValidator(_is_version)]
Hex32 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Hex64 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{128}$")]
Serial = Annotated[int, Field(ge=1, le=MAX_SERIAL)]


def moment_of(text: str) -> datetime:
    """Raises ValueError."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


class AdvisoriesRefused(Exception):
    """The list was refused, and the stored one stays. The message says why."""


class MalformedAdvisories(AdvisoriesRefused):
    """It is not a list, or not in canonical form."""


class UntrustedAdvisories(AdvisoriesRefused):
    """No trusted key leads to its signature, or the signature is invalid."""


class OlderAdvisories(AdvisoriesRefused):
    """It is older than the stored list, or expired. Taking it could hide a flaw that is known by now."""


# --- what a list says ---------------------------------------------------------------------------------------


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


class FirmwareSpan(_Strict):
    """``line``: of releases, "" for the main one (`multisig.firmware`). From ``from`` on, below ``below``."""

    line: Annotated[str, StringConstraints(max_length=2)]
    start: VersionText | None = Field(alias="from")
    below: VersionText | None

    @property
    def span(self) -> Span:
        start, end = (None if text is None else numbers(text) for text in (self.start, self.below))
        return Span(self.line, start, end)


class DaySpan(_Strict):
    """The days on which a key was made: from ``from``, before ``before``. Null is no bound."""

    start: Day | None = Field(alias="from")
    before: Day | None


class Concern(StrEnum):
    """Whether an advisory concerns a key. UNKNOWN may be exposed, and counts as exposed."""

    EXPOSED = "exposed"
    UNKNOWN = "unknown"
    NOT = "not"


@dataclass(frozen=True)
class KeyFacts:
    """What the device said at the key's registration. None is unknown.
    ``made_on``: when the key was made, according to its holder; ``registered_on``: the latest possible day.
    Both YYYY-MM-DD.
    """

    maker: str | None
    model: str | None
    firmware: str | None
    made_on: str | None
    registered_on: str


class Affected(_Strict):
    """Keys on devices of a maker. ``models``: prefixes of model names; empty means all. ``firmware``: at the
    registration; empty means every version.
    """

    maker: Maker
    models: Annotated[list[Model], Field(max_length=20)]
    firmware: Annotated[list[FirmwareSpan], Field(max_length=20)]
    made: DaySpan

    @model_validator(mode="after")
    def _names_something(self) -> "Affected":
        for each in self.firmware:
            if each.line not in lines_of(self.maker):
                raise ValueError(f"{self.maker} has no line of releases named {each.line!r}")
            span = each.span
            if span.start is not None and span.end is not None and span.start >= span.end:
                raise ValueError(f"no version is from {each.start} and below {each.below}")
        if (
            self.made.start is not None
            and self.made.before is not None
            and self.made.start >= self.made.before
        ):
            raise ValueError(f"no day is from {self.made.start} and before {self.made.before}")
        return self

    def concern(self, key: KeyFacts) -> Concern:
        known = (self._is_by(key), self._is_model(key), self._has_firmware(key), self._was_made(key))
        if False in known:
            return Concern.NOT
        return Concern.UNKNOWN if None in known else Concern.EXPOSED

    def _is_by(self, key: KeyFacts) -> bool | None:
        return None if key.maker is None else key.maker == self.maker

    def _is_model(self, key: KeyFacts) -> bool | None:
        if not self.models:
            return True
        return None if key.model is None else key.model.startswith(tuple(self.models))

    def _has_firmware(self, key: KeyFacts) -> bool | None:
        if not self.firmware:
            return True
        version = Version.parse(self.maker, key.firmware)
        return None if version is None else any(version in each.span for each in self.firmware)

    def _was_made(self, key: KeyFacts) -> bool | None:
        start, before = self.made.start, self.made.before
        if key.made_on is not None:
            return (start is None or start <= key.made_on) and (before is None or key.made_on < before)
        if start is not None:
            # It may be any older than its registration.
            return False if key.registered_on < start else None
        return True if before is None or key.registered_on < before else None


class Advisory(_Strict):
    """``text`` says what is wrong, ``advice`` what to do; ``sources`` are web pages. ``drill``: an exercise;
    it concerns only vaults on test networks.
    """

    id: AdvisoryId
    severity: Literal["stop-using", "warn"]
    text: Sentence
    advice: Sentence
    sources: Annotated[list[Source], Field(max_length=20)]
    affected: Annotated[list[Affected], Field(min_length=1, max_length=20)]
    drill: bool

    def concern(self, key: KeyFacts) -> Concern:
        """The worst that one of ``affected`` says of the key."""
        found = {each.concern(key) for each in self.affected}
        return next(concern for concern in Concern if concern in found)


# --- who signed it ------------------------------------------------------------------------------------------


class PublisherKey(_Strict):
    """A key (x-only, BIP-340) and the signature of the key before it. The first one's is zeros."""

    epoch: Annotated[int, Field(ge=1, le=MAX_INTEGER)]
    key: Hex32
    signature: Hex64 = "0" * 128

    def message(self, signer: str) -> bytes:
        """What the key before, ``signer``, signs: that this one comes after it."""
        return _tagged(_KEY_TAG, {"signer": signer, "epoch": self.epoch, "key": self.key})


class AdvisoryList(_Strict):
    """``serial`` grows with every list, over all of the publisher's keys. The list is accepted until
    ``expires``.
    """

    format: Literal[1]
    serial: Serial
    issued: Moment
    expires: Moment
    advisories: Annotated[list[Advisory], Field(max_length=MAX_ADVISORIES)]
    keys: Annotated[list[PublisherKey], Field(min_length=1, max_length=MAX_KEYS)]
    signature: Hex64 = "0" * 128

    @model_validator(mode="after")
    def _is_in_order(self) -> "AdvisoryList":
        if self.issued >= self.expires:
            raise ValueError("it expires before it is issued")
        names = [advisory.id for advisory in self.advisories]
        if len(set(names)) != len(names):
            raise ValueError("an advisory is there twice")
        if len({key.key for key in self.keys}) != len(self.keys):
            raise ValueError("a key is there twice")
        if any(key.epoch != self.keys[0].epoch + place for place, key in enumerate(self.keys)):
            raise ValueError("the epochs of its keys do not count up by one")
        return self

    @property
    def line(self) -> bytes:
        return canonical_json(self.model_dump(by_alias=True))

    @property
    def message(self) -> bytes:
        return _tagged(_LIST_TAG, self.model_dump(by_alias=True, exclude={"signature"}))

    @property
    def signer(self) -> PublisherKey:
        return self.keys[-1]

    @property
    def digest(self) -> str:
        return sha256(self.line).hexdigest()

    def signed(self, secret: bytes, aux: bytes) -> "AdvisoryList":
        return self.model_copy(update={"signature": sign(secret, self.message, aux)})


def sign(secret: bytes, message: bytes, aux: bytes) -> str:
    """BIP-340, in hex. ``aux``: 32 random bytes."""
    return PrivateKey(secret).sign_schnorr(message, aux).hex()


def _tagged(tag: bytes, value: JsonValue) -> bytes:
    """The tagged hash of BIP-340 over canonical JSON."""
    prefix = sha256(tag).digest()
    return sha256(prefix + prefix + canonical_json(value)).digest()


def _is_signed(key: str, signature: str, message: bytes) -> bool:
    try:
        return PublicKeyXOnly(bytes.fromhex(key)).verify(bytes.fromhex(signature), message)
    except ValueError:  # no point of the curve has this coordinate
        return False


def public_key_of(secret: bytes) -> str:
    """The x-only public key that a publisher's secret signs for, in hex. Raises ValueError."""
    return PrivateKey(secret).public_key_xonly.format().hex()


def publish(
    draft: JsonValue,
    secret: bytes,
    aux: bytes,
    *,
    after: AdvisoryList | None = None,
    former_secret: bytes | None = None,
) -> AdvisoryList:
    """Sign a publisher's draft: ``issued``, ``expires`` and ``advisories``. ``after``: the previous list, for
    the serial and the keys. ``former_secret``: the key that signed it, where ``secret`` is a new one. Raises
    MalformedAdvisories, UntrustedAdvisories.
    """
    if not isinstance(draft, dict) or draft.keys() != _WRITTEN:
        raise MalformedAdvisories(f"A draft has exactly these fields: {', '.join(sorted(_WRITTEN))}.")
    key = public_key_of(secret)
    keys = [PublisherKey(epoch=1, key=key)] if after is None else list(after.keys)
    if keys[-1].key != key:
        if former_secret is None or public_key_of(former_secret) != keys[-1].key:
            raise UntrustedAdvisories("Another key signed the previous list: give it as the former key.")
        last = PublisherKey(epoch=keys[-1].epoch + 1, key=key)
        signature = sign(former_secret, last.message(keys[-1].key), aux)
        keys.append(last.model_copy(update={"signature": signature}))
    said: dict[str, JsonValue] = {
        **draft,
        "format": 1,
        "serial": 1 if after is None else after.serial + 1,
        "keys": [each.model_dump() for each in keys],
        "signature": "0" * 128,
    }
    return read_list(canonical_json(said)).signed(secret, aux)


_WRITTEN: Final = frozenset({"issued", "expires", "advisories"})


# --- believing it -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """What is stored of a publisher's newest list. ``root``: the configured key that led to it; ``key``: the
    one that signed it, of ``epoch``; ``line``: the list itself.
    """

    root: str
    key: str
    epoch: int
    serial: int
    digest: str
    line: bytes

    @property
    def replaced(self) -> frozenset[str]:
        """The keys before ``key``, each of which signed the next. Any other key that the list names may be
        another publisher's.
        """
        # Only the keys: the rest may be in a format that is no longer read.
        told = cast("dict[str, list[JsonValue]]", parse_canonical(self.line))["keys"]
        keys = [PublisherKey.model_validate(each) for each in told]
        found = set[str]()
        for before, key in zip(keys[-2::-1], keys[:0:-1], strict=True):
            if not _is_signed(before.key, key.signature, key.message(before.key)):
                break
            found.add(before.key)
        return frozenset(found)


def read_list(data: bytes) -> AdvisoryList:
    """Parse a list without checking its signatures. Raises MalformedAdvisories."""
    if len(data) > MAX_BYTES:
        raise MalformedAdvisories(f"The list has more than {MAX_BYTES} bytes.")
    line = data.removesuffix(b"\n")
    try:
        told = AdvisoryList.model_validate(parse_canonical(line))
    except JsonError as error:
        raise MalformedAdvisories(f"This is no list of advisories: {error}.") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = fault_place(first) or "the list"
        raise MalformedAdvisories(f"This is no list of advisories: {place} {fault_words(first)}.") from None
    if told.line != line:
        raise MalformedAdvisories("This is no list of advisories: it is not written in the one form.")
    return told


def believe(
    data: bytes, trusted: Collection[str], held: Iterable[Held], now: datetime
) -> tuple[AdvisoryList, Held]:
    """Verify a list; returns it and what is to be stored. ``trusted``: the configured keys, in hex; ``held``:
    what is stored, of every publisher. A list that is stored already is returned unchanged.
    Raises MalformedAdvisories, UntrustedAdvisories, OlderAdvisories.
    """
    told, known = read_list(data), tuple(held)
    root, place = _anchor(told, trusted, known)
    _require_signed(told, place)
    _require_not_replaced(told.keys[place:], told.digest, known)
    _require_newer(told, known)
    if moment_of(told.expires) <= now:
        raise OlderAdvisories(f"The list expired on {told.expires}. Ask its publisher for a newer one.")
    last = told.signer
    return told, Held(root, last.key, last.epoch, told.serial, told.digest, told.line)


def _anchor(told: AdvisoryList, trusted: Collection[str], known: Iterable[Held]) -> tuple[str, int]:
    """The trusted root, and the index among the list's keys of the newest one that it has led to before."""
    places = {key.key: place for place, key in enumerate(told.keys)}
    followed = {held.root: held for held in known if held.root in trusted}
    for root in sorted(trusted, key=lambda key: places.get(key, MAX_KEYS)):
        before = followed.get(root)
        if before is None:
            if root in places:
                return root, places[root]
        elif before.key in places:
            if told.keys[places[before.key]].epoch != before.epoch:
                raise UntrustedAdvisories("The list counts its publisher's keys otherwise than before.")
            return root, places[before.key]
        elif root in places:
            if told.signer.epoch < before.epoch:
                raise OlderAdvisories("The list is signed by a key that its publisher has replaced since.")
            raise UntrustedAdvisories("The list leaves out the key that signed its publisher's last one.")
    if not trusted:
        raise UntrustedAdvisories("No publisher of advisories is trusted here: set its key first.")
    raise UntrustedAdvisories("None of the keys that are trusted here leads to this list's signature.")


def _require_signed(told: AdvisoryList, place: int) -> None:
    for before, key in zip(told.keys[place:], told.keys[place + 1 :], strict=False):
        if not _is_signed(before.key, key.signature, key.message(before.key)):
            raise UntrustedAdvisories(f"The key of epoch {key.epoch} is not signed by the one before it.")
    if not _is_signed(told.signer.key, told.signature, told.message):
        raise UntrustedAdvisories("The list was changed, or is not signed by the key that it names.")


def _require_not_replaced(chain: Sequence[PublisherKey], digest: str, known: Iterable[Held]) -> None:
    """A publisher's newest known key must be the last in the list, whichever of its keys is configured.
    ``chain``: the list's keys from the trusted one on.
    """
    for held in known:
        if held.digest == digest:
            continue
        replaced = held.replaced
        ours = [key.key for key in chain if key.key == held.key or key.key in replaced]
        if ours and ours[-1] != held.key:
            raise OlderAdvisories("The list is signed by a key that its publisher has replaced since.")


def _require_newer(told: AdvisoryList, known: Iterable[Held]) -> None:
    """Compares with every stored list that a key of this one signed, also where another root is configured
    now.
    """
    keys = {key.key for key in told.keys}
    for held in known:
        if held.key not in keys or held.digest == told.digest:
            continue
        if told.serial <= held.serial:
            raise OlderAdvisories(
                f"The list has the serial {told.serial}, and another one with {held.serial} is held."
            )
        if told.signer.epoch < held.epoch:
            raise OlderAdvisories("The list is signed by a key that its publisher has replaced since.")
