"""What other rules or limits no longer stop or ask about."""

from collections.abc import Iterator

from multisig import Network, format_btc
from signerd.core.rules.values import Action, Rule, Rules, rule_words
from signerd.core.values import SigningLimits


def looser_rules(old: Rules, new: Rules, network: Network) -> tuple[str, ...]:
    """A sentence for each old rule that no new rule covers."""
    gone = (rule for rule in old.rules if not any(_covers(other, rule) for other in new.rules))
    return tuple(f"It holds no more as it did: {rule_words(rule, network)}." for rule in gone)


def _covers(new: Rule, old: Rule) -> bool:
    # One vault alone spends at most what all spend together.
    same_reach = new.vault is None or (old.vault is not None and old.codes <= new.codes)
    at_least = new.action is Action.REFUSE or old.action is Action.ASK
    now, before = new.condition, old.condition
    stops_as_much = now.limit <= before.limit and now.scripts == before.scripts
    return same_reach and at_least and now.kind is before.kind and stops_as_much


def looser_limits(old: SigningLimits, new: SigningLimits) -> Iterator[str]:
    if new.max_fee > old.max_fee:
        yield f"The largest fee goes up from {format_btc(old.max_fee)} to {format_btc(new.max_fee)} BTC."
    if new.max_fee_rate > old.max_fee_rate:
        yield f"The highest fee rate goes up from {old.max_fee_rate} to {new.max_fee_rate}."
    if new.max_fee_percent > old.max_fee_percent:
        yield f"The largest share of a fee goes up from {old.max_fee_percent} % to {new.max_fee_percent} %."
    if new.warn_fee_percent > old.warn_fee_percent:
        yield f"You are warned above {new.warn_fee_percent} %, no longer above {old.warn_fee_percent} %."
