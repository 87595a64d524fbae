"""What the demo's token moves fits the limit of the demo's vault, and is what it says."""

from multisig.tokens import format_units, token_amount
from signerd.demo import tokens


def test_its_amounts_are_below_the_vault_s_limit_of_one_whole_token() -> None:
    assert format_units(token_amount(tokens.SENT), tokens.DECIMALS) == "0.40"
    assert format_units(token_amount(tokens.BURNT), tokens.DECIMALS) == "0.10"
    left = int(tokens.FIRST_SUPPLY) - tokens.SENT - tokens.BURNT
    assert format_units(token_amount(left), tokens.DECIMALS) == "999.50"
