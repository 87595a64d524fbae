"""The platform as the daemon uses it: the core's values in and out, and failures that say whether to try again."""

import base64
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from custody.client import ApiError, AsyncClient, BadAnswer, ProposalList, Unreachable
from custody.client import SignedOut as ClientSignedOut
from custody.schemas.errors import ErrorCode
from custody.schemas.keys import Key, KeyChallenge, KeyChallengeRequest, RegisterKeyRequest
from custody.schemas.proposals import Proposal, SignPsbtRequest
from custody.schemas.tokens import ContractCall, TokenBalance
from custody.schemas.vaults import Vault
from signerd.account.listing import Listed, entries, last_id, read_each, taken
from signerd.account.person import Person, person_of, read_person
from signerd.account.wire import Workspace, claim_of, published_of, snapshot_of
from signerd.core import events
from signerd.core.claims import VaultClaim
from signerd.core.effects import Submit, SubmitDecline
from signerd.core.text import said
from signerd.core.tokens import Published
from signerd.core.values import Snapshot
from signerd.errors import (
    PlatformAnswersWrongly,
    PlatformError,
    PlatformRefused,
    PlatformUnreachable,
    SessionError,
    SignedOut,
    SignerdError,
)
from signerd.faults import FaultPoint, no_fault
from signerd.keeping import unforeseen

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger(__name__)

# One page of proposals: some thousand bytes each.
PAGE = 200
PROPOSALS = "/api/v1/psbt"
# A platform that never ends its list of bad entries is not followed for ever.
MOST_LISTED = 100 * PAGE
# Of a vault with more calls than this the newest are not shown.
MOST_CALL_PAGES = 50
# Answers that say nothing about the request itself: it may be repeated as it is.
_TEMPORARY_STATUSES = frozenset({401, 408, 425, 429})
# Said about the caller's rights today, which an administrator may give back: the signature stays ready.
_MAY_CHANGE = frozenset(
    {ErrorCode.IDEMPOTENCY_IN_PROGRESS, ErrorCode.PERMISSION_DENIED, ErrorCode.NOT_ORG_MEMBER}
)


def translated(
    call: Callable[Concatenate["Platform", P], Awaitable[R]],
) -> Callable[Concatenate["Platform", P], Coroutine[Any, Any, R]]:
    """The client's errors as the daemon's, and a fault point on both sides of the call."""

    @wraps(call)
    async def inner(platform: "Platform", /, *args: P.args, **kwargs: P.kwargs) -> R:
        platform.fault(f"platform:before:{call.__name__}")
        try:
            answer = await call(platform, *args, **kwargs)
        except Unreachable as error:
            raise PlatformUnreachable(f"the platform gave no answer: {said(error)}") from error
        except BadAnswer as error:
            raise PlatformAnswersWrongly(f"the platform's answer makes no sense: {said(error)}") from error
        except ClientSignedOut as error:
            raise SignedOut("nobody is signed in to the platform, or the session has ended") from error
        except ApiError as error:
            raise _api_error(error) from error
        except SignerdError:
            raise
        except Exception as error:
            # A mistake in the client is this call's failure; what follows the platform and delivers to it goes on.
            _log.exception("asking the platform failed in an unforeseen way: %s", call.__name__)
            raise PlatformAnswersWrongly(unforeseen("Asking the platform")) from error
        platform.fault(f"platform:after:{call.__name__}")
        return answer

    return inner


def _api_error(error: ApiError) -> PlatformError:
    problem = error.problem
    if problem.status >= 500 or problem.status in _TEMPORARY_STATUSES or problem.code in _MAY_CHANGE:
        return PlatformUnreachable(f"the platform cannot take it now: {said(error)}")
    return PlatformRefused(said(error), platform_code=problem.code, status=problem.status)


class Platform:
    """Every method raises leaves of PlatformError, or SignedOut."""

    def __init__(self, client: AsyncClient, *, fault: FaultPoint = no_fault) -> None:
        self._client = client
        self.fault = fault

    @translated
    async def user(self) -> Person:
        try:
            return person_of(await self._client.user_info())
        except BadAnswer:
            return await self._client.run(read_person(self._client.core))

    @translated
    async def vaults(self, workspace: Workspace) -> Listed[VaultClaim]:
        make = partial(claim_of, workspace=workspace)
        try:
            shapes = await self._client.list_wallets(workspace.id)
        except BadAnswer:
            plan = entries(self._client.core, "/api/v1/list-wallets", {"workspace_id": workspace.id})
            return read_each((await self._client.run(plan)).items, "id", Vault, make)
        return taken(((shape.id, shape) for shape in shapes), make)

    @translated
    async def awaiting(
        self, workspace: Workspace, etag: str | None, wait_seconds: int
    ) -> tuple[Listed[Snapshot] | None, str | None]:
        """All proposals that await this signer; None where the list is still the one of ``etag``.

        The tag is that of a single page: with more than one there is none, and the next call asks for all again.
        """
        try:
            answer = await self._client.proposals(
                workspace.id,
                awaiting_me=True,
                limit=PAGE,
                etag=etag,
                wait_seconds=wait_seconds if etag else None,
            )
            if answer.not_modified:
                return None, answer.etag
            shapes, tag = await self._pages(workspace, answer)
        except BadAnswer:
            return await self._one_by_one(workspace)
        make = partial(snapshot_of, workspace=workspace)
        return taken(((shape.psbt_id, shape) for shape in shapes), make), tag

    async def _pages(
        self, workspace: Workspace, answer: ProposalList
    ) -> tuple[tuple[Proposal, ...], str | None]:
        if len(answer.items) < PAGE:
            return answer.items, answer.etag
        found = {shape.psbt_id: shape for shape in answer.items}
        page = answer.items
        while len(page) >= PAGE:
            page = (
                await self._client.proposals(
                    workspace.id, awaiting_me=True, limit=PAGE, after=page[-1].psbt_id
                )
            ).items
            # A platform that passes over ``after`` would give the same page for ever.
            if all(shape.psbt_id in found for shape in page):
                break
            found.update((shape.psbt_id, shape) for shape in page)
        return tuple(found.values()), None

    async def _one_by_one(self, workspace: Workspace) -> tuple[Listed[Snapshot], str | None]:
        """The same list where an entry of it makes no sense: that one is left out."""
        query = {"workspace_id": workspace.id, "awaiting": "me", "limit": PAGE}
        page = await self._client.run(entries(self._client.core, PROPOSALS, query))
        found, tag = list(page.items), page.etag if len(page.items) < PAGE else None
        after = last_id(page.items, "psbt_id")
        # As above: a page that ends where the one before it ended would come for ever.
        while len(page.items) >= PAGE and after is not None and len(found) < MOST_LISTED:
            page = await self._client.run(entries(self._client.core, PROPOSALS, {**query, "after": after}))
            last = last_id(page.items, "psbt_id")
            if last == after:
                break
            found, after = [*found, *page.items], last
        make = partial(snapshot_of, workspace=workspace)
        return read_each(found, "psbt_id", Proposal, make), tag

    @translated
    async def proposal(self, psbt_id: str, workspace: Workspace) -> Snapshot:
        return snapshot_of(await self._client.proposal(psbt_id), workspace)

    @translated
    async def published(self, workspace: Workspace, contract_uid: int) -> Published:
        """What the platform publishes of a token; nothing of it is proven yet."""
        return published_of(await self._client.contract(workspace.id, contract_uid))

    @translated
    async def token_balances(self, workspace: Workspace, vault_id: str) -> list[TokenBalance]:
        return await self._client.tokens(workspace.id, vault_id)

    @translated
    async def token_calls(self, workspace: Workspace, vault_id: str) -> list[ContractCall]:
        """Oldest first: those of the last page, and of as many before it as a page has."""
        found = await self._client.contract_calls(workspace.id, vault_id=vault_id, limit=PAGE)
        page, asked = found, 1
        while len(page) >= PAGE and asked < MOST_CALL_PAGES:
            page = await self._client.contract_calls(
                workspace.id, vault_id=vault_id, after=page[-1].uid, limit=PAGE
            )
            # A platform that passes over ``after`` would give the same page for ever.
            if page and page[-1].uid <= found[-1].uid:
                break
            found, asked = [*found[-PAGE:], *page], asked + 1
        return found

    @translated
    async def keys(self) -> list[Key]:
        """Those that can be read: one of another version's kind is none of ours."""
        try:
            return await self._client.keys()
        except BadAnswer:
            found = await self._client.run(entries(self._client.core, "/api/v1/keys", {}))
            return list(read_each(found.items, "ID", Key, lambda key: key).items)

    @translated
    async def key_challenge(self, body: KeyChallengeRequest) -> KeyChallenge:
        return await self._client.key_challenge(body)

    @translated
    async def register_key(self, body: RegisterKeyRequest, idempotency_key: str) -> Key:
        return await self._client.register_key(body, idempotency_key=idempotency_key)

    async def submit(self, effect: Submit) -> events.Event:
        """Send the stored signature; what the platform says to it, as an event. Raises nothing of the platform's."""
        body = SignPsbtRequest(
            psbt_id=effect.psbt_id,
            workspace_id=effect.workspace_id,
            psbt_base64=base64.b64encode(effect.psbt).decode(),
        )
        try:
            answer = await self._sign_psbt(body, effect.idempotency_key)
        except PlatformRefused as error:
            return events.SubmitTurnedDown(error.platform_code, str(error))
        except (PlatformError, SessionError) as error:
            return events.SubmitUndelivered(said(error))
        return events.SubmitAccepted(answer[0], answer[1])

    async def decline(self, effect: SubmitDecline) -> events.DeclineDelivered | None:
        """Tell the person's no; None where it must be told again later. Raises nothing of the platform's."""
        body = SignPsbtRequest(
            psbt_id=effect.psbt_id,
            workspace_id=effect.workspace_id,
            decision="reject",
            reason=effect.reason or None,
        )
        try:
            await self._sign_psbt(body, effect.idempotency_key)
        except PlatformRefused as error:
            return events.DeclineDelivered(f"The platform did not need it: {said(error)}")
        except (PlatformError, SessionError):
            return None
        return events.DeclineDelivered()

    @translated
    async def _sign_psbt(self, body: SignPsbtRequest, idempotency_key: str) -> tuple[int, int]:
        answer = await self._client.sign_psbt(body, idempotency_key=idempotency_key)
        return answer.collected_signatures, answer.required_signatures
