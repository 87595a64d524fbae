"""What a program that collects figures gets, from a real daemon behind its real socket."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from firmware_bridge import DeviceState
from signerd.core.states import State
from signerd.daemon.reports import Figure
from signerd.errors import UnknownProposal
from signerd.loopback.access.guard import Refused
from signerd.loopback.metrics_text import exposition
from tests.support.served import make_outer, served_daemon


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics")
    with served_daemon(folder / "s", make_outer(folder)) as found:
        found.until(lambda: len(found.service.journal.records()) == 1)
        yield found


def read(desk):
    with desk.client() as client:
        text = client.metrics()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    return text, families


def value(family, **labels):
    (found,) = [sample.value for sample in family.samples if sample.labels == labels]
    return found


def test_what_there_is(desk):
    _text, families = read(desk)
    waiting = families["signerd_proposals"]
    assert value(waiting, state="waiting-for-person") == 1
    assert value(families["signerd_platform_reachable"]) == 1
    assert value(families["signerd_platform_heard_age_seconds"]) >= 0
    assert value(families["signerd_feed_position"]) == desk.service.feed.last
    assert value(families["signerd_memory_bytes"]) > 2**20
    assert value(families["signerd_signatures"]) == 0
    assert value(families["signerd_streams"]) == 0
    entries, _head = desk.on_loop(desk.service.journal.head)
    assert sum(sample.value for sample in families["signerd_decisions"].samples) == entries


def test_labels_are_bounded_by_what_the_code_names(desk):
    _text, families = read(desk)
    labels = {sample.labels["state"] for sample in families["signerd_proposals"].samples}
    assert labels == {state.value for state in State}
    labels = {sample.labels["state"] for sample in families["signerd_devices"].samples}
    assert labels == {state.value for state in DeviceState}


def test_who_was_refused_is_counted_by_reason(desk):
    with desk.client() as client, pytest.raises(UnknownProposal):
        client.proposal("nobody")
    _text, families = read(desk)
    assert value(families["signerd_calls_refused"], reason="unknown-proposal") >= 1


def test_l10_no_name_and_no_amount_is_told(desk):
    text, _families = read(desk)
    assert "p-1" not in text
    assert "Treasury" not in text
    assert re.search(r"tb1|bcrt1|[0-9a-f]{64}", text) is None


def test_a_label_cannot_break_a_line():
    text = exposition([Figure("x", "y", {'a"b\n': 1.0}, "l")]).decode()
    (family,) = text_string_to_metric_families(text)
    assert family.samples[0].labels == {"l": 'a"b\n'}


def test_refusals_are_counted():
    refused = Refused()
    refused.count("a")
    refused.count("a")
    assert refused.counts == {"a": 2}
