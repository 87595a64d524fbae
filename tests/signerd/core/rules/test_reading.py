"""rules.toml: read whole or refused whole, each mistake with its line; the example and tables of
docs/sign/rules.md hold.
"""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import Network, decode_address
from signerd.core.rules.values import Action, Condition, Rule, RuleKind, Rules
from signerd.errors import RulesInvalid
from tests.support.desk import read_rules
from tests.support.wallets import make_vault

ADDRESS = make_vault().address(0, 7)
ALL = f"""\
[refuse]
above_per_transaction = "1.5 BTC"
any_token = true
[ask]
above_per_day = "50000 sat"
always = false

[vaults.treasury.refuse]
above_per_day = "0 BTC"
except_to = ["{ADDRESS}"]
[vaults."petty-cash".ask]
always = true
"""


CODE = make_vault().verification_code
KNOWN = {"treasury": frozenset({"T-1", "T-2"}), "petty-cash": frozenset({"P"}), "v": frozenset({"V"})}


def read(text: str) -> Rules:
    return read_rules(text, Network.REGTEST, KNOWN)


def test_every_kind_of_rule_can_be_written() -> None:
    assert read("# nothing yet\n") == Rules()
    assert list(read(ALL).rules) == [
        Rule(Action.REFUSE, Condition(RuleKind.PER_TRANSACTION, 150_000_000)),
        Rule(Action.REFUSE, Condition(RuleKind.TOKEN)),
        Rule(Action.ASK, Condition(RuleKind.PER_DAY, 50_000)),
        Rule(Action.REFUSE, Condition(RuleKind.PER_DAY, 0), "treasury", KNOWN["treasury"]),
        Rule(
            Action.REFUSE,
            Condition(RuleKind.ADDRESS, scripts=frozenset({decode_address(ADDRESS, Network.REGTEST)})),
            "treasury",
            KNOWN["treasury"],
        ),
        Rule(Action.ASK, Condition(RuleKind.ALWAYS), "petty-cash", KNOWN["petty-cash"]),
    ]


def test_the_rules_of_a_vault_are_the_common_ones_and_its_own() -> None:
    rules = read(ALL)
    assert [rule.name for rule in rules.of("T-2")] == [
        "rule-refuse-per-transaction",
        "rule-refuse-token",
        "rule-ask-per-day",
        "rule-vault-refuse-per-day",
        "rule-vault-refuse-address",
    ]
    assert rules.sections() == {name: KNOWN[name] for name in ("treasury", "petty-cash")}
    assert len(rules.of("other")) == len(rules.of(None)) == 3


def test_s26_a_section_names_a_vault_by_its_code_before_it_is_pinned_too() -> None:
    text = f"[vaults.{CODE.lower()}.ask]\nalways = true\n"
    (rule,) = read_rules(text, Network.REGTEST).rules
    assert rule.codes == {CODE}
    # An id that the platform made to look like another vault's code takes nothing away from that one.
    (rule,) = read_rules(text, Network.REGTEST, {CODE.lower(): frozenset({"B"})}).rules
    assert rule.codes == {CODE, "B"}


@pytest.mark.parametrize("name", ["valut", CODE[:-5], CODE.replace("-", ""), CODE[:-1] + "I"])
def test_s26_a_section_that_names_no_vault_stops_with_its_line(name: str) -> None:
    text = f"[ask]\nany_token = true\n\n[vaults.{name}.refuse]\nalways = true\n"
    with pytest.raises(RulesInvalid, match=f"line 4: vaults.{name}: no vault was ever pinned here"):
        read(text)


def test_s26_what_is_pinned_under_the_id_of_a_section_has_its_rules_beside_what_was() -> None:
    rules = read("[vaults.v.ask]\nalways = true\n").pinned("v", "W").pinned("w", "X")
    assert rules.sections() == {"v": {"V", "W"}}


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("[refuse\n", 1, "not TOML"),
        ("[ask]\n\nabove_per_day = ", 3, "not TOML"),
        (
            '[ask]\nabove_a_day = "1 BTC"\n',
            2,
            "ask.above_a_day: there is no such key here: write one of above_per",
        ),
        ("[deny]\n", 1, "deny: there is no such key here: write one of refuse, ask, vaults"),
        ("allow = true\n", 1, "allow: there is no such key"),
        (
            '[vaults.v.allow]\nexcept_to = ["x"]\n',
            1,
            "vaults.v.allow: there is no such key here: write one of refuse, ask",
        ),
        ("refuse = true\n", 1, r"write \[refuse\] on a line"),
        ("[[vaults.v]]\n", 1, r"write \[vaults.v\] on a line"),
        ("\n\n[vaults]\nv = 7\n", 4, "vaults.v: it is a section"),
        ("[refuse]\nabove_per_day = 1\n", 2, '"0.5 BTC" or "50000 sat"'),
        ('[refuse]\nabove_per_day = "1"\n', 2, '"0.5 BTC" or "50000 sat"'),
        ('[refuse]\nabove_per_day = "1 btc"\n', 2, '"0.5 BTC" or "50000 sat"'),
        ('[refuse]\nabove_per_day = "1,000 sat"\n', 2, '"0.5 BTC" or "50000 sat"'),
        ('[refuse]\nabove_per_day = "007 sat"\n', 2, '"0.5 BTC" or "50000 sat"'),
        ('[refuse]\nabove_per_day = "-1 sat"\n', 2, '"0.5 BTC" or "50000 sat"'),
        ('[refuse]\nabove_per_day = "1e3 sat"\n', 2, '"0.5 BTC" or "50000 sat"'),
        ('[refuse]\nabove_per_day = "٣ sat"\n', 2, '"0.5 BTC" or "50000 sat"'),
        ('[refuse]\nabove_per_day = "21000001 BTC"\n', 2, "21 million[^.]*: write an amount"),
        ('[refuse]\nabove_per_day = "2100000000000001 sat"\n', 2, "21 million"),
        (f'[refuse]\nabove_per_day = "{"9" * 5000} sat"\n', 2, "50000 sat"),
        ("[ask]\nexcept_to = []\n", 2, "always = true"),
        ('[ask]\nexcept_to = "bc1"\n', 2, "a list of addresses of regtest"),
        ("[ask]\nexcept_to = [\n  7,\n]\n", 2, "a list of addresses of regtest"),
        (
            '[ask]\nexcept_to = ["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"]\n',
            2,
            "not an address of regtest",
        ),
        ('[ask]\nalways = "yes"\n', 2, "true or false"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_to_write(text: str, line: int, what: str) -> None:
    with pytest.raises(RulesInvalid, match=what) as refused:
        read(text)
    assert f"line {line}" in str(refused.value)


@given(st.text(alphabet='[]."=ask refuseabov_pdy1BTC\n{}', max_size=60))
def test_s23_whatever_is_written_is_rules_or_refused(text: str) -> None:
    with suppress(RulesInvalid):
        assert isinstance(read(text), Rules)
