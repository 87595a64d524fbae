"""backup, restore: with a daemon beside them and without one."""

import re

import pytest
from pyrage import x25519

from custody.common.terminal import Exit
from multisig import Network
from signerd.backup.container import Manifest
from signerd.backup.restoring import BackupSummary
from signerd.backup.sealing import MAGIC
from signerd.cli.backup import backup_summary_text
from tests.support.backups import NOON, open_one, remembering
from tests.support.command import is_tame, signerd
from tests.support.desk import VAULT, VAULT_ID
from tests.support.kits import parsed


@pytest.fixture
def state(tmp_path):
    return remembering(tmp_path / "s")


def test_a_round_with_a_passphrase(state, tmp_path):
    file, new = tmp_path / "b.age", tmp_path / "new"
    with open_one(state):
        made = signerd("backup", str(file), state=state, typed="horse and staple\n")
    assert file.read_bytes().startswith(MAGIC)
    wrong = signerd("restore", str(file), state=new, typed="other\n", ends=Exit.STATE)
    assert not new.exists()
    assert "passphrase does not open it" in wrong.err
    done = signerd("restore", str(file), state=new, typed="horse and staple\ny\n")
    assert is_tame(done.out)
    with open_one(state) as journal:
        code = journal.pins()[0].vault.verification_code
    (head,) = re.findall(r"head ([0-9a-f]{64})", made.out)
    (mark,) = re.findall(r"in it: ([0-9a-f]{64})", made.out)
    for part in (
        f"Fingerprint of all that is in it: {mark}",
        head,
        code,
        "There are rules in it, of 2 lines",
        "1 may have been signed",
        "Stop the signerd that this backup is from",
    ):
        assert part in done.out
    signerd("audit", "verify", state=new)


def test_a_round_with_a_key(state, tmp_path):
    identity, file, new = x25519.Identity.generate(), tmp_path / "b.age", tmp_path / "new"
    (tmp_path / "key").write_text(str(identity))
    made = signerd("backup", str(file), "--recipient", str(identity.to_public()), "--json", state=state)
    assert made.json["file"] == str(file)
    signerd("restore", str(file), "--yes", state=new, ends=Exit.USAGE)
    restore = ("restore", str(file), "--identity", str(tmp_path / "key"))
    signerd(*restore, state=new, typed="n\n", ends=Exit.DECLINED)
    assert not new.exists()
    done = signerd(*restore, "--yes", "--json", state=new)
    assert done.json["entries"] == made.json["entries"]
    assert "Anyone can encrypt to a public key" in done.err


def test_a_forged_value_draws_no_line_of_the_summary():
    found = BackupSummary(
        Manifest(signerd="1", made_at=NOON, network=Network.MAINNET, entries=9, head="ee" * 32),
        fingerprint="aa" * 32,
        pins=(("Treasury'  AAAA\n  seen      'Treasury", "XXXX"),),
        signatures=3,
        unclear=0,
        undelivered=0,
        notes=("The platform is x\n  chain     8 entries",),
    )
    text = backup_summary_text(found, by_passphrase=False)
    assert [line[:8] for line in text.splitlines()].count("  chain ") == 1
    assert "\n  seen" not in text


def test_a_passphrase_that_anybody_tries_first_is_refused_in_words(state, tmp_path):
    refused = signerd("backup", str(tmp_path / "b.age"), state=state, typed="nine char\n", ends=Exit.STATE)
    assert "fewer than 10 characters" in refused.err


def test_it_is_printed_or_written_beside_a_daemon_and_without_one(state, tmp_path):
    out = tmp_path / "kit.html"
    with open_one(state):
        printed = signerd("kit", VAULT_ID, state=state)
    assert parsed(printed.out).texts["descriptor"] == VAULT.descriptor
    written = signerd("kit", VAULT_ID, "--out", str(out), "--json", state=state)
    assert written.json["verification_code"] == VAULT.verification_code
    assert parsed(out.read_text()).texts["code"] == VAULT.verification_code
    said = signerd("kit", VAULT_ID, "--out", str(tmp_path / "other.html"), state=state)
    assert VAULT.verification_code in said.out
