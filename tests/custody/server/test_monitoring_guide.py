"""docs/operate/monitoring.md: every metric that it names is one, and every one is named."""

import re
from pathlib import Path

import pytest

from custody.server.metrics import StoredFigures
from custody.server.operations.status import ChainFigures, JobFigures, ProposalFigures, StatusFigures
from custody.server.store import Store, sqlite_url
from tests.support.platform import START, Clock

GUIDE = Path(__file__).parents[3] / "docs" / "operate" / "monitoring.md"
METRIC = re.compile(r"\b(?:custody|process)_[a-z_]+\b")
OURS = re.compile(r"\bcustody_[a-z_]+\b")
FIGURES = StatusFigures(
    (JobFigures("mail", 1, 0, 0, 0, START, START),),
    (ProposalFigures("PENDING", 1, START),),
    (ChainFigures("regtest", 1, "00", START),),
)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Every name under which Prometheus may ask for a figure."""
    store = Store.open(sqlite_url(tmp_path / "custody.db"))
    monkeypatch.setattr(StoredFigures, "_read", lambda _self: FIGURES)
    registry = store.meters.registry
    registry.register(StoredFigures(store, Clock()))
    store.meters.watch_process()
    found = set()
    for family in registry.collect():
        found.add(f"{family.name}_total" if family.type == "counter" else family.name)
        if family.type == "histogram":
            found |= {f"{family.name}_{part}" for part in ("bucket", "count", "sum")}
    store.close()
    return found


def test_every_metric_that_is_named_is_one(names: set[str]) -> None:
    named = set(METRIC.findall(GUIDE.read_text()))
    assert sorted(named - names) == []


def test_every_metric_of_ours_is_named(names: set[str]) -> None:
    parts = re.compile(r"_(bucket|count|sum)$")
    ours = {name for name in names if OURS.fullmatch(name) and not parts.search(name)}
    assert sorted(ours - set(METRIC.findall(GUIDE.read_text()))) == []
