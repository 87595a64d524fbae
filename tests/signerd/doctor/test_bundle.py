"""What is sent to others who help: useful, and nothing that was planted anywhere is in it."""

import json
import platform
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from custody.common.terminal import Exit
from signerd.doctor.bundle import bundle
from signerd.doctor.finding import DoctorFinding, DoctorOutcome, Installation
from signerd.shapes import DeviceView
from tests.signerd.loopback.test_routes import STATUS
from tests.support.backups import remembering
from tests.support.command import signerd
from tests.support.desk import VAULT
from tests.support.examples import examples

DEVICE = DeviceView(
    id="trezor-1", family="trezor", name="T", model="T", label=None, endpoint="e", state="ready",
    fingerprint=None, emulator=True, detail=None, advice=None,
)  # fmt: skip

PLANTED = {
    "xpub": str(VAULT.cosigners[0].xpub),
    "fingerprint": str(VAULT.cosigners[0].fingerprint),
    "descriptor": VAULT.descriptor,
    "code": VAULT.verification_code,
    "address": VAULT.address(0, 0),
    "txid": "5e" * 32,
    "mail": "mallory.smith@example.org",
    "host": "treasury-laptop.lan",
    "url": "https://custody.bigbank.example",
    "home": "/home/mallory",
    "token": "s1_0123456789abcdefghijklmnop",
    "name": "Zanzibar Pension Fund",
    "amount": "12,345,678",
    "serial": "205032844D30",
}
SECRETS = st.text("abcdefghijklmnopqrstuvwxyz0123456789/:.@_-", min_size=6, max_size=60)


def planted(folder: Path, texts: list[str]) -> tuple[Installation, dict[str, DoctorFinding], tuple]:
    """A machine with these texts wherever a text can stand."""
    said = " ".join(texts)
    status = STATUS.model_copy(
        update={
            **{name: said for name, one in type(STATUS).model_fields.items() if "str" in str(one.annotation)},
            "notes": tuple(texts),
        }
    )
    device = DEVICE.model_copy(
        update={
            name: said
            for name, one in DeviceView.model_fields.items()
            if "str" in str(one.annotation) and name != "model"
        }
    )
    findings = {
        name: DoctorFinding(outcome, f"The vault {said} is locked: {text}.", said, f"Look at {said}")
        for name, outcome in (("notes", DoctorOutcome.NOTE), ("journal", DoctorOutcome.TROUBLE))
        for text in texts
    }
    return Installation(folder, folder, {"HOME": said}, lambda: 0.0, status), findings, (device,)


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """The journal's own words are planted, too: a kind and a state that no code of ours writes."""
    folder = remembering(tmp_path_factory.mktemp("bundle") / "s")
    with (folder / "config.toml").open("r+") as file:
        text = file.read()
        file.seek(0)
        file.write(f'label = "{PLANTED["name"]}"\n{text}'.replace("http://127.0.0.1:9", PLANTED["url"]))
    with closing(sqlite3.connect(folder / "journal.sqlite3")) as journal, journal:
        journal.execute("UPDATE proposals SET state = ?", (PLANTED["mail"],))
    return folder


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@example(["a-----"])
@given(st.lists(SECRETS | st.sampled_from(sorted(PLANTED.values())), min_size=1, max_size=4))
def test_nothing_planted_is_in_it(state, texts):
    text = json.dumps(bundle(*planted(state, texts)), ensure_ascii=False)
    for secret in (*texts, *PLANTED.values(), str(state), state.name + "/"):
        assert secret not in text


@pytest.mark.parametrize("name", ["Mallory's Linux", "debian\nx", "x" * 41, ""])
def test_the_systems_name_is_a_word_or_nothing(state, monkeypatch, name):
    def told(release):
        monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
        found = bundle(*planted(state, ["x"]))["system"]
        return found["id"], found["version"]

    assert told({"ID": name, "VERSION_ID": name}) == ("", "")
    assert told({"ID": "opensuse-leap", "VERSION_ID": "15.6"}) == ("opensuse-leap", "15.6")
    assert told({}) == ("", "")


def test_it_is_shown_in_full_before_it_is_written(state, tmp_path):
    out = tmp_path / "bundle.json"
    signerd("debug", "bundle", "--out", str(out), state=state, typed="n\n", ends=Exit.DECLINED)
    assert not out.exists()
    done = signerd("debug", "bundle", "--out", str(out), state=state, typed="y\n")
    assert json.loads(out.read_text()) == json.loads(done.out)
    assert signerd("debug", "bundle", "--json", state=state).json["format"] == 1
