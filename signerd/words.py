"""Networks and states in words, said alike at the command line and on the page."""

# By State's values. What the person reads beside the reason.
STATES = {
    "received": "received",
    "inspected": "inspected",
    "refused": "refused by a check here",
    "waiting-for-person": "waits for your decision",
    "waiting-for-device": "approved, waits for your device",
    "signing": "your device is asked",
    "verifying": "your device's answer is being checked",
    "signed": "signed, not submitted yet",
    "submitting": "being submitted",
    "submitted": "the platform has your signature",
    "handed-over": "signed, and ready for the program that brought it",
    "broadcast": "out of your hands: complete, or on the network",
    "confirmed": "confirmed",
    "declined": "declined",
    "interrupted": "not signed; you may approve it again",
    "quarantined": "set aside: something is wrong with it",
    "expired": "expired",
    "superseded": "replaced by another proposal",
    "withdrawn": "withdrawn",
}
# The states in which the person is asked; those on the way from a yes to the platform; those in which it has arrived.
ASKED = frozenset({"waiting-for-person", "interrupted"})
ON_THE_WAY = frozenset({"waiting-for-device", "signing", "verifying", "signed", "submitting"})
DELIVERED = frozenset({"submitted", "handed-over", "broadcast", "confirmed"})


def network_words(network: str) -> str:
    return (
        "MAINNET: real bitcoin" if network == "mainnet" else f"{network.upper()}: test coins, no real bitcoin"
    )


def state_words(state: str) -> str:
    return STATES.get(state, state)
