"""The emergency kit: what it says, that it asks nothing of any network, and that it holds no secret."""

import json
import re
import shlex
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from multisig import CHANGE, RECEIVE, Network, Vault
from signerd.core.values import Pin
from signerd.kit.document import ADDRESSES, core_lines, file_name, kit
from tests.support.desk import VAULT, make_pin
from tests.support.kits import parsed
from tests.support.virtual import vault as many

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def pin_of(vault: Vault, name: str = "Treasury") -> Pin:
    return Pin("vault-1", 1, name, vault, vault.cosigners[0])


@pytest.fixture(scope="module")
def html():
    return kit(make_pin(), NOW)


def test_it_says_all_that_a_wallet_needs(html):
    found = parsed(html)
    assert found.texts["descriptor"] == VAULT.descriptor
    assert found.texts["code"] == VAULT.verification_code
    assert found.texts["quorum"] == "2 of 3"
    assert [row[1:3] for row in found.rows["keys"]] == [
        [str(key.origin.path), str(key.xpub)] for key in VAULT.cosigners
    ]
    wanted = [
        [name, str(index), VAULT.address(chain, index)]
        for chain, name in ((RECEIVE, "receive"), (CHANGE, "change"))
        for index in range(ADDRESSES)
    ]
    assert found.rows["addresses"] == wanted
    codes = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len([ET.fromstring(code) for code in codes]) == 1 + len(wanted)


def test_it_loads_and_runs_nothing(html):
    class Names(HTMLParser):
        def handle_starttag(self, tag, attributes):
            seen.append((tag, {name for name, _value in attributes}))

    seen: list = []
    Names().feed(html)
    tags = {tag for tag, _names in seen}
    assert not tags & {"script", "img", "link", "iframe", "object", "form", "a", "base"}
    names = set().union(*(names for _tag, names in seen))
    assert not {name for name in names if name.startswith("on")} | (names & {"src", "href", "style"})
    assert "default-src 'none'; style-src 'sha256-" in unescape(html)


def test_names_of_the_platform_stay_text():
    html = kit(pin_of(VAULT, "<script>alert(1)</script>\u202e"), NOW)
    assert "<script" not in html
    assert "\u202e" not in html
    assert file_name(pin_of(VAULT, "../../x <y>")) == "kit-x-y.html"
    assert file_name(pin_of(VAULT, "…")) == "kit-vault.html"


def test_the_lines_for_core_are_whole_on_every_network():
    for network in Network:
        lines = core_lines(many(2, 3, network))
        imported = json.loads(shlex.split(lines["import"])[-1])
        assert [entry["internal"] for entry in imported] == [False, True]
        assert all(entry["desc"].startswith("wsh(sortedmulti(2,[") for entry in imported)
        assert "<0;1>" not in lines["import"]
