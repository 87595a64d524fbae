"""S29: what comes back goes to an address that a wallet which restores the policy finds."""

from collections.abc import Sequence

from multisig import Change
from signerd.core.checks.case import InspectedCase
from signerd.core.places import GAP, NEW_POLICY, is_near, last_below, policy_code, with_coins
from signerd.core.text import amount, place_words
from signerd.core.verdicts import Verdict, allow, hold

# A person reads so many of them; the rest is counted.
SHOWN = 3


def change_index(case: InspectedCase) -> Verdict:
    """Held where an address lies further than the gap from every one that is known to be used.

    The outputs of this transaction do not vouch for one another: each is measured from what was known before.
    """
    name = "change-index"
    known = with_coins(case.around.places.get(policy_code(case.policy), NEW_POLICY), case.inspection)
    far = [back for back in case.inspection.change if not is_near(known[back.chain], back.index)]
    if not far:
        return allow(
            name, f"What comes back goes to addresses that a wallet with a gap limit of {GAP:,} finds."
        )
    furthest = max(far, key=lambda back: back.index)
    below = last_below(known[furthest.chain], furthest.index)
    seen = "none of that chain" if below is None else f"{below:,}"
    return hold(
        name,
        f"It sends {_told(far)}. The highest address below that this machine knows to be used is {seen}: a wallet that "
        f"restores the keys looks {GAP:,} addresses further and would not find this money. Approve it only if you know "
        "why it goes there, and write the index down.",
        chain=furthest.chain,
        address_index=furthest.index,
        outputs=", ".join(str(back.output_index) for back in far),
    )


def _told(far: Sequence[Change]) -> str:
    told = [f"{amount(back.amount)} to {place_words(back.chain, back.index)}" for back in far[:SHOWN]]
    more = f", and {len(far) - SHOWN} more" if len(far) > SHOWN else ""
    return f"{', '.join(told)}{more}"
