"""Learning tokens from the platform: before a proposal is judged, within bounds, and without believing a word
(S12, S13).
"""

import pytest

from firmware_bridge import DeviceState
from signerd.core.states import State
from signerd.core.tokens import PublishedToken
from signerd.errors import NeedsAcknowledgement, StaleApproval
from signerd.journal import quota
from tests.support.daemons import daemon_at, submits, until, until_state
from tests.support.desk import snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.tokens import GOLD, call, gold, published, token_snapshot

pytestmark = pytest.mark.anyio


async def test_s12_what_is_not_proven_is_refused_and_shown_in_the_decimals_of_its_token_once_it_is(
    prepared, tmp_path
):
    """What proves nothing is `journal/test_books.py`'s."""
    proposals = {"t-1": token_snapshot(call()), "p-1": snapshot_of(spend())}
    platform = FakePlatform(tmp_path, proposals, published={1: published(gold(decimals=8))})
    # It shows a token's data whole.
    bridge = FakeBridge(model="Trezor Model T", firmware="2.8.9")
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "t-1", State.REFUSED)
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        view = await daemon.proposal("t-1")
        assert [c.name for c in view.checks if c.outcome == "refuse"] == ["token-known"]
        (data,) = view.money.data
        assert not data.token.proven
        assert "1250 raw units of tokens that this machine does not know" in data.token.sentence
        assert any("t-1" in note and "not proven" in note for note in (await daemon.status()).notes)
        platform.published = {1: published(GOLD)}
        await until_state(daemon, "t-1", State.WAITING_PERSON)
        await until(lambda: not any("not proven" in line for line in daemon.troubles.sentences()))
        (data,) = (await daemon.proposal("t-1")).money.data
        assert data.token.sentence.startswith("Send 12.50 GOLD tokens to ")
        # Known for good: nothing of it is asked for again.
        asked = platform.requests.count(("GET", "/api/v1/contract"))
        await submits(daemon, "t-1")
        assert platform.requests.count(("GET", "/api/v1/contract")) == asked


async def test_s28_the_device_that_is_there_says_what_is_held(prepared, tmp_path):
    """A Trezor One is exchanged for a device with the same seed that shows all, while the call waits."""
    platform = FakePlatform(tmp_path, {"t-1": token_snapshot(call())}, published={1: published(GOLD)})
    bridge = FakeBridge(model="Trezor One", firmware="1.14.1")
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "t-1", State.WAITING_PERSON)
        await until(lambda: daemon.journal.review_context(token_snapshot(call())).screen is not None)
        view = await daemon.proposal("t-1")
        (data,) = view.money.data
        assert view.to_acknowledge == ("token-not-on-screen",)
        assert data.token.on_screen == data.token.hex[:62]
        assert data.token.not_on_screen == ("contract", "amount", "recipient")
        with pytest.raises(NeedsAcknowledgement):
            await daemon.approve("t-1", view.digest)
        bridge.becomes(DeviceState.ABSENT)
        bridge.model, bridge.firmware = "Trezor Model T", "2.8.9"
        bridge.becomes(DeviceState.READY)
        model = "Trezor Model T 2.8.9"
        await until(lambda: daemon.journal.review_context(token_snapshot(call())).screen.name == model)
        shown = await daemon.proposal("t-1")
        (data,) = shown.money.data
        assert (shown.to_acknowledge, data.token.on_screen) == ((), data.token.hex)
        with pytest.raises(StaleApproval):
            await daemon.approve("t-1", view.digest, frozenset({"token-not-on-screen"}))
        await daemon.approve("t-1", shown.digest)
        await until_state(daemon, "t-1", State.SUBMITTED)


async def test_f_tokens_have_an_end_and_that_is_an_alarm(prepared, tmp_path, monkeypatch):
    """They are kept for good, and an attacker can prove any number of tokens of their own."""
    # As if all but two of them were there.
    monkeypatch.setitem(quota._KINDS, "tokens", f"SELECT count(*) + {quota.MOST - 2} FROM bytecodes")
    tokens = {n: gold(ticker=f"GOLD{n}") for n in (1, 2, 3)}
    proposals = {
        f"t-{n}": token_snapshot(token.deployment, psbt_id=f"t-{n}", contract_uid=n)
        for n, token in tokens.items()
    }
    shown = {n: PublishedToken(token.blob) for n, token in tokens.items()}
    async with daemon_at(
        prepared, FakePlatform(tmp_path, proposals, published=shown), FakeBridge()
    ) as daemon:
        await until_state(daemon, "t-3", State.REFUSED)
        known = [daemon.journal.bytecode(token.deployment) for token in tokens.values()]
        assert known == [tokens[1], tokens[2], None]
        (alarm,) = daemon.feed.since(0, "platform")
        assert alarm.kind == "alarm"
        assert "tokens, which is the most" in alarm.text
