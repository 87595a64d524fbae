"""Declared calls (`custody.schemas.call`) as rows of the table of endpoints: while that table lasts, what
reads it (documents, limits, confirmed changes) sees them there. The runner makes them by
`custody.server.calls`.
"""

from collections.abc import Iterable
from typing import Any

from custody.schemas.call import Call
from custody.schemas.calls import named_calls
from custody.server import (  # noqa: F401 - they serve their calls
    address_book,
    asset_tokens,
    forwards,
    identity_providers,
    invitations,
    key_revocation,
    keys,
    limits,
    logs,
    mail_settings,
    members,
    onboarding,
    proofs,
    roles,
    sending,
    service_accounts,
    users,
    vault_controls,
    vault_replacement,
    vaults,
    webhooks,
    workspaces,
)
from custody.server.calls import Ctx, make
from custody.server.history import coins, movements  # noqa: F401 - likewise
from custody.server.proposals import ending, proposing, reading, signing  # noqa: F401 - likewise
from custody.server.sign_in import accounts, passwords, second_factor, sessions, signing_in  # noqa: F401
from custody.server.web import endpoint as table
from custody.server.web.endpoint import Endpoint, Unit
from custody.server.web.long_poll import DOCUMENTED


def rows_of(noun: Any) -> Iterable[Endpoint]:
    return (row_of(call) for _, call in named_calls(noun))


def row_of(call: Call[Any, Any]) -> Endpoint:
    def handler(request: table.Call[Any]) -> Any:
        """For a confirmed change, which is made in the confirmation's own transaction."""
        ctx = Ctx(request.services, request.caller, request.maybe_db, request.maybe_access, request.ids)
        return make(ctx, call, request.body)

    handler.__doc__ = call.text
    return Endpoint(
        call.method,
        call.path,
        handler,
        call.answer_type,
        call.needs,
        Unit.WRITE if call.writes else Unit.READ,
        call.shape,
        creates=call.creates,
        carries_psbt=call.carries_psbt,
        workspace_field=call.workspace_field,
        needs_second_person=bool(call.second_person),
        refuses=call.refuses,
        extra=DOCUMENTED if call.long_poll else {},
        declared=call,
    )
