"""Every call, described once. ``Client`` and ``AsyncClient`` inherit these as plain and as awaitable methods."""

from custody.client.calls.address_book import AddressBookCalls
from custody.client.calls.forwards import ForwardCalls
from custody.client.calls.invitations import InvitationCalls
from custody.client.calls.keys import KeyCalls
from custody.client.calls.limits import LimitCalls
from custody.client.calls.logs import LogCalls
from custody.client.calls.onboarding import OnboardingCalls
from custody.client.calls.people import PeopleCalls
from custody.client.calls.proposals import ProposalCalls
from custody.client.calls.purchases import PurchaseCalls
from custody.client.calls.roles import RoleCalls
from custody.client.calls.sign_in import SignInCalls
from custody.client.calls.sign_in_account import SignInAccountCalls
from custody.client.calls.tokens import TokenCalls
from custody.client.calls.vaults import VaultCalls
from custody.client.calls.webhooks import WebhookCalls


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
