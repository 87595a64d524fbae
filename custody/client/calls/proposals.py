"""Proposals: making, following and signing them."""

from dataclasses import dataclass

import httpx
from pydantic import TypeAdapter

from custody.client.flow import Core, Plan, call, read
from custody.client.method import idempotency, method
from custody.schemas.common import Few
from custody.schemas.proposals import (
    CancelPsbtRequest,
    CancelPsbtResponse,
    CreatePsbtRequest,
    CreatePsbtResponse,
    Proposal,
    ProposalStatus,
    SignPsbtRequest,
    SignPsbtResponse,
)

# A long poll waits at the platform; the transport must not give up first.
LONG_POLL_MARGIN_SECONDS = 10.0
_PROPOSALS = TypeAdapter(Few[Proposal])


@dataclass(frozen=True)
class ProposalList:
    """``not_modified``: the platform says that nothing changed since ``etag``; ``items`` is then empty."""

    items: tuple[Proposal, ...]
    etag: str | None
    not_modified: bool = False


class ProposalCalls:
    @method
    @staticmethod
    def create_psbt(
        core: Core, body: CreatePsbtRequest, *, idempotency_key: str | None = None
    ) -> Plan[CreatePsbtResponse]:
        """``POST /api/v1/create-psbt``."""
        request = core.build("POST", "/api/v1/create-psbt", body, headers=idempotency(idempotency_key))
        return read(
            (yield from call(core, request, repeatable=idempotency_key is not None)), CreatePsbtResponse
        )

    @method
    @staticmethod
    def cancel_psbt(core: Core, body: CancelPsbtRequest) -> Plan[CancelPsbtResponse]:
        """``POST /api/v1/cancel-psbt``. Repeatable: what is cancelled stays so."""
        request = core.build("POST", "/api/v1/cancel-psbt", body)
        return read((yield from call(core, request, repeatable=True)), CancelPsbtResponse)

    @method
    @staticmethod
    def proposal(core: Core, psbt_id: str) -> Plan[Proposal]:
        """``GET /api/v1/psbt?psbt_id=``."""
        request = core.build("GET", "/api/v1/psbt", query={"psbt_id": psbt_id})
        return read((yield from call(core, request, repeatable=True)), Proposal)

    @method
    @staticmethod
    def proposals(
        core: Core,
        workspace_id: int,
        *,
        status: ProposalStatus | None = None,
        awaiting_me: bool = False,
        after: str | None = None,
        limit: int | None = None,
        etag: str | None = None,
        wait_seconds: int | None = None,
    ) -> Plan[ProposalList]:
        """``GET /api/v1/psbt?workspace_id=``, newest last. With ``etag`` and ``wait_seconds`` a long poll (RFC 7240)."""
        request = proposals_request(
            core,
            workspace_id,
            status=status,
            awaiting_me=awaiting_me,
            after=after,
            limit=limit,
            etag=etag,
            wait_seconds=wait_seconds,
        )
        response = yield from call(core, request, repeatable=True)
        new_etag = response.headers.get("etag", etag)
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return ProposalList((), new_etag, not_modified=True)
        items = read(response, _PROPOSALS)
        return ProposalList(tuple(items), new_etag)

    @method
    @staticmethod
    def sign_psbt(
        core: Core, body: SignPsbtRequest, *, idempotency_key: str | None = None
    ) -> Plan[SignPsbtResponse]:
        """``POST /api/v1/sign-psbt``. Repeatable: the same signature again changes nothing."""
        request = core.build("POST", "/api/v1/sign-psbt", body, headers=idempotency(idempotency_key))
        return read((yield from call(core, request, repeatable=True)), SignPsbtResponse)


def proposals_request(
    core: Core,
    workspace_id: int,
    *,
    status: ProposalStatus | None = None,
    awaiting_me: bool = False,
    after: str | None = None,
    limit: int | None = None,
    etag: str | None = None,
    wait_seconds: int | None = None,
) -> httpx.Request:
    """What ``proposals`` asks, for a reader of its own."""
    query = {
        "workspace_id": workspace_id,
        "status": status,
        "awaiting": "me" if awaiting_me else None,
        "after": after,
        "limit": limit,
    }
    headers = {} if etag is None else {"If-None-Match": etag}
    timeout = None
    if wait_seconds:
        headers["Prefer"] = f"wait={wait_seconds}"
        timeout = wait_seconds + LONG_POLL_MARGIN_SECONDS
    return core.build("GET", "/api/v1/psbt", query=query, headers=headers, timeout=timeout)
