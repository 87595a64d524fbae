"""The use cases of pairing over a real journal: L2, L6, L7, L13."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from signerd.apps.names import PREFIX
from signerd.apps.requests import MAX_TRIES
from signerd.errors import (
    InvalidRequest,
    UnknownPairing,
)
from signerd.journal.storage import JOURNAL
from tests.support.pairing import READ, SITE, World
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path)
    found.open()
    yield found
    found.journal.close()


# --- tokens -------------------------------------------------------------------------------------------------


async def test_l13_rights_are_never_added(world: World) -> None:
    asked = await world.apps.ask("An App", READ, None)
    for rights in ({"read", "approve"}, {"approve"}, {"person"}, set()):
        with pytest.raises(InvalidRequest):
            await world.apps.accept(asked.id, asked.code, rights=rights, days=90)
    assert [one.tries_left for one in await world.apps.open_requests()] == [MAX_TRIES]


async def test_l10_of_a_token_a_secret_and_a_code_nothing_is_written_down(world: World) -> None:
    asked = await world.apps.ask("An App", READ, None)
    await world.apps.accept(asked.id, asked.code, rights=None, days=90)
    collected = await world.apps.collect(asked.id, asked.secret)
    token = (collected.token or "").removeprefix(PREFIX)
    told = " ".join(line.text for line in world.feed.since(0))
    shown = f"{asked!r} {collected!r} {await world.apps.list()!r}"
    facts = str([(entry.note.subject, dict(entry.note.facts)) for entry in world.journal.audit()])
    world.journal.close()
    kept = b"".join(path.read_bytes() for path in world.folder.glob(f"{JOURNAL}*"))
    for secret in (token, asked.secret, asked.code):
        assert secret not in told + shown + facts
    for secret in (token, asked.secret):
        assert secret.encode() not in kept
    world.open()


async def test_the_use_of_a_token_is_noted_once_a_day(world: World) -> None:
    collected = await world.paired()
    for _ in range(100):
        assert world.works(collected.token)
    world.pass_time(86_400)
    assert world.works(collected.token)
    assert world.notes().count("app-used") == 2
    assert [one.last_used for one in await world.apps.list()] == ["2026-01-03"]


async def test_l13_waiters_for_the_end_of_an_app_are_woken(world: World) -> None:
    revoked, kept, over = await world.paired(), await world.paired(), await world.paired(days=1)
    ends = [asyncio.create_task(world.apps.gone(one.app_id or "")) for one in (revoked, kept)]
    await asyncio.sleep(0)
    await world.apps.revoke(revoked.app_id or "")
    async with asyncio.timeout(PATIENCE):
        await ends[0]
    assert not ends[1].done()
    ends[1].cancel()
    world.pass_time(86_400)
    async with asyncio.timeout(PATIENCE):
        await world.apps.gone(over.app_id or "")
        await world.apps.gone("never-there")


# --- requests -----------------------------------------------------------------------------------------------


async def test_l8_what_is_known_of_an_asker_is_told_before_what_it_calls_itself(world: World) -> None:
    await world.apps.let_in(SITE, 5)
    await world.apps.ask("Shop' of https://bank.example", READ, None)
    await world.apps.ask("Shop", READ, SITE)
    told = [line.text for line in world.feed.since(0, "pairing") if line.kind == "ask"]
    assert told == [
        "The program 'Shop' of https://bank.example' asks to be paired: read.",
        f"The site {SITE} ('Shop') asks to be paired: read.",
    ]


async def test_l7_ids_secrets_and_tokens_cannot_be_guessed_and_another_secret_gets_nothing(
    world: World,
) -> None:
    first, second = await world.apps.ask("One", READ, None), await world.apps.ask("Two", READ, None)
    assert len(bytes.fromhex(first.id)) == 16
    assert first.id != second.id
    await world.apps.accept(first.id, first.code, rights=None, days=90)
    sentences = set()
    for pairing_id, secret in ((first.id, second.secret), ("0" * 32, first.secret), (second.id, "A" * 43)):
        with pytest.raises(UnknownPairing) as refused:
            await world.apps.collect(pairing_id, secret)
        sentences.add(str(refused.value))
    assert len(sentences) == 1
    collected = await world.apps.collect(first.id, first.secret)
    assert len(collected.token or "") == len(PREFIX) + 43
