"""Every call, described once. ``Client`` and ``AsyncClient`` inherit these as plain and as awaitable
methods.
"""

from custody.client.calls.account import SignInAccountCalls, SignInCalls
from custody.client.calls.contracts import TokenCalls
from custody.client.calls.payments import (
    AddressBookCalls,
    ForwardCalls,
    KeyCalls,
    LimitCalls,
    ProposalCalls,
    VaultCalls,
)
from custody.client.calls.people import InvitationCalls, OnboardingCalls, PeopleCalls, RoleCalls
from custody.client.calls.records import LogCalls, PurchaseCalls, WebhookCalls


class Api(
    SignInCalls,
    SignInAccountCalls,
    PeopleCalls,
    RoleCalls,
    KeyCalls,
    VaultCalls,
    ProposalCalls,
    ForwardCalls,
    AddressBookCalls,
    InvitationCalls,
    OnboardingCalls,
    LimitCalls,
    LogCalls,
    PurchaseCalls,
    TokenCalls,
    WebhookCalls,
):
    """The calls. Each raises ``ApiError``, ``Unreachable``, ``BadAnswer`` or ``SignedOut``."""
