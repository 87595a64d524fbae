"""rules show: from the files alone."""

from custody.common.terminal import Exit
from tests.signerd.cli.test_daemon import CONFIG
from tests.support.command import signerd
from tests.support.desk import VAULT_ID


def test_the_rules_that_count_are_shown(prepared):
    state = prepared
    (state / "config.toml").write_text(CONFIG)
    assert "No rules" in signerd("rules", "show", state=state).out
    path = state / "rules.toml"
    path.write_text(f'[vaults.{VAULT_ID}.ask]\nalways = true\n[refuse]\nabove_per_day = "60000 sat"\n')
    ended = signerd("rules", "show", state=state)
    assert f"Rules of {path}" in ended.out
    assert (
        "refuse: more than 0.00060000 BTC (60,000 sats) within 24 hours, from all vaults together"
        "  [rule-refuse-per-day]" in ended.out
    )
    assert "when it started" in ended.out
    views = signerd("rules", "show", "--json", state=state).json
    assert [(view["name"], view["vault_id"]) for view in views] == [
        ("rule-refuse-per-day", None),
        ("rule-vault-ask-always", VAULT_ID),
    ]
    (state / "config.toml").unlink()
    assert signerd("rules", "show", "--json", state=state, ends=Exit.STATE).error["code"] == "config-missing"
