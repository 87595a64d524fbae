"""Metrics: their content, readers and guide; they contain no id and no caller's text (P49)."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from custody.schemas.calls import CALLS
from custody.server.app import Platform
from custody.server.cli.serving import _process
from custody.server.errors import DatabaseUnavailable
from custody.server.meters import Meters
from custody.server.metrics import StoredFigures
from custody.server.operations.status import ChainFigures, JobFigures, ProposalFigures, StatusFigures
from custody.server.store import Store
from custody.server.web.listen import CannotListen, ListenAddress, serving_metrics
from tests.support.custody import SHOP, Desk, ok, open_desk
from tests.support.platform import START, Clock

LOOPBACK = ListenAddress("127.0.0.1", 0)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A platform on which a payment was proposed, signed, sent and confirmed, and things were refused."""
    with open_desk(tmp_path_factory.mktemp("state")) as desk:
        desk.deposit(100_000, 200_000)
        psbt_id = ok(desk.propose(30_000))["psbt_id"]
        for name in ("alice", "bob"):
            desk.approve(name, psbt_id)
        desk.settle()
        desk.chain.mine(1)
        desk.watcher.look()
        ok(desk.propose(20_000))
        assert desk.world.http.get("/api/v1/no-such-thing/17").status_code == 404
        assert desk.world.http.request("BREW", "/health").status_code == 405
        assert desk.world.http.get("/api/v1/psbt").status_code == 401
        yield desk


@contextmanager
def scraped(registry: CollectorRegistry) -> Iterator[HTTPConnection]:
    with serving_metrics(LOOPBACK, registry) as address:
        connection = HTTPConnection(address.host, address.port, timeout=20)
        yield connection
        connection.close()


def scrape(platform: Platform) -> dict[str, list[Sample]]:
    registry = platform.services.store.meters.registry
    with scraped(registry) as connection:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        families = list(text_string_to_metric_families(answer.read().decode()))
    assert all(family.documentation and family.type != "unknown" for family in families)
    found: dict[str, list[Sample]] = {}
    for family in families:
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def figure(samples: dict[str, list[Sample]], name: str, **labels: str) -> float:
    return sum(sample.value for sample in samples[name] if labels.items() <= sample.labels.items())


def test_what_is_told_of_requests_the_database_jobs_and_the_network(used: Desk) -> None:
    told = scrape(used.world.platform)
    tip, regtest = used.chain.tip().height, {"chain": "regtest"}
    signed = {"route": "/api/v1/sign-psbt", "method": "POST"}
    for value, name, labels in (
        (2, "http_requests_total", signed | {"status": "200"}),
        (2, "http_request_seconds_count", signed),
        (1, "http_requests_total", {"route": "/api/v1/psbt", "status": "401"}),
        (1, "http_requests_total", {"route": "other", "status": "404"}),
        (1, "http_requests_total", {"method": "other", "status": "405"}),
        (0, "http_requests_in_flight", {}),
        (0, "long_polls", {}),
        (1, "database_up", {}),
        (1, "job_attempts_total", {"kind": "broadcast", "outcome": "done"}),
        (1, "job_seconds_count", {"kind": "broadcast"}),
        (1, "broadcasts_total", regtest | {"outcome": "accepted"}),
        *((1, "proposals_moved_total", {"status": each}) for each in ("SIGNED", "BROADCASTING", "CONFIRMED")),
        (1, "proposals", {"status": "PENDING"}),
        (0, "proposals_oldest_seconds", {"status": "PENDING"}),
        (1, "chain_backend_up", regtest),
        (tip, "chain_tip_height", regtest),
        (tip, "chain_backend_tip_height", regtest),
    ):
        assert figure(told, f"custody_{name}", **labels) == value, (name, labels)
    writes = figure(told, "custody_database_write_hold_seconds_count")
    assert writes == figure(told, "custody_database_write_wait_seconds_count") > 10


def test_labels_are_words_of_our_own_tables(used: Desk) -> None:
    """Nothing grows with what callers do, and no id is told."""
    routes = {row.path for row in CALLS} | {"/health", "/ready", "/openapi.json", "other"}
    told = scrape(used.world.platform)
    for samples in told.values():
        for sample in samples:
            labels = sample.labels
            assert labels.get("route", "other") in routes
            rest = {name: value for name, value in labels.items() if name not in {"route", "le"}}
            assert all(re.fullmatch(r"[\w.-]{0,40}", value) for value in rest.values()), sample
    text = str(told)
    secrets = (
        SHOP,
        used.vault["id"],
        "example.org",
        *(user.headers["Authorization"] for user in used.signers.values()),
    )
    assert not [secret for secret in secrets if secret in text]


def test_the_listener_of_metrics_is_loopbacks_alone() -> None:
    with (
        pytest.raises(CannotListen, match="metrics tell"),
        serving_metrics(ListenAddress("0.0.0.0", 0), CollectorRegistry()),
    ):
        pytest.fail("it listens")


def test_a_server_tells_of_its_process_where_it_is_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with _process("serve", tmp_path, "127.0.0.1:0", works=True):
        (address,) = re.findall(
            r"^Metrics on http://127.0.0.1:(\d+)/metrics$", capsys.readouterr().out, re.MULTILINE
        )
        connection = HTTPConnection("127.0.0.1", int(address), timeout=20)
        connection.request("GET", "/metrics")
        assert b"process_resident_memory_bytes" in connection.getresponse().read()
        connection.close()
    with _process("serve", tmp_path, None, works=True):
        assert capsys.readouterr().out == ""


def test_a_database_that_is_away_is_told_and_hides_nothing_else(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise DatabaseUnavailable("The database cannot be reached.")

    monkeypatch.setattr(store, "read", away)
    registry = Meters().registry
    registry.register(StoredFigures(store, Clock()))
    assert registry.get_sample_value("custody_database_up") == 0


GUIDE = Path(__file__).parents[3] / "docs" / "operate" / "monitoring.md"
METRIC = re.compile(r"\b(?:custody|process)_[a-z_]+\b")
FIGURES = StatusFigures(
    (JobFigures("mail", 1, 0, 0, 0, START, START),),
    (ProposalFigures("PENDING", 1, START),),
    (ChainFigures("regtest", 1, "00", START),),
)


def test_the_guide_for_monitoring_names_every_metric_of_ours_and_no_other(store: Store, monkeypatch) -> None:
    """docs/operate/monitoring.md; of a histogram's parts it may name any."""
    monkeypatch.setattr(StoredFigures, "_read", lambda _self: FIGURES)
    meters = Meters()
    meters.registry.register(StoredFigures(store, Clock()))
    meters.watch_process()
    families = list(meters.registry.collect())
    names = {f"{each.name}_total" if each.type == "counter" else each.name for each in families}
    parts = {
        f"{each.name}_{part}"
        for each in families
        if each.type == "histogram"
        for part in ("bucket", "count", "sum")
    }
    named = set(METRIC.findall(GUIDE.read_text()))
    assert sorted(named - names - parts) == []
    assert sorted(name for name in names - named if name.startswith("custody_")) == []
