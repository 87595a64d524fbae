"""A configuration and rules that an earlier version read are read by every later one, and mean the same.

The files beside this one are never edited. A key that is given another name is read under both.
"""

import tomllib
from pathlib import Path

from multisig import Network
from signerd.account.config import Config, load_config, load_rules
from signerd.core.rules.values import rule_words

FROZEN = Path(__file__).parent


def read(file):
    return tomllib.loads((FROZEN / file).read_text(encoding="utf-8"))


def test_the_configuration_of_the_first_version_means_what_it_meant():
    written = read("config.toml")
    config = load_config(FROZEN / "config.toml").model_dump(mode="json")
    for name, value in written.items():
        found = config[name]
        if isinstance(value, dict):
            found = {key: found[key] for key in value}
        assert found == value


def test_it_has_every_key_that_this_version_reads_but_those_that_came_later():
    later = {"addresses", "advisory_keys", "backup", "key_made_on", "person_minutes", "sandbox"}
    written = read("config.toml")
    assert set(Config.model_fields) - later == set(written)
    for name, value in written.items():
        if isinstance(value, dict):
            section = Config.model_fields[name].annotation
            assert set(section.model_fields) - later - set(value) <= {"ca_file"}


def test_the_rules_of_the_first_version_mean_what_they_meant():
    rules = load_rules(FROZEN / "rules.toml", Network.REGTEST).resolved({"vault-1": frozenset({"CODE"})})
    assert [f"{rule.name}: {rule_words(rule, Network.REGTEST)}" for rule in rules.rules] == RULES


RULES = """\
rule-refuse-per-week: refuse: more than 5.00000000 BTC (500,000,000 sats) within 7 days, from all vaults together
rule-refuse-fee-rate: refuse: a fee rate above 300 sat/vB, from all vaults together
rule-refuse-token-screen: refuse: a token's data that this device does not show whole, from all vaults together
rule-ask-per-transaction: ask: more than 0.50000000 BTC (50,000,000 sats) in one transaction, from all vaults together
rule-ask-token: ask: whatever makes or calls a token, from all vaults together
rule-ask-hours: ask: at any time but mon, tue, wed, thu, fri 08:00 to 18:00 Europe/Zurich, from all vaults together
rule-vault-refuse-per-day: refuse: more than 0.02000000 BTC (2,000,000 sats) within 24 hours, from the vault vault-1
rule-vault-refuse-address: refuse: a payment to anybody but bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080, from the vault vault-1
rule-vault-ask-always: ask: every payment, from the vault vault-1
rule-vault-ask-token-screen: ask: a token's data that this device does not show whole and that 73c5da0a did not sign, from the vault vault-1
""".splitlines()  # noqa: E501 - a rule is a line
