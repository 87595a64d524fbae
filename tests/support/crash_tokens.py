"""The story of a token's call, for the crash harness: proven, asked, signed and submitted."""

from pathlib import Path

from signerd.daemon.funds import vault_funds, vault_tokens
from signerd.runtime import FaultPoint
from tests.support.crash_stories import (
    PSBT_ID,
    LastingPlatform,
    Story,
    lasting,
    payment_faults,
    prepare_payment,
    read_journal,
    sign_what_is_asked,
)
from tests.support.daemons import until
from tests.support.desk import VAULT_ID
from tests.support.fake_bridge import FakeBridge
from tests.support.tokens import GOLD, call, published, token_snapshot


async def live_tokens(folder: Path, fault: FaultPoint) -> None:
    shown = token_snapshot(call(), psbt_id=PSBT_ID)
    platform = LastingPlatform(folder, {PSBT_ID: shown}, published={1: published(GOLD)}, fault=fault)
    # It shows a token's data in full, so that the call is not held.
    bridge = FakeBridge(model="Trezor Model T", firmware="2.8.9")
    async with lasting(folder, platform, bridge) as daemon:
        await sign_what_is_asked(
            daemon, folder, lambda: daemon.journal.review_context(shown).screen is not None
        )
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
