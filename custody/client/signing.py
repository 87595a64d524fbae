"""The calls that a signer's daemon makes: it runs for weeks, without the shapes of other calls."""

from custody.client.awaiting import AwaitingConnection
from custody.client.payments import KeyCalls, ProposalCalls
from custody.client.sign_in import SignInCalls
from custody.client.tokens import TokenCalls


class SigningClient(SignInCalls, KeyCalls, ProposalCalls, TokenCalls, AwaitingConnection):
    """Raises as ``Api``."""
