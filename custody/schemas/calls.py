"""Every declared call, by noun. A noun without any has rows in ``custody.server.web`` instead."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, Final

from custody.schemas import (
    address_book,
    asset_tokens,
    auth,
    forwards,
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
    roles,
    sending,
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
        "forwards": forwards,
        "sending": sending,
        "logs": logs,
        "webhooks": webhooks,
        "identity_providers": identity_providers,
    }
)
# What a signer's own program calls, too: their client's methods are a module of their own, because that
# program loads no more.
SIGNING: Final[Mapping[str, ModuleType]] = MappingProxyType(
    {"sign_in": auth, "keys": keys, "proposals": proposals, "proofs": proofs, "tokens": asset_tokens}
)


def client_calls(noun: ModuleType) -> Iterator[tuple[str, Call[Any, Any]]]:
    """Those whose client's method is written from the declaration: not a long poll, nor the renewal of a
    session, which the client makes by itself.
    """
    return (
        (name, each) for name, each in named_calls(noun) if not each.long_poll and each is not auth.REFRESH
    )


def named_calls(noun: ModuleType) -> Iterator[tuple[str, Call[Any, Any]]]:
    """The noun's calls in their order, by the name of their constant."""
    return ((name, each) for name, each in vars(noun).items() if isinstance(each, Call))


CALLS: Final[tuple[Call[Any, Any], ...]] = tuple(
    call for noun in (*NOUNS.values(), *SIGNING.values()) for _, call in named_calls(noun)
)
