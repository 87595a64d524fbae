"""A daemon over the scripted platform and device, for tests that change neither before it starts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from signerd.core.review import ProposalReview
from signerd.core.values import ReviewContext, Snapshot
from signerd.daemon import imported
from signerd.daemon.service import Daemon
from tests.support.daemons import daemon_at
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform


@pytest.fixture
async def daemon(prepared: Path, platform: FakePlatform, bridge: FakeBridge) -> AsyncIterator[Daemon]:
    async with daemon_at(prepared, platform, bridge) as daemon:
        yield daemon


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The proposals of which a review was made to be shown, in order."""
    ids: list[str] = []
    real = imported.review

    def counting(snapshot: Snapshot, context: ReviewContext) -> ProposalReview:
        ids.append(snapshot.psbt_id)
        return real(snapshot, context)

    monkeypatch.setattr(imported, "review", counting)
    return ids
