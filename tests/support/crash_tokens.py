"""The story of a token's call, for the crash harness: proven, asked, signed and submitted."""

from pathlib import Path

from signerd.core.states import State
from signerd.daemon.funds import vault_funds, vault_tokens
from signerd.runtime import FaultPoint
from tests.support.crash_stories import (
    ASKING,
    PSBT_ID,
    FileMemory,
    LastingPlatform,
    Story,
    add_one,
    payment_faults,
    prepare_payment,
    read_journal,
)
from tests.support.daemons import approve, daemon_at, state_of, until
from tests.support.desk import VAULT_ID
from tests.support.fake_bridge import FakeBridge
from tests.support.tokens import GOLD, call, published, token_snapshot


async def live_tokens(folder: Path, fault: FaultPoint) -> None:
    shown = token_snapshot(call(), psbt_id=PSBT_ID)
    platform = LastingPlatform(
        folder,
        {PSBT_ID: shown},
        published={1: published(GOLD)},
        fault=fault,
    )
    # It shows a token's data in full, so that the call is not held.
    bridge = FakeBridge(prompts=folder / "prompts", model="Trezor Model T", firmware="2.8.9")
    store = FileMemory(folder / "session")
    async with daemon_at(folder / "state", platform, bridge, store=store, fault=fault) as daemon:
        while state_of(daemon, PSBT_ID) is not State.SUBMITTED:
            await until(lambda: state_of(daemon, PSBT_ID) in (*ASKING, State.SUBMITTED))
            await until(lambda: daemon.journal.review_context(shown).screen is not None)
            if state_of(daemon, PSBT_ID) in ASKING:
                add_one(folder / "yes")
                await approve(daemon, PSBT_ID)
        await until(
            lambda: bool(daemon.follower.state.workspaces) and daemon.journal.claim(VAULT_ID) is not None
        )
        await vault_tokens(daemon, VAULT_ID)
        await vault_funds(daemon, VAULT_ID)


def token_faults(folder: Path, point: str) -> list[str]:
    with read_journal(folder) as journal:
        told = [entry.note.kind for entry in journal.audit()].count("token-proven")
        known = journal.bytecode(call()) == GOLD
    wrong = [] if known and told == 1 else [f"the token was proven {told} times"]
    return [*wrong, *payment_faults(folder, point)]


TOKENS = Story("tokens", prepare_payment, live_tokens, token_faults)
