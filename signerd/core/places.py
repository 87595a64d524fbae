"""The addresses of a policy that are known to be used, and the gap limit (S29).

A wallet that restores a policy derives addresses in order and stops after a gap of unused ones. It would not
find change beyond the gap; the platform, which knows the index, could ask for a ransom.

Known are the addresses to which transactions signed on this machine paid, and those of the coins that a
transaction spends. A coin counts only within the gap: anyone who knows the descriptor can pay dust to any
address.
"""

from collections.abc import Iterable

from multisig import CHANGE, RECEIVE, Inspection, Policy, Vault

# A wallet with this gap limit finds every coin. Forwards use the same limit; the platform's watcher has 20.
GAP = 1_000

Span = tuple[int, int]
"""The first and the last of known addresses that lie no further apart than the gap."""
Spans = tuple[Span, ...]
"""In order. Not just the highest index: an approved address far away does not make those below it known."""
Places = tuple[Spans, Spans]
"""Of the receive chain (0) and the change chain (1)."""

# As if the address before the first one were used: a new policy reaches from 0 to GAP - 1.
NEW_CHAIN: Spans = ((-1, -1),)
NEW_POLICY: Places = (NEW_CHAIN, NEW_CHAIN)
CHAINS = (RECEIVE, CHANGE)


def merged(spans: Iterable[Span]) -> Spans:
    """Sorted; spans no further apart than the gap are joined."""
    joined: list[Span] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + GAP:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def joined(known: Places, more: Places) -> Places:
    return merged((*known[RECEIVE], *more[RECEIVE])), merged((*known[CHANGE], *more[CHANGE]))


def is_near(spans: Spans, index: int) -> bool:
    return any(first - GAP <= index <= last + GAP for first, last in spans)


def last_below(spans: Spans, index: int) -> int | None:
    """The highest known address below ``index``; None where there is none."""
    return max((last for _first, last in spans if 0 <= last < index), default=None)


def with_coins(known: Places, inspection: Inspection) -> Places:
    """``known`` with the spent coins, as far as a wallet with the gap limit finds them."""
    receive, change = (_reaching(known[chain], _spent_from(inspection, chain)) for chain in CHAINS)
    return receive, change


def _spent_from(inspection: Inspection, chain: int) -> list[int]:
    coins = ((coin.chain, coin.address_index) for coin in inspection.inputs)
    return sorted(index for where, index in coins if where == chain and index is not None)


def _reaching(spans: Spans, indexes: Iterable[int]) -> Spans:
    for index in indexes:
        if is_near(spans, index):
            spans = merged((*spans, (index, index)))
    return spans


def used_by(inspection: Inspection, known: Places) -> Places:
    """The addresses that become known when this transaction is signed.

    Addresses that are near only because of its coins do not count: a coin may be of a transaction that was
    never sent. An address beyond the gap counts, because the person acknowledged it.
    """
    near = with_coins(known, inspection)

    def used(chain: int) -> Spans:
        before = known[chain]
        spent = (index for index in _spent_from(inspection, chain) if is_near(before, index))
        back = (change.index for change in inspection.change if change.chain == chain)
        paid = (index for index in back if is_near(before, index) or not is_near(near[chain], index))
        return merged((index, index) for index in (*spent, *paid))

    return used(RECEIVE), used(CHANGE)


def policy_code(policy: Policy) -> str:
    """The key under which a policy's places are stored; it does not depend on the platform's names."""
    return policy.verification_code if isinstance(policy, Vault) else str(policy.key)
