"""A failing explorer: the backend's answer is true, or it raises ChainUnavailable."""

from contextlib import suppress
from dataclasses import replace

import httpx
import pytest

from custody.server.chain.backend import Accepted
from custody.server.errors import ChainUnavailable
from multisig.units import FeeRate
from tests.support.chains import confirmed_coin
from tests.support.esplora import as_json, edited, plain
from tests.support.examples import drawn
from tests.support.regtest import open_output, spend

PATHS = (
    "/blocks/tip/hash",
    "/block-height/.*",
    "/block/[0-9a-f]*",
    "/blocks/[0-9]+",
    "/scripthash/[0-9a-f]*",
    "/scripthash/.*/txs/chain.*",
    "/scripthash/.*/txs/mempool",
    "/tx/.*/raw",
    "/tx/.*/status",
    "/tx/.*/merkle-proof",
    "/tx/.*/outspend/.*",
    "/tx",
    "/fee-estimates",
)


def time_out(_response):
    raise httpx.ReadTimeout("slow")


def broken_off(_response):
    raise httpx.RemoteProtocolError("peer closed connection")


FAULTS = {
    "slow": time_out,
    "broken off": broken_off,
    "a gateway's page": lambda _: plain("<html>502 Bad Gateway</html>", 502),
    "too many requests": lambda _: httpx.Response(429, headers={"Retry-After": "1"}),
    "sent elsewhere": lambda _: httpx.Response(302, headers={"Location": "https://elsewhere.example.org"}),
    "a page of a hotel": lambda _: plain("<html>Welcome! Please sign in.</html>"),
    "nothing": lambda _: plain(""),
    "truncated": lambda true: httpx.Response(200, content=true.content[: len(true.content) // 2]),
    "no such thing": lambda _: plain("Not found", 404),
    "a refusal": lambda _: plain("Invalid hex string", 400),
    "null": lambda _: as_json(None),
    "an empty list": lambda _: as_json([]),
    "an empty object": lambda _: as_json({}),
    "a number": lambda _: as_json(1e308),
    "deep": lambda _: plain("[" * 100_000),
    "other bytes": lambda _: httpx.Response(200, content=bytes(range(256))),
}


class Scene:
    """A confirmed coin that is spent in the mempool, and one that is unspent."""

    def __init__(self, rig):
        self.first, number = confirmed_coin(rig)
        self.second, _ = confirmed_coin(rig)
        self.elsewhere = open_output(rig.fresh())
        self.sent = spend(self.first, number, to=self.elsewhere)
        rig.send(self.sent)
        self.scripts = [self.first.script_pubkey, self.second.script_pubkey, self.elsewhere]

    def questions(self, backend):
        """Each with what an explorer may make of its answer undetected: hide, forget."""
        yield backend.tip, exactly
        yield lambda: backend.block_at(self.first.block.height), exactly
        yield lambda: backend.block_at(10_000), exactly
        yield lambda: backend.outputs_to(self.scripts), fewer
        yield lambda: backend.transaction(self.first.outpoint.txid), perhaps
        yield lambda: backend.transaction(self.sent.txid), perhaps
        yield lambda: backend.transaction("ab" * 32), exactly
        yield lambda: backend.broadcast(self.sent), sent


def exactly(found, true):
    return found == true


def perhaps(found, true):
    return found is None or found == true


def fewer(found, true):
    unspent = {replace(each, spent=None) for each in true}
    return all(each in true or each in unspent for each in found)


def sent(found, true):
    return found in {true, Accepted(true.txid)}


@pytest.fixture
def scene(rig):
    return Scene(rig)


@pytest.mark.parametrize("path", drawn(PATHS, len(PATHS) // 2, of=__name__))
def test_every_fault_of_every_answer_is_noticed_or_harmless(rig, scene, path):
    """Asked by a backend that knows nothing yet and by one that knows all."""
    true = [ask() for ask, _ in scene.questions(rig.backend)]
    noticed = 0
    for fault in FAULTS.values():
        for backend in (rig.stranger(), rig.backend):
            with rig.explorer.answering(path, fault):
                for (ask, may_be), expected in zip(scene.questions(backend), true, strict=True):
                    try:
                        found = ask()
                    except ChainUnavailable:
                        noticed += 1
                        continue
                    assert may_be(found, expected), (fault, found)
    assert noticed or path == "/fee-estimates"


def test_an_explorer_that_falls_behind_is_not_believed(rig):
    rig.mine(5)
    tip = rig.backend.tip()
    before = rig.backend.block_at(tip.height - 1)
    with (
        rig.explorer.answering("/blocks/tip/hash", lambda _: plain(before.hash)),
        pytest.raises(ChainUnavailable, match="behind"),
    ):
        rig.backend.tip()
    assert rig.backend.tip() == tip


def moving_between_the_pages(rig, *moves):
    """What a fresh backend finds of sixty payments, while the chain moves at each page but the first."""
    number, left = rig.fresh(), list(moves)
    for _ in range(60):
        rig.fund(number, 1_000)
        rig.mine()
    rig.explorer.before = lambda path: left.pop()() if "/txs/chain/" in path and left else None
    found = rig.stranger().outputs_to([open_output(number)])
    assert left == []
    return found


def test_the_tip_that_moves_between_the_pages_is_read_again(rig):
    found = moving_between_the_pages(rig, rig.mine, rig.mine)
    assert len(found) == 60
    assert all(each.block == rig.chain.block_at(each.block.height) for each in found)


def test_a_branch_that_comes_between_the_pages_is_read_again(rig):
    found = moving_between_the_pages(rig, lambda: rig.reorganise(3, 4))
    assert sorted(each.block is None for each in found) == [False] * 57 + [True] * 3


def test_a_tip_that_moves_at_every_look_is_given_up(rig, scene):
    rig.explorer.before = lambda path: rig.mine() if path == "/blocks/tip/hash" else None
    with pytest.raises(ChainUnavailable, match="at every read"):
        rig.backend.outputs_to(scene.scripts)
    assert len(rig.explorer.asked) < 400


@pytest.mark.parametrize("count", [3, 2**40])
def test_a_history_that_never_reaches_its_count_is_given_up(rig, scene, count):
    def more(stats):
        return stats | {"chain_stats": {"tx_count": count}}

    with rig.explorer.answering("/scripthash/[0-9a-f]*", edited(more)), pytest.raises(ChainUnavailable):
        rig.backend.outputs_to(scene.scripts)
    assert len(rig.explorer.asked) < 200


def test_an_estimate_is_of_the_slowest_target_that_is_fast_enough(rig):
    for target, rate in ((1, 12_345), (2, 12_345), (5, 8_000), (72, 2_001), (5_000, 1_000)):
        assert rig.backend.fee_estimate(target) == FeeRate(rate)
    with rig.explorer.answering("/fee-estimates", lambda _: plain('{"2": 1.0001}')):
        assert rig.backend.fee_estimate(2) == FeeRate(1_001), "rounded up"


@pytest.mark.parametrize(
    "answer",
    [
        *map(as_json, ({}, {"6": 4.0}, {"2": 0}, {"2": -5}, {"2": 1e300})),
        *map(plain, ('{"2": "much"}', '{"two": 1}', "[]", '{"2": NaN}', '{"2": Infinity}')),
        plain("endpoint does not exist", 404),
    ],
    ids=lambda answer: answer.text,
)
def test_there_is_no_estimate_where_it_cannot_tell(rig, answer):
    with rig.explorer.answering("/fee-estimates", lambda _: answer), suppress(ChainUnavailable):
        assert rig.backend.fee_estimate(2) is None
