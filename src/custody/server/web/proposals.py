"""Transaction proposals: creating, reading with long poll, approving and declining."""

import time
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import urlencode

from pydantic import TypeAdapter
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from custody.schemas.proposals import (
    MAX_LONG_POLL_SECONDS,
    CreatePsbtRequest,
    CreatePsbtResponse,
    Proposal,
    ProposalStatus,
    SignPsbtRequest,
    SignPsbtResponse,
)
from custody.schemas.queries import PsbtQuery
from custody.schemas.users import PermissionName
from custody.server.domain.errors import (
    ChainUnavailable,
    Dust,
    InsufficientFunds,
    KeyIsRevoked,
    LockedFunds,
    NotASigner,
    NotFound,
    PolicyUnavailable,
    PsbtDiffers,
    RoleLimitExceeded,
    SignatureInvalid,
    StateConflict,
    VaultLimitExceeded,
    WrongNetworkAddress,
)
from custody.server.service.proposals.proposals import Filter, Page, no_such_proposal
from custody.server.service.proposals.signing import read_returned
from custody.server.web.endpoint import Call, Endpoint, Unit

READERS = frozenset(
    {
        PermissionName.PAYMENT_INIT,
        PermissionName.PAYMENT_APPROVE,
        PermissionName.MANAGE_WORKSPACE,
        PermissionName.VIEW_BALANCES,
    }
)
# A vault's movement asks for PAYMENT_APPROVE, which is looked at with the proposal; one's own forward for either.
SIGNERS = frozenset({PermissionName.PAYMENT_APPROVE, PermissionName.PAYMENT_INIT})
# Other processes commit too: a long poll looks again this often whatever it hears.
RECHECK_SECONDS = 2.0
_LIST = TypeAdapter(list[Proposal])
LONG_POLL = {
    "parameters": [
        {
            "name": name,
            "in": "header",
            "required": False,
            "schema": {"type": "string"},
            "description": text,
            "example": example,
        }
        for name, text, example in (
            ("If-None-Match", "The ETag of what was read before.", '"0123456789abcdef0123456789abcdef"'),
            ("Prefer", "How long to wait for a change (RFC 7240).", "wait=30"),
        )
    ],
    "responses": {"304": {"description": "Nothing has changed."}},
}


def create_psbt(call: Call[CreatePsbtRequest]) -> CreatePsbtResponse:
    """Proposes a send from a vault. Its coins are locked; nothing is signed and nothing reaches the network."""
    return call.services.proposals.create(call.db, call.caller, call.access, call.body)


def sign_psbt(call: Call[SignPsbtRequest]) -> SignPsbtResponse:
    """Approves with a signed PSBT, or declines. The approval that meets the threshold finalises the transaction, which
    is then broadcast; the answer waits a moment for that.
    """
    store, signing, request = call.services.store, call.services.signing, call.body
    with store.read() as db:
        txid = signing.expect(db, call.caller, call.enter(db, request.workspace_id), request)
    returned = read_returned(request, txid)
    with store.write() as db:
        access = call.enter(db, request.workspace_id)
        answer = signing.submit(db, call.caller, access, request, returned)
    return _after_broadcast(call, answer) if answer.status is ProposalStatus.SIGNED else answer


def _after_broadcast(call: Call[SignPsbtRequest], answer: SignPsbtResponse) -> SignPsbtResponse:
    """The broadcast is a worker's business; whoever signed last likes to hear of it."""
    services = call.services
    deadline = time.monotonic() + services.broadcast_wait_seconds
    while (
        answer.status is ProposalStatus.SIGNED
        and not services.changes.closing
        and (left := deadline - time.monotonic()) > 0
    ):
        seen = services.changes.version
        with services.store.read() as db:
            proposal = services.proposals.find(db, answer.psbt_id)
            update = {"status": ProposalStatus(proposal.status), "txid": proposal.txid}
        answer = answer.model_copy(update=update)
        if answer.status is ProposalStatus.SIGNED:
            services.changes.wait(seen, min(left, RECHECK_SECONDS))
    return answer


async def psbt(call: Call[PsbtQuery]) -> Response:
    """One proposal, or a workspace's. ``If-None-Match`` with ``Prefer: wait=SECONDS`` waits for a change."""
    changes = call.services.changes
    deadline = time.monotonic() + _wait_seconds(call.request)
    while True:
        seen = changes.version
        shown = await run_in_threadpool(_read, call)
        if not _matches(call.request, shown.etag):
            return shown.response()
        left = deadline - time.monotonic()
        if left <= 0 or changes.closing:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": shown.etag})
        with call.services.rates.long_poll(call.caller.user_id):
            await changes.wait_async(seen, min(left, RECHECK_SECONDS))


@dataclass(frozen=True)
class _Shown:
    body: bytes
    headers: dict[str, str]

    @property
    def etag(self) -> str:
        return f'"{sha256(self.body).hexdigest()[:32]}"'

    def response(self) -> Response:
        headers = {**self.headers, "ETag": self.etag, "Cache-Control": "private, no-cache"}
        return Response(self.body, media_type="application/json", headers=headers)


def _read(call: Call[PsbtQuery]) -> _Shown:
    """Checked anew at each look: a permission that is taken away ends a long poll too (P23)."""
    query, proposals = call.body, call.services.proposals
    with call.services.store.read() as db:
        if query.psbt_id is None:
            assert query.workspace_id is not None, "the query's own rule"
            access = call.enter(db, query.workspace_id)
            awaiting = call.caller.user_id if query.awaiting else None
            wanted = Filter(query.status, awaiting, query.after, query.limit)
            return _shown_page(query, proposals.page(db, access, wanted))
        found = proposals.find(db, query.psbt_id)
        if query.workspace_id not in {None, found.workspace_id}:
            raise no_such_proposal()
        _enter_workspace_of(call, db, found.workspace_id)
        return _Shown(proposals.record(db, found).model_dump_json(by_alias=True).encode(), {})


def _enter_workspace_of(call: Call[PsbtQuery], db: Session, workspace_id: int) -> None:
    """Another tenant's proposal is answered word for word as one that never was (P24)."""
    try:
        call.enter(db, workspace_id)
    except NotFound:
        raise no_such_proposal() from None


def _shown_page(query: PsbtQuery, page: Page) -> _Shown:
    headers = {"X-Total-Count": str(page.total)}
    if page.has_more:
        values = query.model_dump(mode="json", exclude_none=True) | {"after": page.items[-1].psbt_id}
        headers["Link"] = f'</api/v1/psbt?{urlencode(values)}>; rel="next"'
    return _Shown(_LIST.dump_json(page.items, by_alias=True), headers)


def _wait_seconds(request: Request) -> float:
    """``Prefer: wait=SECONDS`` (RFC 7240); what cannot be understood is not preferred."""
    for preference in request.headers.get("prefer", "").split(","):
        name, _, value = preference.strip().partition("=")
        if name.lower() == "wait" and value.isascii() and value.isdigit() and len(value) < 5:
            return min(int(value), MAX_LONG_POLL_SECONDS)
    return 0


def _matches(request: Request, etag: str) -> bool:
    """RFC 9110, section 13.1.2: the weak comparison."""
    given = request.headers.get("if-none-match", "")
    return etag in {tag.strip().removeprefix("W/") for tag in given.split(",")}


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/v1/create-psbt",
        create_psbt,
        CreatePsbtResponse,
        frozenset({PermissionName.MANAGE_WORKSPACE}),
        Unit.WRITE,
        CreatePsbtRequest,
        creates=True,
        refuses=(
            ChainUnavailable,
            Dust,
            InsufficientFunds,
            LockedFunds,
            PolicyUnavailable,
            RoleLimitExceeded,
            VaultLimitExceeded,
            WrongNetworkAddress,
        ),
    ),
    Endpoint(
        "GET",
        "/api/v1/psbt",
        psbt,
        Proposal | list[Proposal],
        READERS,
        Unit.OWN,
        PsbtQuery,
        extra=LONG_POLL,
    ),
    Endpoint(
        "POST",
        "/api/v1/sign-psbt",
        sign_psbt,
        SignPsbtResponse,
        SIGNERS,
        Unit.OWN,
        SignPsbtRequest,
        carries_psbt=True,
        refuses=(KeyIsRevoked, NotASigner, PsbtDiffers, SignatureInvalid, StateConflict),
    ),
)
