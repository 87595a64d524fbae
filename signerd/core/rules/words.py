"""A rule as a person reads it back."""

from multisig import Network, encode_address
from signerd.core.rules.values import (
    AboveFeeRate,
    AbovePerTransaction,
    AboveWithin,
    Always,
    ExceptTo,
    ExceptWithin,
    OffScreen,
    OfToken,
    Rule,
)
from signerd.core.text import amount


def rule_words(rule: Rule, network: Network) -> str:
    """``refuse: more than 0.50000000 BTC (50,000,000 sats) within 24 hours, from the vault v-1``."""
    whose = "from all vaults together" if rule.vault is None else f"from the vault {rule.vault}"
    return f"{rule.action}: {_condition(rule, network)}, {whose}"


def _condition(rule: Rule, network: Network) -> str:  # noqa: PLR0911 - one for each condition
    match rule.condition:
        case AbovePerTransaction(limit):
            return f"more than {amount(limit)} in one transaction"
        case AboveWithin(period, limit):
            return f"more than {amount(limit)} within {period.words}"
        case AboveFeeRate(limit):
            return f"a fee rate above {limit}"
        case ExceptTo(scripts):
            listed = sorted(encode_address(script, network) or script.hex() for script in scripts)
            return f"a payment to anybody but {', '.join(listed)}"
        case ExceptWithin(hours):
            return f"at any time but {hours}"
        case OfToken():
            return "whatever makes or calls a token"
        case OffScreen(seen_by):
            unless = f" and that {', '.join(sorted(map(str, seen_by)))} did not sign" if seen_by else ""
            return f"a token's data that this device does not show whole{unless}"
        case Always():
            return "every payment"
