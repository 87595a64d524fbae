"""All calls of the platform, as a blocking client; ``async_client`` has the one for asyncio."""

from custody.client.calls import (
    AddressBookCalls,
    ChangeCalls,
    HistoryCalls,
    IdentityProviderCalls,
    InvitationCalls,
    KeyCalls,
    LimitCalls,
    MailSettingCalls,
    MemberCalls,
    OnboardingCalls,
    PurchaseCalls,
    RoleCalls,
    ServiceAccountCalls,
    UserCalls,
    VaultCalls,
    WebhookCalls,
    WorkspaceCalls,
)
from custody.client.connection import WaitingConnection
from custody.client.history import WholeHistoryCalls
from custody.client.payments import (
    ForwardCalls,
    ProposalCalls,
)
from custody.client.records import EveryPurchaseCalls, LogCalls
from custody.client.sign_in import SignInAccountCalls, SignInCalls
from custody.client.signing_calls import TokenCalls


class Api(
    SignInCalls,
    SignInAccountCalls,
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
    EveryPurchaseCalls,
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
