"""The platform as the daemon uses it: takes and returns the core's values, and raises errors that say whether
to try again.
"""

import base64
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from pydantic import BaseModel

from custody.client import ApiError, BadAnswer, Unreachable
from custody.client import SignedOut as ClientSignedOut
from custody.client.api import proposals_request
from custody.client.awaiting import AsyncClient
from custody.client.flow import call, read
from custody.common.exchange import HttpRequest
from custody.common.text import foreign, plain, said
from custody.schemas.asset_tokens import ContractCall, TokenBalance
from custody.schemas.errors import ErrorCode
from custody.schemas.history import VaultMovement
from custody.schemas.keys import Key, KeyChallenge, KeyChallengeRequest, RegisterKeyRequest, signed_host
from custody.schemas.proposals import Proposal, ProposalStatus, SignPsbtRequest, SignPsbtResponse
from custody.schemas.vaults import Vault
from signerd.account.wire import (
    MOST_LISTED,
    TOO_LONG,
    Entries,
    Listed,
    PlatformWorkspace,
    claim_of,
    entries,
    history_page,
    last_id,
    published_of,
    read_each,
    read_person,
    snapshot_of,
)
from signerd.core import events
from signerd.core.events import News, request_key
from signerd.core.tokens import PublishedToken
from signerd.core.values import Record, Snapshot, VaultClaim
from signerd.errors import (
    PlatformAnswersWrongly,
    PlatformError,
    PlatformRefused,
    PlatformUnreachable,
    SessionError,
    SignedOut,
    SignerdError,
)
from signerd.feed import unforeseen
from signerd.runtime import FaultPoint, no_fault

P = ParamSpec("P")

R = TypeVar("R")

S = TypeVar("S", bound=BaseModel)

T = TypeVar("T")

_log = logging.getLogger(__name__)

# One page of proposals: some thousand bytes each.
PAGE = 200

PROPOSALS, PSBT_ID = "/api/v1/psbt", "psbt_id"

# A thousand proposals of a hundred kilobytes each. Later ones are read once earlier ones have ended.
MOST_LISTED_BYTES = 128 * 1024 * 1024

# The newest calls of a vault with more calls than this are not shown.
MOST_CALL_PAGES = 50

# Answers that say nothing about the request itself: it may be repeated unchanged.
_TEMPORARY_STATUSES = frozenset({401, 408, 425, 429})

# Refusals whose cause may change while the proposal waits: the caller's rights, a freeze,
# the address book, limits (whose period ends), who may approve (NOT_A_SIGNER also means a
# payment's maker, or another account than the key's). The signature stays ready. Not KEY_REVOKED, which is
# final, nor STATE_CONFLICT: a replaced proposal may come back, and must not be submitted then without asking
# the person.
_MAY_CHANGE = frozenset(
    {
        ErrorCode.PERMISSION_DENIED,
        ErrorCode.NOT_ORG_MEMBER,
        ErrorCode.VAULT_FROZEN,
        ErrorCode.NOT_IN_ADDRESS_BOOK,
        ErrorCode.NOT_A_SIGNER,
        ErrorCode.ROLE_LIMIT_EXCEEDED,
        ErrorCode.VAULT_LIMIT_EXCEEDED,
    }
)


def translated(
    call: Callable[Concatenate["PlatformClient", P], Awaitable[R]],
) -> Callable[Concatenate["PlatformClient", P], Coroutine[Any, Any, R]]:
    """The client's errors as the daemon's, and a fault point on both sides of the call."""

    @wraps(call)
    async def inner(platform: "PlatformClient", /, *args: P.args, **kwargs: P.kwargs) -> R:
        platform.fault(f"platform:before:{call.__name__}")
        try:
            answer = await call(platform, *args, **kwargs)
        except Unreachable as error:
            raise PlatformUnreachable(f"the platform gave no answer: {said(error)}") from error
        except BadAnswer as error:
            raise PlatformAnswersWrongly(f"the platform's answer makes no sense: {said(error)}") from error
        except ClientSignedOut as error:
            raise SignedOut("you are not signed in to the platform, or the session has ended") from error
        except ApiError as error:
            raise _api_error(error) from error
        except SignerdError:
            raise
        except Exception as error:
            # A bug in the client fails this call; following the platform goes on.
            _log.exception("asking the platform failed in an unforeseen way: %s", call.__name__)
            raise PlatformAnswersWrongly(unforeseen("Asking the platform")) from error
        platform.fault(f"platform:after:{call.__name__}")
        return answer

    return inner


def _unchanged(shape: S) -> S:
    return shape


def _api_error(error: ApiError) -> PlatformError:
    problem = error.problem
    sentence = f"the platform cannot do it now: {said(error)}"
    if problem.code in _MAY_CHANGE:
        # Without the trace, which differs each time: repeated sentences must be equal.
        why = f"{foreign(problem.detail).rstrip('.')} ({problem.code})."
        return PlatformUnreachable(sentence, platform_code=problem.code, why=why)
    is_in_progress = problem.code == ErrorCode.IDEMPOTENCY_IN_PROGRESS
    if problem.status >= 500 or problem.status in _TEMPORARY_STATUSES or is_in_progress:
        return PlatformUnreachable(sentence)
    return PlatformRefused(said(error), platform_code=problem.code, status=problem.status)


@dataclass(frozen=True)
class PlatformPage:
    """``last``: the id after which the next page begins; None on the last page. ``size``: bytes."""

    listed: Listed[Snapshot]
    last: str | None
    count: int
    size: int


class Sink(Protocol):
    def announce(self, news: Iterable[News]) -> None: ...


class PlatformClient:
    """Every method raises leaves of PlatformError, or SignedOut."""

    def __init__(self, client: AsyncClient, *, fault: FaultPoint = no_fault) -> None:
        self._client = client
        self.fault = fault

    @property
    def host(self) -> str:
        """As a challenge must name it: the configured URL's."""
        return signed_host(self._client.core.base_url)

    @translated
    async def user(self) -> tuple[int, Listed[PlatformWorkspace]]:
        """As ``read_person``."""
        return await self._client.run(read_person(self._client.core))

    @translated
    async def vaults(self, workspace: PlatformWorkspace) -> Listed[VaultClaim]:
        make = partial(claim_of, workspace=workspace)
        return await self._listed("/api/v1/list-wallets", {"workspace_id": workspace.id}, "id", Vault, make)

    async def _listed(
        self, path: str, query: dict[str, Any], id_of: str, shape: type[S], make: Callable[[S], T]
    ) -> Listed[T]:
        """A list without pages, up to its bound."""
        page = await self._entries(self._client.core.build("GET", path, query=query))
        items = () if page is None else page.items
        listed = read_each(items[:MOST_LISTED], id_of, shape, make)
        return listed if len(items) <= MOST_LISTED else listed + Listed(unreadable=(TOO_LONG,))

    @translated
    async def awaiting(
        self, workspace: PlatformWorkspace, etag: str | None, wait_seconds: int
    ) -> tuple[Listed[Snapshot] | None, str | None]:
        """All proposals that await this signer; None where the list is still the one of ``etag``.

        The tag covers one page: with more pages there is none, and the next call asks for all again.

        """
        request = partial(proposals_request, self._client.core, workspace.id, awaiting="me", limit=PAGE)
        page = await self._entries(request(etag=etag, wait_seconds=wait_seconds if etag else None))
        if page is None:
            return None, etag
        make = partial(snapshot_of, workspace=workspace)
        listed = read_each(page.items[:MOST_LISTED], PSBT_ID, Proposal, make)
        tag, count, size = page.etag if len(page.items) < PAGE else None, len(page.items), page.size
        after = last_id(page.items, PSBT_ID)
        known: set[str | None] = set()
        # A repeated last id means that the platform ignores ``after``: stop, or it would go on for ever.
        while len(page.items) >= PAGE and after not in {None, *known}:
            if count >= MOST_LISTED or size >= MOST_LISTED_BYTES:
                return listed + Listed(unreadable=(TOO_LONG,)), None
            known.add(after)
            page = await self._whole(request(after=after))
            listed += read_each(page.items[: MOST_LISTED - count], PSBT_ID, Proposal, make, before=count)
            count, size, after = count + len(page.items), size + page.size, last_id(page.items, PSBT_ID)
        if count > MOST_LISTED:
            listed += Listed(unreadable=(TOO_LONG,))
        return listed, tag

    @translated
    async def everyones(self, workspace: PlatformWorkspace, after: str | None) -> PlatformPage:
        """A page of all proposals of the workspace, the oldest first, also those that await other signers."""
        page = await self._whole(proposals_request(self._client.core, workspace.id, after=after, limit=PAGE))
        items = page.items[:PAGE]
        listed = read_each(items, PSBT_ID, Proposal, partial(snapshot_of, workspace=workspace))
        last = last_id(items, PSBT_ID) if len(items) >= PAGE else None
        return PlatformPage(listed, last, len(items), page.size)

    async def _entries(self, request: HttpRequest) -> Entries | None:
        return await self._client.run(entries(self._client.core, request))

    async def _whole(self, request: HttpRequest) -> Entries:
        page = await self._entries(request)
        if page is None:
            raise BadAnswer(f"{PROPOSALS}: it says that a page has not changed, which was not asked")
        return page

    @translated
    async def proposal(self, psbt_id: str, workspace: PlatformWorkspace) -> Snapshot:
        return snapshot_of(await self._client.proposal(psbt_id), workspace)

    @translated
    async def published(self, workspace: PlatformWorkspace, contract_uid: int) -> PublishedToken:
        """What the platform publishes of a token; not proven yet."""
        return published_of(await self._client.contract(workspace_id=workspace.id, contract_uid=contract_uid))

    @translated
    async def vault(self, workspace: PlatformWorkspace, vault_id: str) -> Vault:
        """Raises PlatformAnswersWrongly where its list has no readable vault with this id."""
        query = {"workspace_id": workspace.id}
        listed = await self._listed("/api/v1/list-wallets", query, "id", Vault, _unchanged)
        for vault in listed.items:
            if vault.id == vault_id:
                return vault
        raise PlatformAnswersWrongly("the platform lists no such vault, or one that cannot be read")

    @translated
    async def token_balances(self, workspace: PlatformWorkspace, vault_id: str) -> Listed[TokenBalance]:
        query = {"workspace_id": workspace.id, "vault_id": vault_id}
        return await self._listed("/api/v1/get-tokens", query, "contract_uid", TokenBalance, _unchanged)

    @translated
    async def token_calls(self, workspace: PlatformWorkspace, vault_id: str) -> Listed[ContractCall]:
        """The last page of calls and the page before it, oldest first."""
        calls: Listed[ContractCall] = Listed()
        after: int | None = None
        for _ in range(MOST_CALL_PAGES):
            query = {"workspace_id": workspace.id, "vault_id": vault_id, "after": after, "limit": PAGE}
            page = await self._listed("/api/v1/contract-calls", query, "UID", ContractCall, _unchanged)
            calls = Listed((*calls.items[-PAGE:], *page.items), (*calls.unreadable, *page.unreadable))
            last = max((shown.uid for shown in page.items), default=after)
            # A platform that ignores ``after`` would return the same page for ever.
            if len(page.items) + len(page.unreadable) < PAGE or last is None or last <= (after or 0):
                break
            after = last
        return calls

    @translated
    async def movements(
        self, workspace: PlatformWorkspace, vault_id: str, query: dict[str, str | int | None]
    ) -> tuple[Listed[VaultMovement], str | None]:
        """A page of a vault's movements, and where the next one begins; ``query``: the parameters of
        ``vault-history``.
        """
        core = self._client.core
        parameters = {"workspace_id": workspace.id, "vault_id": vault_id, **query}
        request = core.build("GET", "/api/v1/vault-history", query=parameters)
        return await self._client.run(history_page(core, request, PAGE))

    @translated
    async def keys(self) -> list[Key]:
        """The readable keys: one of a kind that this version does not know is left out."""
        return list((await self._listed("/api/v1/keys", {}, "ID", Key, _unchanged)).items)

    @translated
    async def key_challenge(self, body: KeyChallengeRequest) -> KeyChallenge:
        return await self._client.key_challenge(body)

    @translated
    async def register_key(self, body: RegisterKeyRequest, idempotency_key: str) -> Key:
        return await self._client.register_key(body, idempotency_key=idempotency_key)

    async def submit(self, record: Record) -> events.ProposalEvent:
        """Send the stored signature. Returns the platform's answer as an event; raises no error of the
        platform's.
        """
        signature = record.signature
        assert signature is not None, "only what is signed is submitted"
        body = SignPsbtRequest(
            psbt_id=record.psbt_id,
            workspace_id=record.snapshot.workspace_id,
            psbt_base64=base64.b64encode(signature.psbt).decode(),
        )
        try:
            answer = await self._sign_psbt(body, signature.idempotency_key)
        except PlatformRefused as error:
            return events.SubmitTurnedDown(error.platform_code, str(error))
        except PlatformUnreachable as error:
            if error.platform_code:
                sentence = f"the platform does not accept it for now: {error.why}"
                return events.SubmitKept(error.platform_code, sentence)
            return events.SubmitUndelivered(said(error))
        except (PlatformError, SessionError) as error:
            return events.SubmitUndelivered(said(error))
        counted = answer.collected_signatures, answer.required_signatures
        return events.SubmitAccepted(*counted, _remark(answer), answer.status)

    async def decline(self, record: Record) -> events.DeclineDelivered | None:
        """Send the person's decline; None where it has to be sent again later. Raises no error of the
        platform's.
        """
        assert record.decline is not None, "only what is declined is told to be"
        reason = record.decline.reason
        body = SignPsbtRequest(
            psbt_id=record.psbt_id,
            workspace_id=record.snapshot.workspace_id,
            decision="reject",
            reason=reason or None,
        )
        try:
            answer = await self._sign_psbt(body, request_key("decline", record.psbt_id, reason.encode()))
        except PlatformRefused as error:
            return events.DeclineDelivered(f"The platform did not need it: {said(error)}")
        except PlatformUnreachable as error:
            # Not sent again: this signer's signature is missing all the same.
            return (
                events.DeclineDelivered(f"The platform did not accept it: {error.why}") if error.why else None
            )
        except (PlatformError, SessionError):
            return None
        # What a decline does to what goes on is said here already, by the signers who are left.
        return events.DeclineDelivered("" if answer.status is ProposalStatus.PENDING else _remark(answer))

    @translated
    async def _sign_psbt(self, body: SignPsbtRequest, idempotency_key: str) -> SignPsbtResponse:
        """Sent once: before another try the person may decline, or the machine sleep. The runner checks again
        before each try.
        """
        core = self._client.core
        request = core.build("POST", "/api/v1/sign-psbt", body, headers={"Idempotency-Key": idempotency_key})
        return read(await self._client.run(call(core, request, repeatable=False)), SignPsbtResponse)


def _remark(answer: SignPsbtResponse) -> str:
    """The platform's remark, for instance that the threshold was already met."""
    return f"The platform says: {plain(answer.detail)}" if answer.detail else ""
