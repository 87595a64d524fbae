"""Settings and rules: changed while the daemon runs they are as the file is read, recorded first, and
effective at once; what lets pass what was stopped before; and a whole daemon under rules.
"""

import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import RECEIVE, Sats
from signerd.callers import CallerKind, LoopbackCaller, Right
from signerd.core.audit import Note
from signerd.core.rules.values import Action, Condition, Rule, RuleKind, Rules
from signerd.core.states import State
from signerd.core.values import SigningLimits
from signerd.daemon import editing
from signerd.daemon.editing import looser_limits, looser_rules
from signerd.errors import ConfigInvalid, LooserSettings, RulesInvalid, SettingsChanged
from tests.support.daemons import daemon_at, noted, notices, submits, until_state
from tests.support.desk import CLAIM, NETWORK, VAULT, VAULT_ID, make_pin, read_rules, snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import URL, FakePlatform
from tests.support.look_alikes import alike
from tests.support.patience import PATIENCE
from tests.support.payments import spend_of

APP = LoopbackCaller(CallerKind.APP, "An app", frozenset({Right.READ, Right.APPROVE}), "a-1")
pytestmark = pytest.mark.anyio

CONFIG = f"""network = "{NETWORK}"
[platform]
url = "{URL}"
long_poll_seconds = 0
[devices]
usb = false
"""


@pytest.fixture
async def daemon(prepared, tmp_path):
    (prepared / "config.toml").write_text(CONFIG)
    (prepared / "rules.toml").write_text("# mine\n")
    platform = FakePlatform(tmp_path, {"p-1": snapshot_of(spend())})
    async with daemon_at(prepared, platform, FakeBridge()) as found:
        found.config_file = prepared / "config.toml"
        await until_state(found, "p-1", State.WAITING_PERSON)
        yield found


def change(daemon, name, text, **said):
    files = {file.name: file for file in editing.files(daemon)}
    return editing.change(daemon, name, text, files[name].digest, **{"looser": False, **said})


async def test_a_rule_counts_at_once_and_is_asked_again_in_words_before_it_goes(daemon):
    rule = '[refuse]\nabove_per_transaction = "0.0001 BTC"\n'
    change(daemon, "rules.toml", rule)
    await until_state(daemon, "p-1", State.REFUSED)
    assert (daemon.state / "rules.toml").read_text() == rule
    with pytest.raises(LooserSettings, match=r"0\.00010000 BTC"):
        change(daemon, "rules.toml", "")
    assert daemon.journal.record("p-1").state is State.REFUSED
    change(daemon, "rules.toml", "", looser=True)
    await until_state(daemon, "p-1", State.WAITING_PERSON)
    notes = noted(daemon, "settings-changed")
    assert [(note.subject, len(note.facts["looser"])) for note in notes] == [
        ("rules.toml", 0),
        ("rules.toml", 1),
    ]


def test_a_file_is_utf_8_whatever_the_desktops_language_writes(tmp_path):
    """As a desktop whose language knows no umlaut."""
    path = tmp_path / "config.toml"
    program = (
        "import sys; from pathlib import Path; from signerd.daemon.editing import staged\n"
        "with staged(Path(sys.argv[1]), 'label = \"Z\\xfcrich\"\\n') as put: put()"
    )
    plain_c = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", program, path], env=plain_c, check=True, timeout=PATIENCE)
    assert path.read_bytes() == 'label = "Zürich"\n'.encode()


async def test_limits_and_names_count_at_once(daemon):
    (paid,) = (await daemon.proposal("p-1")).money.payments
    text = f'{CONFIG}[limits]\nmax_fee_btc = "0.000001"\n[addresses]\n"Acme" = "{paid.address}"\n'
    change(daemon, "config.toml", text)
    await until_state(daemon, "p-1", State.REFUSED)
    assert (await daemon.proposal("p-1")).labels == ("Acme",)
    # An app is told none of the person's own names: in no list, and in the answer to no decision.
    (own,), (apps,) = await daemon.proposals(ended=True), await daemon.proposals(ended=True, by=APP)
    assert (own.labels, "to Acme" in own.title) == (("Acme",), True)
    assert (apps.labels, "Acme" in apps.title) == ((), False)
    assert (await daemon.decline("p-1", by=APP)).labels == ()
    looser = editing.preview(daemon, "config.toml", CONFIG, editing.files(daemon)[0].digest)
    assert looser == ("The largest fee goes up from 0.00000100 to 0.10000000 BTC.",)
    own = VAULT.address(RECEIVE, 0)
    named = CONFIG + f'[addresses]\nOurs = "{own}"\nReserve = "{alike(own)}"\n'
    with pytest.raises(LooserSettings, match=f"{alike(own)} looks like {own}"):
        change(daemon, "config.toml", named)
    lowered = editing.preview(
        daemon, "config.toml", f'{text}[checks]\nlowered = ["fee-share"]\n', editing.files(daemon)[0].digest
    )
    assert "fee-share" in lowered[0]


@pytest.mark.parametrize(
    ("name", "text", "error", "words"),
    [
        ("rules.toml", "[refuse]\nabove = 1\n", RulesInvalid, "line 2"),
        ("rules.toml", "[vaults.nobody.refuse]\nalways = true\n", RulesInvalid, "no vault was ever pinned"),
        ("config.toml", CONFIG + "[limits]\nmax_fee_rate = -1\n", ConfigInvalid, "line 8"),
        ("config.toml", CONFIG.replace("usb = false", "usb = true"), ConfigInvalid, "nothing else"),
        ("config.toml", CONFIG.replace("regtest", "mainnet"), ConfigInvalid, "nothing else"),
    ],
)
async def test_a_mistake_is_told_as_at_the_start_and_nothing_is_written_or_recorded(
    daemon, name, text, error, words
):
    before = {file.name: file for file in editing.files(daemon)}
    entries = daemon.journal.head()
    with pytest.raises(error, match=words):
        change(daemon, name, text, looser=True)
    assert {file.name: file for file in editing.files(daemon)} == before
    assert daemon.journal.head() == entries


async def test_a_file_that_was_changed_meanwhile_or_cannot_be_written_is_left_alone(daemon):
    rules = daemon.state / "rules.toml"
    digest = editing.files(daemon)[1].digest
    rules.write_text("# by hand\n")
    with pytest.raises(SettingsChanged):
        editing.change(daemon, "rules.toml", "", digest, looser=True)
    assert rules.read_text() == "# by hand\n"
    entries = daemon.journal.head()
    (daemon.state / ".rules.toml.new").mkdir()
    with pytest.raises(ConfigInvalid, match="cannot be written"):
        change(daemon, "rules.toml", "")
    assert (rules.read_text(), daemon.journal.head()) == ("# by hand\n", entries)


REFUSE = "[refuse]\n"
CASES = {
    "a limit goes up": (REFUSE + 'above_per_day = "1 BTC"', REFUSE + 'above_per_day = "2 BTC"', 1),
    "a limit goes down": (REFUSE + 'above_per_day = "2 BTC"', REFUSE + 'above_per_day = "1 BTC"', 0),
    "a rule goes": (REFUSE + "any_token = true", "", 1),
    "a rule comes": ("", REFUSE + "any_token = true", 0),
    "it only asks": (REFUSE + "always = true", "[ask]\nalways = true", 1),
    "it refuses now": ("[ask]\nalways = true", REFUSE + "always = true", 0),
    "another kind": (REFUSE + 'above_per_day = "1 BTC"', REFUSE + 'above_per_transaction = "1 BTC"', 1),
}


@pytest.mark.parametrize(("old", "new", "looser"), CASES.values(), ids=CASES)
def test_what_lets_more_pass_is_told_and_what_does_not_is_not(old, new, looser):
    found = looser_rules(read_rules(old, NETWORK), read_rules(new, NETWORK), NETWORK)
    assert len(found) == looser


ALWAYS = Condition(RuleKind.ALWAYS)


def test_one_vaults_rule_does_not_stand_for_that_of_all():
    of_all, of_one = (Rule(Action.REFUSE, ALWAYS), Rule(Action.REFUSE, ALWAYS, "v-1", frozenset({"C"})))
    assert looser_rules(Rules((of_all,)), Rules((of_one,)), NETWORK)
    assert not looser_rules(Rules((of_one,)), Rules((of_all,)), NETWORK)
    other = replace(of_one, codes=frozenset({"D"}))
    assert looser_rules(Rules((of_one,)), Rules((other,)), NETWORK)


LIMITS = st.integers(min_value=0, max_value=10**9).map(Sats)
RULES = st.lists(
    st.builds(
        Rule,
        st.sampled_from(Action),
        st.builds(Condition, st.sampled_from((RuleKind.PER_TRANSACTION, RuleKind.PER_DAY)), LIMITS),
    ),
    max_size=4,
).map(lambda rules: Rules(tuple(rules)))


@given(RULES, RULES, st.integers(min_value=0, max_value=10**9))
def test_where_nothing_is_told_no_amount_passes_that_was_stopped(old, new, paid):
    """One payment alone, judged by every rule."""

    def stopped(rules: Rules) -> set[Action]:
        met = {rule.action for rule in rules.rules if paid > rule.condition.limit}
        return met | ({Action.ASK} if Action.REFUSE in met else set())

    if not looser_rules(old, new, NETWORK):
        assert stopped(old) <= stopped(new)


def test_each_limit_that_goes_up_is_told():
    low = SigningLimits(max_fee=Sats(1_000), max_fee_percent=1, warn_fee_percent=1)
    high = SigningLimits(max_fee=Sats(2_000), max_fee_percent=2, warn_fee_percent=2)
    assert len(list(looser_limits(low, high))) == 3
    assert list(looser_limits(high, low)) == []


ASK = f"[vaults.{VAULT_ID}.ask]\nalways = true\n"


async def test_s26_rules_for_a_vault_that_was_never_pinned_stop_the_start(prepared, platform, bridge):
    (prepared / "rules.toml").write_text(f"{ASK}[vaults.valut-1.refuse]\nalways = true\n")
    with pytest.raises(RulesInvalid, match=r"rules.toml, line 3: vaults.valut-1: no vault was ever pinned"):
        async with daemon_at(prepared, platform, bridge):
            pass


async def test_s26_rules_are_the_quorums_whatever_the_platform_calls_it(prepared, platform, bridge):
    """An alarm, "unpin, then pin again" under another id: the section still names the vault, at once and
    after a start.
    """
    (prepared / "rules.toml").write_text(ASK)
    async with daemon_at(prepared, platform, bridge) as daemon:
        daemon.journal.unpin(VAULT_ID, Note("unpinned", VAULT_ID))
        told = "rules.toml has rules for a vault that is not pinned here now: vault-1"
        assert await notices(daemon, told) == [told]
        daemon.journal.learn(replace(CLAIM, vault_id="vault-new"))
        daemon.journal.add_pin(replace(make_pin(), vault_id="vault-new"), Note("pinned", "vault-new"))
        platform.proposals["p-2"] = replace(snapshot_of(spend()), psbt_id="p-2", vault_id="vault-new")
        await until_state(daemon, "p-2", State.WAITING_PERSON)
        assert "rule-vault-ask-always" in (await daemon.proposal("p-2")).to_acknowledge
    async with daemon_at(prepared, platform, bridge, sign_in=False) as daemon:
        assert daemon.journal.rules.sections() == {VAULT_ID: frozenset({VAULT.verification_code})}
        assert "rule-vault-ask-always" in (await daemon.proposal("p-2")).to_acknowledge


async def test_what_the_days_limit_refused_is_asked_about_a_day_later(prepared, platform, bridge):
    (prepared / "rules.toml").write_text('[refuse]\nabove_per_day = "60000 sat"\n')
    ahead = [0]
    async with daemon_at(prepared, platform, bridge, now=lambda: time.time() + ahead[0]) as daemon:
        await submits(daemon, "p-1")
        platform.proposals["p-2"] = snapshot_of(spend_of((2,), (("other", 40_000),)), "p-2")
        await until_state(daemon, "p-2", State.REFUSED)
        ahead[0] = 24 * 60 * 60
        await until_state(daemon, "p-2", State.WAITING_PERSON)
