"""Proposals and forwards."""

from dataclasses import dataclass
from datetime import date
from http import HTTPStatus
from typing import Literal, TypedDict, Unpack
from urllib.parse import parse_qs, urlsplit

from pydantic import TypeAdapter

from custody.client.flow import Core, Sent, call, next_page, read_list, row
from custody.exchange import Plan, Request, method
from custody.schemas.common import LATER, Few
from custody.schemas.proofs import CreateProofRequest, ProofFile, ProofQuery
from custody.schemas.proposals import (
    CancelPsbtRequest,
    CancelPsbtResponse,
    CreatePsbtRequest,
    CreatePsbtResponse,
    ForwardToVaultRequest,
    Proposal,
    ProposalStatus,
    PsbtPreview,
    SignPsbtRequest,
    SignPsbtResponse,
)
from custody.schemas.vaults import (
    MaxSend,
    MaxSendQuery,
    SweepVaultRequest,
    SweptVault,
)

_PROPOSALS = TypeAdapter(Few[Proposal], config=LATER)


@dataclass(frozen=True)
class ProposalList:
    """``not_modified``: nothing has changed since ``etag``, and ``items`` is empty. ``following``: the id
    after which the next page begins.
    """

    items: tuple[Proposal, ...]
    etag: str | None
    not_modified: bool = False
    following: str | None = None


class ProposalFilters(TypedDict, total=False):
    """``awaiting_me``: only those that await the caller's decision; ``after``: the ``following`` of the page
    before. ``search``: words that each must have in its title or a recipient's name, as the beginning of an
    address or an id, or as an amount. Days: when they were proposed, inclusive, in UTC.
    """

    status: ProposalStatus | None
    awaiting_me: bool
    after: str | None
    limit: int | None
    vault_id: str | None
    tx_type: Literal["proof"] | None
    search: str | None
    from_day: date | None
    to_day: date | None
    newest_first: bool
    etag: str | None
    wait_seconds: int | None


class ProposalCalls:
    @row("POST", "/api/v1/sweep-vault", SweptVault)
    @staticmethod
    def sweep_vault(body: SweepVaultRequest) -> Sent:
        """Not repeated: an answer that was lost has stored proposals."""
        return Sent(body)

    @row("GET", "/api/v1/max-send", MaxSend, repeatable=True)
    @staticmethod
    def max_send(query: MaxSendQuery) -> Sent:
        """The most that ``create_psbt`` accepts for these recipients. It reserves nothing."""
        return Sent(query=query.model_dump(mode="json", exclude_none=True))

    @row("POST", "/api/v1/create-psbt", CreatePsbtResponse)
    @staticmethod
    def create_psbt(body: CreatePsbtRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)

    @row("POST", "/api/v1/create-proof", CreatePsbtResponse)
    @staticmethod
    def create_proof(body: CreateProofRequest, *, idempotency_key: str | None = None) -> Sent:
        """A message for the vault's signers to sign. It moves nothing."""
        return Sent(body, key=idempotency_key)

    @row("GET", "/api/v1/proof", ProofFile, repeatable=True)
    @staticmethod
    def proof(query: ProofQuery) -> Sent:
        return Sent(query=query.model_dump(mode="json"))

    @row("POST", "/api/v1/preview-psbt", PsbtPreview, repeatable=True)
    @staticmethod
    def preview_psbt(body: CreatePsbtRequest) -> Sent:
        """What ``create_psbt`` would propose now. It stores nothing."""
        return Sent(body)

    @row("POST", "/api/v1/preview-forward", PsbtPreview, repeatable=True)
    @staticmethod
    def preview_forward(body: ForwardToVaultRequest) -> Sent:
        """What ``forward_to_vault`` would propose now. It stores nothing."""
        return Sent(body)

    @row("POST", "/api/v1/cancel-psbt", CancelPsbtResponse, repeatable=True)
    @staticmethod
    def cancel_psbt(body: CancelPsbtRequest) -> Sent:
        """Repeatable: a cancelled proposal stays cancelled."""
        return Sent(body)

    @row("GET", "/api/v1/psbt", Proposal, repeatable=True)
    @staticmethod
    def proposal(psbt_id: str) -> Sent:
        return Sent(query={"psbt_id": psbt_id})

    @method
    @staticmethod
    def proposals(core: Core, workspace_id: int, **filters: Unpack[ProposalFilters]) -> Plan[ProposalList]:
        """``GET /api/v1/psbt?workspace_id=``, newest last. With ``etag`` and ``wait_seconds`` a long poll
        (RFC 7240).
        """
        reply = yield from call(core, proposals_request(core, workspace_id, **filters), repeatable=True)
        etag = reply.headers.get("etag", filters.get("etag"))
        if reply.status == HTTPStatus.NOT_MODIFIED:
            return ProposalList((), etag, not_modified=True)
        items = read_list(core, reply, _PROPOSALS)
        after = parse_qs(urlsplit(next_page(reply) or "").query).get("after", [None])
        return ProposalList(tuple(items), etag, following=after[0])

    @row("POST", "/api/v1/sign-psbt", SignPsbtResponse, repeatable=True)
    @staticmethod
    def sign_psbt(body: SignPsbtRequest, *, idempotency_key: str | None = None) -> Sent:
        """Repeatable: the same signature again changes nothing."""
        return Sent(body, key=idempotency_key)


class ForwardCalls:
    @row("POST", "/api/v1/forward-to-vault", CreatePsbtResponse)
    @staticmethod
    def forward_to_vault(body: ForwardToVaultRequest, *, idempotency_key: str | None = None) -> Sent:
        return Sent(body, key=idempotency_key)


def proposals_request(core: Core, workspace_id: int, **filters: Unpack[ProposalFilters]) -> Request:
    """The request of ``proposals``, for callers that read the answer themselves."""
    query = {
        "workspace_id": workspace_id,
        "status": filters.get("status"),
        "awaiting": "me" if filters.get("awaiting_me") else None,
        "after": filters.get("after"),
        "vault_id": filters.get("vault_id"),
        "tx_type": filters.get("tx_type"),
        "search": filters.get("search"),
        "from_day": filters.get("from_day"),
        "to_day": filters.get("to_day"),
        "order": "newest" if filters.get("newest_first") else None,
        "limit": filters.get("limit"),
    }
    etag, wait_seconds = filters.get("etag"), filters.get("wait_seconds")
    headers = {} if etag is None else {"If-None-Match": etag}
    if not wait_seconds:
        return core.build("GET", "/api/v1/psbt", query=query, headers=headers)
    headers["Prefer"] = f"wait={wait_seconds}"
    return core.build("GET", "/api/v1/psbt", query=query, headers=headers, wait_seconds=wait_seconds)
