"""From the platform's shapes to the core's values.

A list is read entry by entry and up to a bound: an entry that cannot be read is left out by its name and
hides no other. So a newer platform, or one bad record, does not silence everything else. The signed-in person
and the workspaces are read leniently, because everything else depends on them; roles and permissions are not
read at all.
"""

import base64
import binascii
import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import islice
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from custody.client import BadAnswer
from custody.client.flow import Core, call
from custody.exchange import Plan, Reply, Request
from custody.schemas.asset_tokens import Contract
from custody.schemas.common import Int64, TextId
from custody.schemas.faults import fault_place, fault_words
from custody.schemas.history import CursorText, VaultMovement
from custody.schemas.proposals import DecodedCall, Proposal, ProposalTrouble
from custody.schemas.users import WorkspaceInfo
from custody.schemas.vaults import Vault as VaultShape
from multisig.tokens import MAX_BYTECODE_BYTES
from signerd.core.claims import VaultClaim
from signerd.core.text import foreign, plain, said
from signerd.core.tokens import Published, TokenClaim, flag
from signerd.core.trouble import Trouble
from signerd.core.values import Snapshot
from signerd.errors import PlatformAnswersWrongly


@dataclass(frozen=True)
class Workspace:
    """``network``: "mainnet" or "testnet"."""

    id: int
    name: str
    network: str


_ID = TypeAdapter(TextId)
# A standard transaction has 400,000 weight units: as many bytes at most.
_MAX_DEPLOYMENT_HEX = 2 * 400_000


def known_id(text: str) -> str:
    """An id as the platform promises them; another one would not come back from a call that names it.

    Raises:
        PlatformAnswersWrongly.
    """
    try:
        return _ID.validate_python(text)
    except ValidationError:
        shown = foreign(text)[:80]
        raise PlatformAnswersWrongly(f"the platform gives an id that is none: {shown!r}") from None


def snapshot_of(shape: Proposal, workspace: Workspace) -> Snapshot:
    """Raises PlatformAnswersWrongly for ids that are none."""
    return Snapshot(
        psbt_id=known_id(shape.psbt_id),
        workspace_id=workspace.id,
        workspace_network=workspace.network,
        vault_id=known_id(shape.vault_id),
        kind=shape.tx_type,
        status=shape.status,
        psbt=_psbt_bytes(shape.psbt_base64),
        recipients=tuple(shape.recipients),
        amounts=tuple(shape.amounts_sats),
        op_return=shape.op_return,
        fee=shape.fee_sats,
        txid_expected=shape.txid_expected,
        description=shape.description or "",
        created_by=shape.created_by,
        required=shape.required_signatures,
        collected=shape.collected_signatures,
        txid=shape.txid,
        confirmations=shape.confirmations,
        replaces=shape.replaces_psbt_id,
        call=_claim(shape.decoded_call),
        contract_uid=shape.contract_uid,
        created_by_name=shape.created_by_name or "",
        created_at=moment_of(shape.created_at),
        trouble=None if shape.trouble is None else _trouble(shape.trouble),
    )


def _trouble(told: ProposalTrouble) -> Trouble:
    return Trouble(told.kind, told.advice, told.words, moment_of(told.since), told.txid, told.psbt_id)


def moment_of(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _claim(told: DecodedCall | None) -> TokenClaim | None:
    if told is None:
        return None
    members = told.model_dump(exclude_none=True, exclude={"words"})
    return TokenClaim(tuple((name, _word(value)) for name, value in sorted(members.items())))


def _word(value: str | int | bool) -> str:
    return flag(value) if isinstance(value, bool) else str(value)


def published_of(shape: Contract) -> Published:
    """Raises PlatformAnswersWrongly where it shows none, or more than there may be."""
    if shape.bytecode is None:
        raise PlatformAnswersWrongly("the platform does not show the token's bytecode")
    deployment = shape.deployment_hex
    if len(shape.bytecode) > MAX_BYTECODE_BYTES or len(deployment or "") > _MAX_DEPLOYMENT_HEX:
        raise PlatformAnswersWrongly("the platform shows a token that is longer than a token may be")
    try:
        raw = None if deployment is None else bytes.fromhex(deployment)
    except ValueError:
        raise PlatformAnswersWrongly("the platform shows a deployment that is no hex") from None
    return Published(shape.bytecode.encode(), raw)


def _psbt_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        # Kept as it came: the review refuses it with the parser's reason.
        return text.encode()


def claim_of(shape: VaultShape, workspace: Workspace) -> VaultClaim:
    """Raises PlatformAnswersWrongly for ids that are none."""
    return VaultClaim(
        known_id(shape.id), workspace.id, shape.name, shape.descriptor, shape.m, shape.n, shape.address
    )


T = TypeVar("T")
S = TypeVar("S", bound=BaseModel)
_log = logging.getLogger(__name__)

# Entries of one list. A workspace has a hundred vaults and a thousand pending proposals at most; the oldest
# come first.
MOST_LISTED = 2_000
# No number of 64 bits has more characters, and Python refuses to read one of thousands of digits.
_LONGEST_NUMBER = 25
UNFORESEEN = "taking it failed unexpectedly: signerd's own messages say how."


@dataclass(frozen=True)
class Unreadable:
    """An entry that is left out: ``name`` is its id, or its place where it has none."""

    name: str
    why: str


@dataclass(frozen=True)
class Listed(Generic[T]):
    items: tuple[T, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()

    def __add__(self, other: "Listed[T]") -> "Listed[T]":
        return Listed((*self.items, *other.items), (*self.unreadable, *other.unreadable))


TOO_LONG = Unreadable("the rest", f"the list has more than {MOST_LISTED:,} entries, and is read so far.")


@dataclass(frozen=True)
class Entries:
    """As they came: anything that JSON can say. ``size``: bytes of the answer."""

    items: tuple[object, ...]
    etag: str | None
    size: int


def entries(core: Core, request: Request) -> Plan[Entries | None]:
    """A list that is not looked into; None where it is still the one of the request's ``If-None-Match``.

    Raises what the client raises; BadAnswer where it is no list.
    """
    reply = yield from call(core, request, repeatable=True)
    etag = reply.headers.get("etag", request.headers.get("If-None-Match"))
    if reply.status == HTTPStatus.NOT_MODIFIED:
        return None
    found = loosely(reply)
    if not isinstance(found, list):
        raise BadAnswer(f"{request.path}: the body is no list")
    return Entries(tuple(found), etag, len(reply.content))


@dataclass(frozen=True)
class HistoryPage:
    """``next``: where the next page begins; None at the end."""

    listed: Listed[VaultMovement]
    next: str | None


_NEXT: TypeAdapter[str | None] = TypeAdapter(CursorText | None)


def history_page(core: Core, request: Request, most: int) -> Plan[HistoryPage]:
    """Up to ``most`` movements, read entry by entry. Raises what the client raises; BadAnswer where it is no
    such page.
    """
    reply = yield from call(core, request, repeatable=True)
    found = loosely(reply)
    if not isinstance(found, dict) or not isinstance(found.get("movements"), list):
        raise BadAnswer(f"{request.path}: the body is no page of movements")
    try:
        following = _NEXT.validate_python(found.get("next_cursor"))
    except ValidationError:
        raise BadAnswer(f"{request.path}: it names a next page that is none") from None
    listed = read_each(found["movements"][:most], "txid", VaultMovement, lambda told: told)
    return HistoryPage(listed, following)


def loosely(reply: Reply) -> Any:
    """The JSON of an answer, whatever stands in it. Raises BadAnswer where it is none.

    Half a character and a number of a thousand digits are some entry's fault, and not the list's.
    """
    try:
        return json.loads(reply.content, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"{reply.path}: no JSON ({type(error).__name__})") from None


def _whole(text: str) -> int | float:
    """What is longer than any field takes is a number that none takes."""
    return int(text) if len(text) <= _LONGEST_NUMBER else float("inf")


def read_each(
    found: Iterable[object], id_of: str, shape: type[S], make: Callable[[S], T], *, before: int = 0
) -> Listed[T]:
    """``make`` of each entry; left out where it is not of the shape, or where taking it fails in any way.

    ``before``: how many came before these, for the name of one without an id.
    """
    items, unreadable = [], []
    for number, entry in enumerate(found, start=before + 1):
        try:
            # As JSON again: what counts as a text or a number is the same as where the client reads it.
            items.append(make(shape.model_validate_json(json.dumps(entry))))
        except Exception as error:  # noqa: BLE001 - an entry that breaks our code must not stop the others
            name = entry.get(id_of) if isinstance(entry, dict) else None
            unreadable.append(Unreadable(_id(name) or f"entry {number}", _why(error)))
    return Listed(tuple(items), tuple(unreadable))


def last_id(found: Iterable[object], id_of: str) -> str | None:
    """The id of the last entry that has one."""
    names = [_id(entry.get(id_of)) for entry in found if isinstance(entry, dict)]
    return next((name for name in reversed(names) if name is not None), None)


def _id(name: object) -> str | None:
    try:
        return known_id(name) if isinstance(name, str) else None
    except PlatformAnswersWrongly:
        return None


def _why(error: Exception) -> str:
    if isinstance(error, PlatformAnswersWrongly):
        return said(error)
    if not isinstance(error, ValidationError):
        _log.error("an entry of the platform's could not be taken", exc_info=error)
        return UNFORESEEN
    first = error.errors(include_url=False, include_input=False)[0]
    return plain(f"{fault_place(first) or 'the entry'} {fault_words(first)}.")


# Each is followed by a task of its own, with a request that waits.
MOST_WORKSPACES = 100
_UUID: TypeAdapter[int] = TypeAdapter(Int64)


@dataclass(frozen=True)
class Person:
    user_id: int
    workspaces: Listed[Workspace]


def read_person(core: Core) -> Plan[Person]:
    """Raises what the client raises; BadAnswer without an id."""
    reply = yield from call(core, core.build("GET", "/api/v1/get-user-info"), repeatable=True)
    found = loosely(reply)
    try:
        user_id = _UUID.validate_python(found.get("UUID") if isinstance(found, dict) else None, strict=True)
    except ValidationError:
        raise BadAnswer("/api/v1/get-user-info: UUID: it is no number of a user") from None
    infos = list(islice(_infos(found), MOST_WORKSPACES + 1))
    listed = read_each(infos[:MOST_WORKSPACES], "uid", WorkspaceInfo, _workspace)
    # One id is one workspace, under the first name that it has.
    once = {workspace.id: workspace for workspace in reversed(listed.items)}
    more = (_TOO_MANY,) if len(infos) > MOST_WORKSPACES else ()
    return Person(user_id, Listed(tuple(reversed(once.values())), (*listed.unreadable, *more)))


_TOO_MANY = Unreadable(
    "the rest", f"the list has more than {MOST_WORKSPACES} workspaces, and is read so far."
)


def _infos(user: object) -> Iterator[object]:
    for organisation in _each(user, "OrganisationsInfo", "Organisations"):
        for entry in _each(organisation, "Workspaces", "Workspaces"):
            yield entry.get("WorkspaceInfo") if isinstance(entry, dict) else entry


def _each(value: object, outer: str, inner: str) -> list[object]:
    """The list within; where it is none, one entry that nothing can be read from, so that it is told."""
    within = value.get(outer) if isinstance(value, dict) else None
    found = within.get(inner) if isinstance(within, dict) else None
    return found if isinstance(found, list) else [None]


def _workspace(info: WorkspaceInfo) -> Workspace:
    return Workspace(info.uid, info.name, info.net)
