"""All calls of the platform, as a blocking client; ``async_client`` has the one for asyncio."""

from custody.client.calls import (
    AddressBookCalls,
    ChangeCalls,
    ForwardCalls,
    HistoryCalls,
    IdentityProviderCalls,
    InvitationCalls,
    LimitCalls,
    LogCalls,
    MailSettingCalls,
    MemberCalls,
    OnboardingCalls,
    PurchaseCalls,
    RoleCalls,
    SendingCalls,
    ServiceAccountCalls,
    UserCalls,
    VaultCalls,
    WebhookCalls,
    WorkspaceCalls,
)
from custody.client.connection import WaitingConnection
from custody.client.payments import ReadProposalCalls
from custody.client.signing_calls import KeyCalls, ProofCalls, ProposalCalls, SignInCalls, TokenCalls


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
    ReadProposalCalls,
    ProofCalls,
    ForwardCalls,
    SendingCalls,
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
    IdentityProviderCalls,
):
    """The calls. Each raises ``ApiError``, ``Unreachable``, ``BadAnswer`` or ``SignedOut``."""


class Client(Api, WaitingConnection):
    """The blocking client: see ``WaitingConnection``."""
