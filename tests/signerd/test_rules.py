"""A whole daemon under rules: what the person is shown, asked and told."""

from dataclasses import replace

import pytest

from signerd.core.audit import Note
from signerd.core.states import State
from signerd.errors import RulesInvalid
from tests.support.daemons import daemon_at, notices, until_state
from tests.support.desk import CLAIM, VAULT, VAULT_ID, make_pin, snapshot_of, spend

pytestmark = pytest.mark.anyio
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
