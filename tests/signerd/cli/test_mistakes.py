"""Forty mistakes at the terminal, and what is said of each: what is wrong and what to do, in words for a
person. No pattern, no library's sentence, no name of a field in a request, no document for programmers.
"""

import base64
import re
from dataclasses import dataclass

import pytest

from custody.common.terminal import Exit
from tests.support.command import Ended, is_tame, signerd
from tests.support.desk import snapshot_of, spend
from tests.support.payments import spend_of
from tests.support.served import make_outer, served_daemon

# Of libraries, of the wire, and for programmers.
FOREIGN = re.compile(
    r"Traceback|pydantic|validation error|(String|Input|Value) (should|error)|\^|\\d|\[a-z|"
    r"body\.|openapi|/v1/|Errno|NoneType|<class|object at 0x",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Place:
    """Where the mistakes are made: a daemon with two proposals, and files beside it."""

    served: object
    folder: object

    def run(self, line: str, status: Exit) -> Ended:
        words = [word.format(folder=self.folder) for word in line.split()]
        return signerd(*words, state=self.served.state, ends=status)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    outer = make_outer(folder)
    outer.platform.proposals = {
        "8bdd1234": snapshot_of(spend(), "8bdd1234"),
        "8bdd5678": snapshot_of(spend_of((1,), ()), "8bdd5678"),
    }
    whole = spend().to_bytes()
    for name, content in {
        "junk": b"\x00\xff\x00junk",
        "cut": whole[:-20],
        "there": b"",
        "small": base64.b64encode(whole),
        "rules-key": b"[refuse]\nabove_per_hour = '1 BTC'\n",
        "rules-vault": b"[vaults.nowhere.ask]\nalways = true\n",
    }.items():
        (folder / name).write_bytes(content)
    with served_daemon(folder / "s", outer) as daemon:
        daemon.until(lambda: len(tuple(daemon.service.journal.records())) == 2)
        (folder / "s/config.toml").write_text('network = "regtest"\n[platform]\nurl = "https://x.example"\n')
        yield Place(daemon, folder)


LONG = "x" * 1_001
USAGE, DEVICE, UNDECIDED, STATE = Exit.USAGE, Exit.DEVICE, Exit.NOT_DECIDED, Exit.STATE
NOT_FOUND = Exit.NOT_FOUND
NO_ORIGIN = "an origin is https://host or http://host"
NO_VAULT = "the platform has shown no vault 'nowhere'. List the vaults with `signerd vaults`."
OTHER_CODE = "the code has 4 letters and figures, and the vault's has 32. Compare the code with the other"
NOT_THERE = "cannot be read: No such file or directory."


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("nonsense", USAGE, "No such command 'nonsense'"),
        ("--nope", USAGE, "No such option '--nope'"),
        ("show", USAGE, "Missing argument 'ID'"),
        ("show 8b", NOT_FOUND, "there is no proposal '8b' here. Give 4 characters of its id or more"),
        (
            "show 8bdd",
            USAGE,
            "'8bdd' could be any of 2 proposals. Name one by its id: 8bdd1234 Pay 0.0005 BTC",
        ),
        ("approve 8bdd12 --yes", USAGE, "with --yes a proposal is named by its whole id"),
        ("approve 8bdd1234", USAGE, "no answer to the question: Sign this on REGTEST"),
        (
            f"decline 8bdd1234 --yes --reason {LONG}",
            USAGE,
            "the reason is too long: at most 1000 characters.",
        ),
        ("export 8bdd1234 --out {folder}/none/x", USAGE, "none is not a folder. Nothing was asked."),
        ("import {folder}/none", USAGE, "The card, folder or file is not there. Insert the card"),
        ("import {folder}/junk", USAGE, "This is not a PSBT. Save or show it again on the device"),
        ("import {folder}/small", UNDECIDED, "was not exported here, so its answer cannot be imported"),
        ("inspect {folder}/none", USAGE, f"{NOT_THERE} Give another file."),
        ("inspect {folder}/junk", USAGE, "This is not a PSBT. Export it from your wallet"),
        ("inspect {folder}/cut", UNDECIDED, "The PSBT cannot be read: A value in the PSBT is malformed"),
        ("sign {folder}/small --out {folder}/there", USAGE, "there is there already. Nothing was asked"),
        ("sign -", USAGE, "a PSBT from standard input leaves no input for your answer. Give a file"),
        ("pin nowhere", NOT_FOUND, NO_VAULT),
        ("pin vault-1 --code AAAA", UNDECIDED, OTHER_CODE),
        ("pin vault-1 --from a --psbt b", USAGE, "--from and --psbt cannot be given together. Pin from one"),
        ("pin vault-1 --from {folder}/junk", USAGE, "not text in UTF-8. A PSBT is given with --psbt."),
        ("unpin vault-1 --code AAAA", UNDECIDED, OTHER_CODE),
        ("addresses nowhere", NOT_FOUND, NO_VAULT),
        ("movements vault-1 --from 2026-13-01", USAGE, "is not in the calendar, written like 2026-05-01"),
        ("addresses vault-1 --start -1", USAGE, "-1 is not in the range"),
        ("accounts --device toaster", DEVICE, "there is no device 'toaster'. Connect the device"),
        ("devices another-address", DEVICE, "this device shows no address that is to be compared. Have it"),
        ("register --file {folder}/junk", USAGE, "junk is not text in UTF-8. Give the file as the device"),
        ("pair --origin ftp://x", USAGE, NO_ORIGIN),
        ("pair 8bdd1234", UNDECIDED, "no request '8bdd1234' is open. A request lasts two minutes."),
        ("apps revoke nobody", NOT_FOUND, "no app 'nobody' is paired. List the paired apps"),
        ("login --network moonnet", USAGE, "'moonnet' is not one of 'mainnet', 'testnet4'"),
        (
            "login --device toaster:udp:1",
            STATE,
            "has for --device: none but those on USB, and not toaster:udp:1.",
        ),
        (
            "rules show --file {folder}/rules-key",
            STATE,
            "line 2: refuse.above_per_hour: there is no such key here",
        ),
        ("rules show --file {folder}/rules-vault", STATE, "vaults.nowhere: no vault was ever pinned here"),
        ("rules show --file {folder}/none", STATE, f"{NOT_THERE} Name a file that is there."),
        ("kit nowhere", UNDECIDED, "no vault 'nowhere' is pinned here. List the vaults"),
        ("kit vault-1 --out {folder}/there", STATE, "there cannot be written: there is there already."),
        ("backup {folder}/none/x", STATE, "none is not a folder. Nothing was asked."),
        ("backup {folder}/there", STATE, "there is there already. Nothing was asked"),
        ("restore {folder}/junk", STATE, "junk is not an encrypted backup. Take another copy of the file"),
        ("run", STATE, "another signerd works on"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(place, line, status, said):
    ended = place.run(line, status)
    told = " ".join(ended.err.split()) or " ".join(ended.out.split())
    assert said in told
    assert is_tame(ended.err)
    assert FOREIGN.search(ended.out + ended.err) is None
    # One line says what is wrong; those below it what to do.
    assert not ended.err or len(ended.err.splitlines()) > 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--platform nothing", "--platform: this is not the URL of a platform: write it like https://"),
        ("--platform https://[", "--platform: this is not the URL of a platform"),
        ("--platform https://a_SP_b", "--platform: this is not the URL of a platform"),
        ("--platform http://x.example", "--platform: http://x.example would send secrets in the clear"),
        ("--platform https://x.example --device toaster:udp:1", "--device: "),
        (f"--platform https://x.example --label {LONG}", "--label: is too long: at most 100 characters"),
        (
            "--label Desk",
            "there is no configuration yet, and no --platform was given. Name the platform once",
        ),
    ],
)
def test_a_first_sign_in_is_refused_by_the_option_that_is_wrong(tmp_path, options, said):
    words = [word.replace("_SP_", " ") for word in options.split()]
    ended = signerd("login", "--network", "regtest", *words, state=tmp_path / "s", typed="a\nb\n", ends=STATE)
    assert said in " ".join(ended.err.split())
    assert FOREIGN.search(ended.err) is None
    assert "config.toml" not in ended.err
