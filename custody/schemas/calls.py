"""Every declared call, by noun. A noun without any has rows in ``custody.server.web`` instead."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, Final

from custody.schemas import (
    address_book,
    asset_tokens,
    changes,
    history,
    identity_providers,
    invitations,
    keys,
    limits,
    logs,
    mail_settings,
    members,
    onboarding,
    proofs,
    proposals,
    purchases,
    roles,
    service_accounts,
    users,
    vaults,
    webhooks,
    workspaces,
)
from custody.schemas.call import Call

NOUNS: Final[Mapping[str, ModuleType]] = MappingProxyType(
    {
        "users": users,
        "members": members,
        "workspaces": workspaces,
        "roles": roles,
        "mail_settings": mail_settings,
        "limits": limits,
        "address_book": address_book,
        "invitations": invitations,
        "onboarding": onboarding,
        "service_accounts": service_accounts,
        "history": history,
        "vaults": vaults,
        "keys": keys,
        "purchases": purchases,
        "webhooks": webhooks,
        "changes": changes,
        "identity_providers": identity_providers,
    }
)
# What a signer's own program calls, too: their client's methods are a module of their own, because that
# program loads no more.
SIGNING: Final[Mapping[str, ModuleType]] = MappingProxyType({"tokens": asset_tokens})
# Some calls of theirs are declared: the client's methods stand in its own modules still.
PARTLY: Final = (proposals, proofs, logs)


def named_calls(noun: ModuleType) -> Iterator[tuple[str, Call[Any, Any]]]:
    """The noun's calls in their order, by the name of their constant."""
    return ((name, each) for name, each in vars(noun).items() if isinstance(each, Call))


CALLS: Final[tuple[Call[Any, Any], ...]] = tuple(
    call for noun in (*NOUNS.values(), *SIGNING.values(), *PARTLY) for _, call in named_calls(noun)
)

# By path: the calls that a second person may have to confirm.
CONFIRMABLE: Final[Mapping[str, Call[Any, Any]]] = MappingProxyType(
    {call.path: call for call in CALLS if call.second_person}
)
