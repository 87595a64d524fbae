"""What movements were worth: by the operator's file, whatever becomes of it."""

import os
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from custody.server.service.history.records import RatesFile, RatesMisconfigured
from tests.support.custody import Desk
from tests.support.history import listed

HEAD = "date,currency,rate\n"


def write(file: Path, text: str | bytes) -> None:
    """A new version, whatever the clock of the file system says."""
    fresh = file.with_suffix(".new")
    fresh.write_bytes(text.encode() if isinstance(text, str) else text)
    fresh.replace(file)


def test_each_movement_has_the_rate_of_its_day(funded: Desk, tmp_path: Path) -> None:
    funded.deposit(70_000, blocks=0)
    assert all(one["fiat"] is None for one in listed(funded))
    file = tmp_path / "rates.csv"
    *confirmed, pending = listed(funded, order="oldest")
    day = datetime.fromisoformat(confirmed[0]["at"]).date() - timedelta(days=2)
    write(file, f"\ufeff{HEAD}{day},EUR,81234.56\n")
    object.__setattr__(funded.world.platform.services.history, "rates", RatesFile(file))
    *confirmed, pending = listed(funded, order="oldest")
    assert pending["fiat"] is None
    for one in confirmed:
        amount = (Decimal(one["amount_sats"]) * Decimal("81234.56") / 10**8).quantize(Decimal("0.01"))
        told = {"currency": "EUR", "rate": "81234.56", "rate_date": str(day), "amount": str(amount)}
        assert one["fiat"] == told
    write(file, f"{HEAD}{day - timedelta(days=6)},EUR,81234.56\n")
    assert all(one["fiat"] is None for one in listed(funded))


@pytest.mark.parametrize("bad", ["", HEAD, f"{HEAD}2026-05-01,EUR,8", b"\xff\n", "x" * 1_000_001, None])
def test_p72_a_file_that_goes_bad_changes_nothing_and_is_told_once(
    tmp_path: Path, bad: str | bytes | None
) -> None:
    file = tmp_path / "rates.csv"
    write(file, f"{HEAD}2026-05-01,EUR,81234.56\n")
    source = RatesFile(file)
    source.require()
    known = source.rates()
    assert known is not None
    if bad is None:
        file.unlink()
    else:
        write(file, bad)
    with capture_logs() as logs:
        assert source.rates() == source.rates() == known
    assert [(line["event"], line["log_level"]) for line in logs] == [("rates not read", "warning")]
    with pytest.raises(RatesMisconfigured, match=r"rates\.csv cannot be used: "):
        RatesFile(file).require()
    write(file, f"{HEAD}2026-05-01,EUR,9\n")
    newer = source.rates()
    assert newer is not None
    assert newer.rates == [Decimal(9)]


def test_p72_a_pipe_and_a_folder_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(RatesMisconfigured):
            RatesFile(tmp_path / name).require()
