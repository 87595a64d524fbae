"""A whole daemon under rules and with a lowered check: what the person is shown, asked and told."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from signerd.app import DaemonDependencies, open_daemon
from signerd.core.audit import Note
from signerd.core.states import State
from signerd.daemon.service import Daemon
from signerd.errors import RulesInvalid
from signerd.journal import held
from tests.support.daemons import MemoryStore, hurried_sleep, make_config, prepare, until_state
from tests.support.desk import CLAIM, VAULT, VAULT_ID, make_pin, snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import EMAIL, PASSWORD, FakePlatform

pytestmark = pytest.mark.anyio
# A Friday.
NIGHT = datetime(2026, 1, 2, 23, 59, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NIGHT

    def __call__(self) -> float:
        return self.now.timestamp()


@contextlib.asynccontextmanager
async def daemon_under(
    rules: str, tmp_path: Path, clock: Clock, psbt: object = None, **config: object
) -> AsyncIterator[tuple[Daemon, FakePlatform, FakeBridge]]:
    state = tmp_path / "s"
    state.mkdir(mode=0o700)
    prepare(state)
    (state / "rules.toml").write_text(rules)
    platform = FakePlatform(tmp_path, {"p-1": snapshot_of(psbt or spend())})
    bridge = FakeBridge()
    outside = DaemonDependencies(
        transport=platform.transport, bridge=bridge, now=clock, jitter=lambda: 0.5, sleep=hurried_sleep
    )
    with held(state):
        async with open_daemon(make_config(**config), state, MemoryStore(), outside) as daemon:
            await daemon.sign_in(EMAIL, PASSWORD)
            yield daemon, platform, bridge


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_s26_rules_for_a_vault_that_was_never_pinned_stop_the_start(
    tmp_path: Path, clock: Clock
) -> None:
    rules = f"[vaults.{VAULT_ID}.ask]\nalways = true\n[vaults.valut-1.refuse]\nalways = true\n"
    with pytest.raises(RulesInvalid, match=r"rules.toml, line 3: vaults.valut-1: no vault was ever pinned"):
        async with daemon_under(rules, tmp_path, clock):
            pass


async def test_s26_rules_are_the_quorums_whatever_the_platform_calls_it(tmp_path: Path, clock: Clock) -> None:
    """An alarm, "unpin, then pin again" under another id: the section still names the vault, at once and
    after a start.
    """
    rules = f"[vaults.{VAULT_ID}.ask]\nalways = true\n"
    async with daemon_under(rules, tmp_path, clock) as (daemon, platform, _bridge):
        journal, code = daemon.journal, VAULT.verification_code
        journal.unpin(VAULT_ID, Note("unpinned", VAULT_ID))
        assert (
            "rules.toml has rules for a vault that is not pinned here now: vault-1"
            in (await daemon.status()).notes
        )
        moved = replace(make_pin(), vault_id="vault-new")
        journal.learn(replace(CLAIM, vault_id="vault-new"))
        journal.add_pin(moved, Note("pinned", "vault-new"))
        platform.proposals["p-2"] = replace(snapshot_of(spend()), psbt_id="p-2", vault_id="vault-new")
        await until_state(daemon, "p-2", State.WAITING_PERSON)
        assert "rule-vault-ask-always" in (await daemon.proposal("p-2")).to_acknowledge
    state = tmp_path / "s"
    outside = DaemonDependencies(
        transport=platform.transport, bridge=FakeBridge(), now=clock, sleep=hurried_sleep
    )
    with held(state):
        async with open_daemon(make_config(), state, MemoryStore(), outside) as daemon:
            assert daemon.journal.rules.sections() == {VAULT_ID: frozenset({code})}
            assert "rule-vault-ask-always" in (await daemon.proposal("p-2")).to_acknowledge
