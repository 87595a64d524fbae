"""All calls of the platform, as a blocking client; ``async_client`` has the one for asyncio."""

from custody.client.calls import (
    AddressBookCalls,
    HistoryCalls,
    IdentityProviderCalls,
    InvitationCalls,
    KeyCalls,
    LimitCalls,
    MailSettingCalls,
    MemberCalls,
    OnboardingCalls,
    RoleCalls,
    ServiceAccountCalls,
    UserCalls,
    VaultCalls,
    WebhookCalls,
    WorkspaceCalls,
)
from custody.client.connection import WaitingConnection
from custody.client.history import WholeHistoryCalls
from custody.client.organisation import ChangeCalls
from custody.client.payments import (
    ForwardCalls,
    ProposalCalls,
)
from custody.client.records import LogCalls, PurchaseCalls
from custody.client.signing_calls import SignInCalls, TokenCalls


class Api(
    SignInCalls,
    UserCalls,
    MemberCalls,
    WorkspaceCalls,
    RoleCalls,
    MailSettingCalls,
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
    ChangeCalls,
    ServiceAccountCalls,
    HistoryCalls,
    WholeHistoryCalls,
    IdentityProviderCalls,
):
    """The calls. Each raises ``ApiError``, ``Unreachable``, ``BadAnswer`` or ``SignedOut``."""


class Client(Api, WaitingConnection):
    """The blocking client: see ``WaitingConnection``."""
