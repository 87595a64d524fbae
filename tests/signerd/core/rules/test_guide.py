"""docs/rules.md: its example is read and does what its comments say, and its tables are whole."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from multisig import ChangeTo, Network, Psbt, TxOut, build_psbt, decode_address, sats
from signerd.account.config import ChecksSection
from signerd.core.checks.table import LOWERABLE
from signerd.core.review import review
from signerd.core.rules.reading import KEYS, read_rules
from signerd.core.rules.spending import Moment
from signerd.core.rules.values import RULE_NAMES
from tests.support.desk import VAULT, make_pin, review_context, snapshot_of
from tests.support.wallets import fund, pay

GUIDE = (Path(__file__).parents[4] / "docs" / "rules.md").read_text()
EXAMPLE, LOWERED = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
FRIDAY_NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
FRIDAY_NIGHT = datetime(2026, 1, 2, 22, tzinfo=UTC)
SATS = 100_000_000
CODE = VAULT.verification_code
(COLD,) = re.findall(r"vaults\.([0-9A-Z-]{39})\.", EXAMPLE)
KNOWN = {name: frozenset({f"code of {name}"}) for name in ("petty-cash", "treasury")}
(LISTED,) = re.findall(r'"(bcrt1\w+)"', EXAMPLE)


def paying(amount: int, script: bytes | None = None) -> Psbt:
    payment = pay(amount) if script is None else TxOut(sats(amount), script)
    return build_psbt(
        VAULT, [fund(VAULT, 10 * SATS)], [payment, ChangeTo(sats(10 * SATS - amount - 1_000), 1, 0)], 0
    )


def said(psbt: Psbt, vault_id: str, now: datetime = FRIDAY_NOON) -> tuple[set[str], frozenset[str]]:
    pin = make_pin()
    # The cold vault stands there by its code.
    example = EXAMPLE.replace(COLD, CODE) if vault_id == "cold" else EXAMPLE
    around = review_context(
        rules=read_rules(example, Network.REGTEST, KNOWN | {vault_id: frozenset({CODE})}),
        moment=Moment(now, now),
        pin=type(pin)(vault_id, pin.workspace_id, pin.name, pin.vault, pin.own_key),
    )
    found = review(snapshot_of(psbt, vault_id=vault_id), around)
    return {verdict.name for verdict in found.refusals}, found.to_acknowledge


@pytest.mark.parametrize(
    ("psbt", "vault_id", "now", "refused", "asked"),
    [
        (paying(SATS // 2), "other", FRIDAY_NOON, set(), set()),
        (paying(SATS // 2 + 1), "other", FRIDAY_NOON, set(), {"rule-ask-per-transaction"}),
        (paying(1_000), "other", FRIDAY_NIGHT, set(), {"rule-ask-hours"}),
        (paying(5 * SATS + 1), "other", FRIDAY_NOON, {"rule-refuse-per-week"}, {"rule-ask-per-transaction"}),
        (paying(1_000), "petty-cash", FRIDAY_NOON, {"rule-vault-refuse-address"}, set()),
        (paying(1_000, decode_address(LISTED, Network.REGTEST)), "petty-cash", FRIDAY_NOON, set(), set()),
        (
            paying(2_000_001, decode_address(LISTED, Network.REGTEST)),
            "petty-cash",
            FRIDAY_NOON,
            {"rule-vault-refuse-per-day"},
            set(),
        ),
        (paying(1_000), "cold", FRIDAY_NOON, {"rule-vault-refuse-always"}, set()),
        (paying(1_000), "treasury", FRIDAY_NOON, set(), {"rule-vault-ask-always"}),
    ],
)
def test_the_example_does_what_it_says(
    psbt: Psbt, vault_id: str, now: datetime, refused: set[str], asked: set[str]
) -> None:
    assert said(psbt, vault_id, now) == (refused, asked)


def test_the_tables_are_whole() -> None:
    keys, checks = (GUIDE.split(f"| {head} |")[1].split("\n\n")[0] for head in ("key", "check"))
    named = {
        name
        for row in keys.splitlines()
        for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    }
    assert named == set(KEYS)
    assert tuple(sorted(re.findall(r"^\| `([\w-]+)`", checks, re.MULTILINE))) == LOWERABLE
    assert set(re.findall(r"`(rule-[\w-]+)`", GUIDE)) <= set(RULE_NAMES)


def test_the_checks_that_it_lowers_may_be_lowered() -> None:
    names = re.findall(r'"([\w-]+)"', LOWERED)
    assert ChecksSection(lowered=tuple(names)).lowered == tuple(names)
