"""S12: whom a deployment lists from the start. Its bytes on chain are a hash, and the list can be changed only by later calls."""

from multisig.tokens import Deploy
from signerd.core.checks.case import InspectedCase
from signerd.core.checks.tokens import token_of_case, token_of_payload
from signerd.core.listed import listed_at_first
from signerd.core.verdicts import Verdict, allow, hold

# The whole list stands beside the token's data; a sentence that is longer than a text may be would be cut within an address.
MOST_NAMED = 4


def token_listed(case: InspectedCase) -> Verdict:
    """The person decides about the addresses themselves, and about a token that only listed ones may receive."""
    name, payload = "token-listed", token_of_case(case)
    if not isinstance(payload, Deploy):
        return allow(name, "It makes no token, and brings no list of addresses.")
    token = token_of_payload(payload, case.around.token)
    if token is None:
        return hold(name, "Whom it lists from the start is not known here: its bytecode is not proven.")
    count = len(token.whitelist)
    if not count:
        if not token.whitelist_enabled:
            return allow(name, "Any address may receive it, and none is listed.", listed=0)
        return hold(
            name,
            "Only listed addresses may receive it, and none is listed: at first its owner alone.",
            listed=0,
        )
    first = listed_at_first(token, case.around, MOST_NAMED)
    named = ", ".join(listed.words for listed in first)
    more = (
        f", and {count - len(first)} more of {count}, all beside the token's data"
        if count > len(first)
        else ""
    )
    digest = token.whitelist_hash.hex()
    who = (
        "Only listed addresses may receive it"
        if token.whitelist_enabled
        else "Any address may receive it until only listed ones may"
    )
    what = "is one address" if count == 1 else f"are {count} addresses"
    return hold(
        name,
        f"{who}. Listed from the start {what}: {named}{more}. The list's SHA-256 is {digest}.",
        listed=count,
        list_hash=digest,
    )
