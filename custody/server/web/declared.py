"""Declared calls (`custody.schemas.call`) as rows of the table of endpoints: while that table lasts, what
reads it (documents, limits) sees them there. The runner makes them by `custody.server.calls`.
"""

from collections.abc import Iterable
from typing import Any

from custody.schemas.call import Call
from custody.schemas.calls import named_calls
from custody.server import (  # noqa: F401 - they serve their calls
    address_book,
    asset_tokens,
    changes,
    identity_providers,
    invitations,
    key_revocation,
    keys,
    limits,
    logs,
    mail_settings,
    members,
    onboarding,
    proposals,
    purchases,
    roles,
    second_person_rule,
    service_accounts,
    users,
    vault_controls,
    vault_replacement,
    vaults,
    webhooks,
    workspaces,
)
from custody.server.history import coins, movements  # noqa: F401 - likewise
from custody.server.web.endpoint import Endpoint, Unit


def rows_of(noun: Any) -> Iterable[Endpoint]:
    return (row_of(call) for _, call in named_calls(noun))


def row_of(call: Call[Any, Any]) -> Endpoint:
    def handler(_: Any) -> None:
        raise AssertionError("a declared call is made by custody.server.calls")

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
        declared=call,
    )
