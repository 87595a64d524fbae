"""A platform whose audit log goes back: the daemon says so, in its status and in what it tells."""

import asyncio
from pathlib import Path

from custody.receipts import Receipt
from signerd.app import RECEIPTS_FILE, receipts_in
from signerd.feed import Feed, Troubles

URL = "https://custody.example"
ONE, TWO = Receipt("workspace:1", 1, "aa" * 32), Receipt("workspace:1", 2, "bb" * 32)


def test_p59_a_log_that_goes_back_is_told_and_remembered(tmp_path: Path) -> None:
    asyncio.run(_goes_back(tmp_path))


async def _goes_back(tmp_path: Path) -> None:
    file = tmp_path / RECEIPTS_FILE
    receipts_in(file, URL, Troubles(Feed(0))).hear(str(TWO), {})
    # Another start.
    troubles = Troubles(Feed(0))
    receipts = receipts_in(file, URL, troubles)
    receipts.hear(str(TWO), receipts.known)
    assert troubles.sentences() == ()
    receipts.hear(str(ONE), receipts.known)
    (sentence,) = troubles.sentences()
    assert "workspace:1 ends with row 1, and had 2 rows before" in sentence
    assert str(file) in sentence


def test_p59_a_platform_that_says_nothing_any_more_is_told_and_another_one_is_no_alarm(
    tmp_path: Path,
) -> None:
    asyncio.run(_falls_silent(tmp_path))


async def _falls_silent(tmp_path: Path) -> None:
    file, path = tmp_path / RECEIPTS_FILE, "/api/v1/psbt"
    receipts_in(file, URL, Troubles(Feed(0))).hear(str(TWO), {}, path)
    # Another start: with the same platform, whose other paths never said anything.
    troubles = Troubles(Feed(0))
    receipts = receipts_in(file, URL, troubles)
    receipts.hear("", receipts.known, "/auth/user-info")
    assert troubles.sentences() == ()
    receipts.hear("", receipts.known, path)
    (sentence,) = troubles.sentences()
    assert f"no longer says in its answers to {path} where its audit log ends" in sentence
    # With another one, whose log is shorter, and which sends no receipts at all.
    troubles = Troubles(Feed(0))
    receipts = receipts_in(file, "https://other.example", troubles)
    receipts.hear("", receipts.known, path)
    receipts.hear(str(ONE), receipts.known, path)
    assert troubles.sentences() == ()
    assert receipts_in(file, "https://other.example", troubles).known == {ONE.chain: ONE}


def test_a_file_that_is_none_stops_nothing_and_is_told(tmp_path: Path) -> None:
    asyncio.run(_is_none(tmp_path))


async def _is_none(tmp_path: Path) -> None:
    file = tmp_path / RECEIPTS_FILE
    file.write_text("nonsense")
    troubles = Troubles(Feed(0))
    receipts = receipts_in(file, URL, troubles)
    receipts.hear(str(ONE), receipts.known)
    (sentence,) = troubles.sentences()
    assert "cannot be read" in sentence
