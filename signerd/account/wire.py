"""From the platform's shapes to the core's values.

A list is parsed entry by entry, up to a bound. An entry that cannot be parsed is left out and reported by its
id, so one bad record, or a newer platform, does not hide the other entries. Of the signed-in person only the
id and the workspaces are read: everything else depends on them.
"""

import base64
import binascii
import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from custody.client import BadAnswer
from custody.client.flow import Core, call
from custody.common.exchange import HttpReply, HttpRequest, Plan
from custody.common.text import foreign, plain, said
from custody.schemas.asset_tokens import Contract
from custody.schemas.common import Int64, TextId
from custody.schemas.errors import fault_place, fault_words
from custody.schemas.history import CursorText, VaultMovement
from custody.schemas.proposals import DecodedCall, Proposal, ProposalSigner, ProposalTrouble
from custody.schemas.users import WorkspaceInfo
from custody.schemas.vaults import MAX_SIGNERS
from custody.schemas.vaults import Vault as VaultShape
from multisig.tokens import MAX_BYTECODE_BYTES
from signerd.core.text import moment_of, person_of
from signerd.core.tokens import PublishedToken, TokenClaim, flag
from signerd.core.values import DeclineClaim, Snapshot, Trouble, VaultClaim
from signerd.errors import PlatformAnswersWrongly


@dataclass(frozen=True)
class PlatformWorkspace:
    """``network``: "mainnet" or "testnet"."""

    id: int
    name: str
    network: str


_ID = TypeAdapter(TextId)
# A standard transaction has 400,000 weight units: as many bytes at most.
_MAX_DEPLOYMENT_HEX = 2 * 400_000


def known_id(text: str) -> str:
    """Check an id against the form that the platform's API gives ids.

    Raises:
        PlatformAnswersWrongly.
    """
    try:
        return _ID.validate_python(text)
    except ValidationError:
        shown = foreign(text)[:80]
        raise PlatformAnswersWrongly(f"the platform gives a malformed id: {shown!r}") from None


def snapshot_of(shape: Proposal, workspace: PlatformWorkspace) -> Snapshot:
    """Raises PlatformAnswersWrongly for ids that are none."""
    try:
        psbt = base64.b64decode(shape.psbt_base64, validate=True)
    except (binascii.Error, ValueError):
        # Kept as received: the review refuses it with the parser's reason.
        psbt = shape.psbt_base64.encode()
    return Snapshot(
        psbt_id=known_id(shape.psbt_id),
        workspace_id=workspace.id,
        workspace_network=workspace.network,
        vault_id=known_id(shape.vault_id),
        kind=shape.tx_type,
        status=shape.status,
        psbt=psbt,
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
        declines=tuple(
            islice((_decline(one) for one in shape.signers if one.decision == "reject"), MAX_SIGNERS)
        ),
        why_ended=plain(shape.failure_reason or ""),
    )


def _decline(shape: ProposalSigner) -> DeclineClaim:
    at = None if shape.decided_at is None else moment_of(shape.decided_at)
    return DeclineClaim(person_of(shape.name or "", shape.user_id), plain(shape.reason or ""), at)


def _trouble(shape: ProposalTrouble) -> Trouble:
    return Trouble(shape.kind, shape.advice, shape.words, moment_of(shape.since), shape.txid, shape.psbt_id)


def _claim(shape: DecodedCall | None) -> TokenClaim | None:
    if shape is None:
        return None
    members = sorted(shape.model_dump(exclude_none=True, exclude={"words"}).items())
    return TokenClaim(
        tuple((name, flag(value) if isinstance(value, bool) else str(value)) for name, value in members)
    )


def published_of(shape: Contract) -> PublishedToken:
    """Raises PlatformAnswersWrongly where the bytecode is missing, or larger than allowed."""
    if shape.bytecode is None:
        raise PlatformAnswersWrongly("the platform does not show the token's bytecode")
    deployment = shape.deployment_hex
    if len(shape.bytecode) > MAX_BYTECODE_BYTES or len(deployment or "") > _MAX_DEPLOYMENT_HEX:
        raise PlatformAnswersWrongly("the platform shows a token that is longer than a token may be")
    try:
        raw = None if deployment is None else bytes.fromhex(deployment)
    except ValueError:
        raise PlatformAnswersWrongly("the platform shows a deployment that is not hex") from None
    return PublishedToken(shape.bytecode.encode(), raw)


def claim_of(shape: VaultShape, workspace: PlatformWorkspace) -> VaultClaim:
    """Raises PlatformAnswersWrongly for ids that are none."""
    return VaultClaim(
        known_id(shape.id),
        workspace.id,
        shape.name,
        shape.descriptor,
        shape.m,
        shape.n,
        shape.address,
        None if shape.replaced_by is None else known_id(shape.replaced_by),
    )


T = TypeVar("T")
S = TypeVar("S", bound=BaseModel)
_log = logging.getLogger(__name__)

# The most entries read of one list. A workspace has at most a hundred vaults and a thousand pending
# proposals.
MOST_LISTED = 2_000
# Enough for 64 bits. Python refuses to convert thousands of digits.
_LONGEST_NUMBER = 25
UNFORESEEN = "recording it failed unexpectedly: see signerd's log."


@dataclass(frozen=True)
class UnreadableEntry:
    """An entry that was left out: ``name`` is its id, or its position if it has none."""

    name: str
    why: str


@dataclass(frozen=True)
class Listed(Generic[T]):
    items: tuple[T, ...] = ()
    unreadable: tuple[UnreadableEntry, ...] = ()

    def __add__(self, other: "Listed[T]") -> "Listed[T]":
        return Listed((*self.items, *other.items), (*self.unreadable, *other.unreadable))


TOO_LONG = UnreadableEntry("the rest", f"the list has more than {MOST_LISTED:,} entries, and is read so far.")


@dataclass(frozen=True)
class Entries:
    """The unparsed entries of a list. ``size``: bytes of the answer."""

    items: tuple[object, ...]
    etag: str | None
    size: int


def entries(core: Core, request: HttpRequest) -> Plan[Entries | None]:
    """The unparsed entries of a list; None where it still matches the request's ``If-None-Match``.

    Raises what the client raises; BadAnswer where it is not a list.
    """
    reply = yield from call(core, request, repeatable=True)
    etag = reply.headers.get("etag", request.headers.get("If-None-Match"))
    if reply.status == HTTPStatus.NOT_MODIFIED:
        return None
    body = lenient_json(reply)
    if not isinstance(body, list):
        raise BadAnswer(f"{request.path}: the body is not a list")
    return Entries(tuple(body), etag, len(reply.content))


_NEXT: TypeAdapter[str | None] = TypeAdapter(CursorText | None)


def history_page(
    core: Core, request: HttpRequest, most: int
) -> Plan[tuple[Listed[VaultMovement], str | None]]:
    """Up to ``most`` movements, parsed one by one, and where the next page begins; None at the end. Raises
    what the client raises; BadAnswer for a malformed page.
    """
    reply = yield from call(core, request, repeatable=True)
    body = lenient_json(reply)
    if not isinstance(body, dict) or not isinstance(body.get("movements"), list):
        raise BadAnswer(f"{request.path}: the body is not a page of movements")
    try:
        following = _NEXT.validate_python(body.get("next_cursor"))
    except ValidationError:
        raise BadAnswer(f"{request.path}: its next_cursor is malformed") from None
    listed = read_each(body["movements"][:most], "txid", VaultMovement, lambda shape: shape)
    return listed, following


def lenient_json(reply: HttpReply) -> Any:
    """The JSON of an answer. Raises BadAnswer where it is not JSON.

    A lone surrogate and a number of a thousand digits are accepted here: they make their entry invalid, not
    the list.
    """
    try:
        # Infinity, which no field accepts, in place of a number with too many digits.
        return json.loads(
            reply.content, parse_int=lambda text: int(text) if len(text) <= _LONGEST_NUMBER else float("inf")
        )
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"{reply.path}: not JSON ({type(error).__name__})") from None


def read_each(
    entries: Iterable[object], id_of: str, shape: type[S], make: Callable[[S], T], *, before: int = 0
) -> Listed[T]:
    """``make`` of each entry. An entry that is malformed, or for which ``make`` raises, is left out.

    ``before``: the number of earlier entries, to name one without an id by its position.
    """
    items, unreadable = [], []
    for number, entry in enumerate(entries, start=before + 1):
        try:
            # Validated as JSON, in pydantic's JSON mode, as the client does.
            items.append(make(shape.model_validate_json(json.dumps(entry))))
        except Exception as error:  # noqa: BLE001 - an entry that breaks our code must not stop the others
            name = entry.get(id_of) if isinstance(entry, dict) else None
            unreadable.append(UnreadableEntry(_id(name) or f"entry {number}", _why(error)))
    return Listed(tuple(items), tuple(unreadable))


def last_id(entries: Iterable[object], id_of: str) -> str | None:
    """The id of the last entry that has one."""
    names = [_id(entry.get(id_of)) for entry in entries if isinstance(entry, dict)]
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
        _log.error("an entry of the platform's could not be read", exc_info=error)
        return UNFORESEEN
    first = error.errors(include_url=False, include_input=False)[0]
    return plain(f"{fault_place(first) or 'the entry'} {fault_words(first)}.")


# Each workspace has a task of its own, with a long poll.
MOST_WORKSPACES = 100
_UUID: TypeAdapter[int] = TypeAdapter(Int64)


def read_person(core: Core) -> Plan[tuple[int, Listed[PlatformWorkspace]]]:
    """The user's id and workspaces. Raises what the client raises; BadAnswer without an id."""
    reply = yield from call(core, core.build("GET", "/api/v1/get-user-info"), repeatable=True)
    body = lenient_json(reply)
    try:
        user_id = _UUID.validate_python(body.get("UUID") if isinstance(body, dict) else None, strict=True)
    except ValidationError:
        raise BadAnswer("/api/v1/get-user-info: UUID: it is not a user's number") from None
    entries = (
        entry
        for organisation in _each(body, "OrganisationsInfo", "Organisations")
        for entry in _each(organisation, "Workspaces", "Workspaces")
    )
    wanted = (entry.get("WorkspaceInfo") if isinstance(entry, dict) else entry for entry in entries)
    infos = list(islice(wanted, MOST_WORKSPACES + 1))
    listed = read_each(
        infos[:MOST_WORKSPACES],
        "uid",
        WorkspaceInfo,
        lambda info: PlatformWorkspace(info.uid, info.name, info.net),
    )
    # Of workspaces with the same id the first counts.
    once = {workspace.id: workspace for workspace in reversed(listed.items)}
    more = (_TOO_MANY,) if len(infos) > MOST_WORKSPACES else ()
    return user_id, Listed(tuple(reversed(once.values())), (*listed.unreadable, *more))


_TOO_MANY = UnreadableEntry(
    "the rest", f"the list has more than {MOST_WORKSPACES} workspaces, and is read so far."
)


def _each(value: object, outer: str, inner: str) -> list[object]:
    """The inner list; where it is malformed, one unreadable entry, so that it is reported."""
    within = value.get(outer) if isinstance(value, dict) else None
    nested = within.get(inner) if isinstance(within, dict) else None
    return nested if isinstance(nested, list) else [None]
