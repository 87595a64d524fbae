"""signerd-hwi's commands against a real daemon behind its real socket, with a device that obeys."""

import base64
import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest

from firmware_bridge import DeviceState, Question
from firmware_bridge.errors import Disconnected, Locked
from multisig import (
    Fingerprint,
    ReceivedPsbt,
    multisig_account_path,
    profile_account_path,
    signer_progress,
    to_version_2,
)
from signerd.errors import HwiCode
from signerd.hwi import signing
from signerd.hwi.program import REFUSED
from tests.support.bills import bill
from tests.support.command import no, signerd_hwi
from tests.support.desk import NETWORK, PROFILE, VAULT
from tests.support.wallets import ALICE, BOB

F = str(ALICE.fingerprint)
NAMED = ("--emulators", "--fingerprint", F, "--chain", "regtest")
ACCOUNT = "m/84h/1h/0h"


@contextmanager
def person(desk, does):
    """A person at the page, who does this with the first PSBT that is imported."""

    def wait_and_do():
        desk.until(lambda: bool(desk.service.journal.imported.waiting()))
        with desk.client() as daemon:
            (line,) = [line for line in daemon.imported_psbts() if line.state == "waiting-for-person"]
            does(daemon, line.psbt_id)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(wait_and_do)
        yield
        done.result(20)


def waiting(desk):
    return desk.on_loop(desk.service.journal.imported.waiting)


def approves(daemon, psbt_id):
    shown = daemon.proposal(psbt_id)
    daemon.approve(psbt_id, shown.digest, [check.name for check in shown.checks if check.acknowledge])


# --- enumerate ----------------------------------------------------------------------------------------------


def test_enumerate_answers_from_memory_and_no_device_is_touched(hwi, outer):
    outer.bridge.failures.append(AssertionError("it was touched"))
    assert hwi("enumerate").value == [
        {
            "type": "trezor",
            "path": "udp:127.0.0.1:1",
            "label": None,
            "model": "trezor_simulator",
            "needs_pin_sent": False,
            "needs_passphrase_sent": False,
            "fingerprint": F,
        }
    ]
    assert outer.bridge.failures, "nobody took it"
    # Before a probe nobody knows which Trezor it is.
    outer.bridge.emulator, outer.bridge.model, outer.bridge.state = False, "Trezor", DeviceState.PROBING
    (row,) = hwi("enumerate").value
    assert row["model"] == "trezor"


def test_an_emulator_is_seen_where_it_is_asked_for_or_its_type_and_path_are(desk, outer):
    def ask(*given):
        return signerd_hwi(*given, "--chain", "regtest", "getxpub", ACCOUNT, state=desk.state)

    for found, is_emulator in ((False, True), (True, False)):
        outer.bridge.emulator = is_emulator
        assert len(signerd_hwi("enumerate", state=desk.state).value) == found
        for given in (("-f", F), ("-t", "trezor"), ("-f", F, "-t", "trezor")):
            assert ("xpub" in ask(*given).value) == found, given
        assert "xpub" in ask("-t", "trezor", "-d", "udp:127.0.0.1:1").value


def test_without_a_daemon_the_list_has_a_row_that_says_so(tmp_path):
    """Core shows the error of a row, and takes everything but an array for nonsense."""
    (row,) = signerd_hwi("enumerate", state=tmp_path / "nowhere").value
    assert row["code"] == HwiCode.DEVICE_CONN_ERROR
    assert "signerd run" in row["error"]
    # Every other command is a no.
    answered = signerd_hwi(*NAMED, "getxpub", ACCOUNT, state=tmp_path / "nowhere")
    no(answered, HwiCode.DEVICE_CONN_ERROR)


# --- which device -------------------------------------------------------------------------------------------


def test_a_command_names_its_device(hwi):
    no(hwi("--chain", "regtest", "getxpub", ACCOUNT), HwiCode.NO_DEVICE_TYPE)
    no(hwi("-f", "00000000", "--chain", "regtest", "getxpub", ACCOUNT), HwiCode.DEVICE_CONN_ERROR)
    no(hwi("-t", "ledger", "--chain", "regtest", "getxpub", ACCOUNT), HwiCode.DEVICE_CONN_ERROR)
    no(hwi("-t", "abacus", "-d", "x", "--chain", "regtest", "getxpub", ACCOUNT), HwiCode.UNKNOWN_DEVICE_TYPE)
    # HWI's own suite names an emulated One so, and gives an empty passphrase with each command.
    for kind in ("trezor", "trezor_1"):
        by_type = hwi("-p", "", "-t", kind, "-d", "udp:127.0.0.1:1", "--chain", "regtest", "getxpub", ACCOUNT)
        assert by_type.value == {"xpub": str(PROFILE.key.xpub)}


# --- keys ---------------------------------------------------------------------------------------------------


def test_getxpub_of_a_registered_account_needs_no_device_and_of_another_one_it_does(hwi, outer):
    other = multisig_account_path(NETWORK, 7)
    assert hwi(*NAMED, "getxpub", str(other)).value == {"xpub": str(ALICE.origin_key(other).xpub)}
    outer.bridge.state = DeviceState.ABSENT
    for path in (ACCOUNT, "m/84'/1'/0'", "84H/1H/0H"):
        assert hwi(*NAMED, "getxpub", path).value == {"xpub": str(PROFILE.key.xpub)}
    # Also where the program names the place at which it saw the device of that fingerprint.
    by_place = ("-t", "trezor", "-d", "udp:127.0.0.1:1")
    assert hwi(*by_place, *NAMED, "getxpub", ACCOUNT).value["xpub"]
    # Of the place alone nothing proves which device was there.
    no(hwi(*by_place, "--chain", "regtest", "getxpub", ACCOUNT), HwiCode.DEVICE_CONN_ERROR)
    below = profile_account_path(NETWORK) / "0/5"
    assert hwi(*NAMED, "getxpub", str(below)).value == {"xpub": str(ALICE.origin_key(below).xpub)}


def test_getxpub_of_anything_else_is_refused_with_what_there_is(hwi):
    for path in ("m", "m/0h", "m/44h/1h/0h", "m/86h/1h/0h", "m/84h/0h/0h", "m/84h/1h", "m/84h/1h/0h/0h",
                 "m/48h/1h/0h/1h"):  # fmt: skip
        words = no(hwi(*NAMED, "getxpub", path), HwiCode.UNAVAILABLE_ACTION)
        assert "m/48h/1h/0h/2h and m/84h/1h/0h" in words, path
    for path in ("m/84h/1h/101h", "m/x", "m/84h/1h/0h/"):
        no(hwi(*NAMED, "getxpub", path), HwiCode.BAD_ARGUMENT)


def test_getdescriptors_gives_the_registered_account_and_leaves_the_other_types_out(hwi, outer):
    outer.bridge.state = DeviceState.ABSENT
    told = hwi(*NAMED, "getdescriptors", "--account", "0").value
    for name, chain in (("receive", 0), ("internal", 1)):
        (text,) = told[name]
        assert text.startswith(f"wpkh([{F}/84h/1h/0h]{PROFILE.key.xpub}/{chain}/*)#")
    # Of another account Core would receive there, and signerd would not sign for it.
    no(hwi(*NAMED, "getdescriptors", "--account", "1"), HwiCode.UNAVAILABLE_ACTION)


def test_getkeypool_is_of_the_registered_account_or_a_named_vault_and_of_no_other_type(hwi, outer):
    """Its form is HWI's own: `test_parity`."""
    outer.bridge.state = DeviceState.ABSENT
    told = hwi(*NAMED, "getdescriptors").value
    both = [(told["receive"][0], False), (told["internal"][0], True)]
    of_path = ("--path", "m/84h/1h/0h/0/*", "--internal")
    for given, wanted in (
        ((), both),
        (("--all",), both),
        (("--internal",), both[1:]),
        (of_path, [(told["receive"][0], True)]),
        (of_path[:2], both[:1]),
    ):
        rows = hwi(*NAMED, "getkeypool", *given, "0", "20").value
        assert [(row["desc"], row["internal"]) for row in rows] == wanted, given
    rows = hwi(*NAMED, "--vault", "Treasury", "getkeypool", "0", "20").value
    assert [row["desc"] for row in rows] == [VAULT.chain_descriptor(0), VAULT.chain_descriptor(1)]
    for given, code in (
        (("--path", "84h/1h/0h/0/*"), HwiCode.BAD_ARGUMENT),
        (("--path", "m/84h/1h/0h/0/"), HwiCode.BAD_ARGUMENT),
        (("--path", "m/x/*", "--addr-type", "legacy"), HwiCode.BAD_ARGUMENT),
        (("--path", "m/84h/1h/0h/2/*"), HwiCode.UNAVAILABLE_ACTION),
        (("--path", "m/84h/1h/1h/0/*"), HwiCode.UNAVAILABLE_ACTION),
        (("--path", "m/48h/1h/0h/2h/0/*"), HwiCode.UNAVAILABLE_ACTION),
        (("--account", "1"), HwiCode.UNAVAILABLE_ACTION),
        (("--addr-type", "tap"), HwiCode.UNAVAILABLE_ACTION),
    ):
        no(hwi(*NAMED, "getkeypool", *given, "0", "20"), code)
    no(
        hwi(*NAMED, "--vault", "Treasury", "getkeypool", "--path", "m/84h/1h/0h/0/*", "0", "20"),
        HwiCode.BAD_ARGUMENT,
    )


def test_getdescriptors_of_a_named_vault_are_its_own_and_of_a_pinned_one_alone(hwi):
    """So that Core's wallet holds the vault and nothing else (docs/sign/core.md)."""
    wanted = {"receive": [VAULT.chain_descriptor(0)], "internal": [VAULT.chain_descriptor(1)]}
    for named in ("Treasury", "vault-1", VAULT.verification_code):
        assert hwi(*NAMED, "--vault", named, "getdescriptors").value == wanted
    words = no(hwi(*NAMED, "--vault", "Treasure", "getdescriptors"), HwiCode.BAD_ARGUMENT)
    assert "no vault that is pinned here has the name 'Treasure'" in words


# --- addresses ----------------------------------------------------------------------------------------------


def single(chain=0, index=5, key=PROFILE.key):
    """As Core infers it: one public key with its whole path."""
    public = key.xpub.derive_public_key(chain, index).hex()
    return f"wpkh([{F}/84h/1h/0h/{chain}/{index}]{public})"


def quorum(chain=0, index=7, *, form="sortedmulti", keys=VAULT.cosigners, threshold=2):
    listed = ",".join(f"{key}/{chain}/{index}" for key in keys)
    return f"wsh({form}({threshold},{listed}))"


def test_displayaddress_takes_a_path_or_what_core_infers(hwi, outer):
    expected = {"address": PROFILE.address(0, 5)}
    assert hwi(*NAMED, "displayaddress", "--path", f"{ACCOUNT}/0/5").value == expected
    assert hwi(*NAMED, "displayaddress", "--desc", single()).value == expected
    extended = f"wpkh({PROFILE.key}/0/5)"
    assert hwi(*NAMED, "displayaddress", "--desc", extended).value == expected
    assert outer.bridge.shown == [PROFILE.address(0, 5)] * 3


def test_displayaddress_of_a_pinned_vault_in_any_order(hwi, outer):
    expected = {"address": VAULT.address(0, 7)}
    for keys in (VAULT.cosigners, VAULT.cosigners[::-1]):
        assert hwi(*NAMED, "displayaddress", "--desc", quorum(keys=keys)).value == expected
    in_order = sorted(VAULT.cosigners, key=lambda key: key.xpub.derive_public_key(0, 7))
    assert hwi(*NAMED, "displayaddress", "--desc", quorum(form="multi", keys=in_order)).value == expected
    assert outer.bridge.shown == [VAULT.address(0, 7)] * 3


NO_ADDRESS_OF_OURS = [
    (quorum(threshold=1), HwiCode.UNAVAILABLE_ACTION),
    (quorum(keys=(*VAULT.cosigners[:2], BOB.vault_key(account=9))), HwiCode.UNAVAILABLE_ACTION),
    (quorum(index=2**31), HwiCode.BAD_ARGUMENT),
    (single().replace(F, "00000000"), HwiCode.BAD_ARGUMENT),
    (single(key=BOB.profile().key), HwiCode.BAD_ARGUMENT),
    (single().replace("84h", "49h"), HwiCode.UNAVAILABLE_ACTION),
    (single() + "#aaaaaaaa", HwiCode.BAD_ARGUMENT),
    (f"sh({single()})", HwiCode.UNAVAILABLE_ACTION),
    (f"wpkh({PROFILE.key}/0/*)", HwiCode.BAD_ARGUMENT),
    (f"wpkh({PROFILE.key})", HwiCode.UNAVAILABLE_ACTION),
    ("(" * 5000, HwiCode.BAD_ARGUMENT),
]


def test_l5_displayaddress_of_anything_else_reaches_no_device(hwi, outer):
    for descriptor, code in NO_ADDRESS_OF_OURS:
        no(hwi(*NAMED, "displayaddress", "--desc", descriptor), code)
    assert outer.bridge.shown == []


# --- signing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 2])
def test_signtx_waits_for_the_person_and_gives_the_signed_psbt_in_the_version_that_came(desk, hwi, version):
    """Bitcoin Core writes version 2 from release 32 on."""
    psbt = bill(policy=PROFILE)
    text = base64.b64encode(to_version_2(psbt) if version else psbt.to_bytes()).decode()
    with person(desk, approves):
        answered = hwi(*NAMED, "--stdin", typed=f"signtx {text}\n")
    assert answered.value["signed"] is True
    signed = ReceivedPsbt.parse(answered.value["psbt"])
    assert (signed.version, signed.psbt.tx) == (version, psbt.tx)
    assert not signer_progress(signed.psbt, PROFILE, ALICE.fingerprint).missing
    assert "signerd open" in answered.err
    assert "0.00050000 BTC" in answered.err

    again = hwi(*NAMED, "signtx", text)
    assert again.value == answered.value, "the same transaction again is the same signature"
    assert again.err == "", "nobody is asked twice"


def test_signtx_adds_nothing_to_inputs_that_name_other_devices_only(desk, hwi):
    """HWI's own suite signs in two steps so, and combines them."""
    psbt, elsewhere = bill(policy=PROFILE), Fingerprint(b"\0\0\0\1")
    with person(desk, approves):
        assert hwi(*NAMED, "signtx", psbt.to_base64()).value["signed"] is True
    inputs = [
        replace(
            item,
            derivations={key: replace(at, fingerprint=elsewhere) for key, at in item.derivations.items()},
        )
        for item in psbt.inputs
    ]
    blanked = replace(psbt, inputs=tuple(inputs))
    for version, given in enumerate((blanked.to_bytes(), to_version_2(blanked))):
        text = base64.b64encode(given).decode()
        assert hwi(*NAMED, "signtx", text).value == {"psbt": text, "signed": False}, version


def test_signtx_that_the_person_declines_is_code_14(desk, hwi):
    with person(desk, lambda daemon, psbt_id: daemon.decline(psbt_id, "no")):
        answered = hwi(*NAMED, "signtx", bill().to_base64())
    no(answered, HwiCode.ACTION_CANCELED)


@pytest.fixture
def interrupted(desk, hwi, outer):
    """What an earlier call left: its time was over while the device was asked, which then gave nothing."""
    psbt = bill().to_base64()
    with desk.client() as daemon:
        imported = daemon.import_psbt(psbt)
        outer.bridge.failures.append(Disconnected())
        approves(daemon, imported.psbt_id)
        desk.until(lambda: desk.service.journal.record(imported.psbt_id).state == "interrupted")
    return psbt


@pytest.fixture
def approved_at_sight(desk, monkeypatch):
    """The person says yes once the program has looked, and listens."""
    outcome, looked = signing._outcome, []

    def deciding(now, *, attempted):
        if not looked:
            looked.append(now.state)
            with desk.client() as daemon:
                approves(daemon, now.psbt_id)
        return outcome(now, attempted=attempted)

    monkeypatch.setattr(signing, "_outcome", deciding)
    yield
    assert looked == ["interrupted"]


def test_f_signtx_of_what_was_interrupted_before_waits_and_is_signed(hwi, interrupted, approved_at_sight):
    answered = hwi(*NAMED, "signtx", interrupted)
    assert answered.value["signed"] is True
    assert "signerd approve" in answered.err


def test_f_signtx_of_what_was_interrupted_before_and_is_not_approved_ends_in_time(desk, hwi, interrupted):
    words = no(hwi("--wait", "0", *NAMED, "signtx", interrupted), HwiCode.ACTION_CANCELED)
    assert "in time" in words
    assert len(waiting(desk)) == 1, "this call did not import it"


def test_signtx_that_is_told_to_end_takes_back_what_it_imported(desk):
    """The real program: a person who stops it is not asked for any more."""
    command = [
        sys.executable,
        "-m",
        "signerd.hwi",
        "--emulators",
        "--state",
        str(desk.state),
        *NAMED,
        "signtx",
    ]
    with subprocess.Popen(
        [*command, bill().to_base64()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert "signerd approve" in program.stderr.readline()
        program.send_signal(signal.SIGTERM)
        out, _err = program.communicate(timeout=90)
    assert program.returncode == 130
    assert json.loads(out)["code"] == HwiCode.ACTION_CANCELED
    assert waiting(desk) == ()


def test_signtx_of_nonsense_or_of_what_the_checks_refuse_asks_no_person(desk, hwi):
    for psbt in ("", "not base64!", "cHNidP8BAAAA"):
        answered = hwi(*NAMED, "signtx", psbt)
        assert answered.value["code"] in {HwiCode.BAD_ARGUMENT, HwiCode.INVALID_TX}
    foreign = bill(policy=BOB.profile())
    no(hwi(*NAMED, "signtx", foreign.to_base64()), HwiCode.INVALID_TX)
    assert waiting(desk) == ()


# --- PIN ----------------------------------------------------------------------------------------------------


def test_promptpin_and_sendpin_unlock_a_device_whose_pin_is_typed_here(hwi, outer):
    outer.bridge.state = DeviceState.LOCKED
    outer.bridge.secrets = {Question.PIN: "137"}
    hwi(*NAMED, "promptpin")
    assert hwi(*NAMED, "sendpin", "999").value == {"success": False}
    no(hwi(*NAMED, "sendpin", "137"), HwiCode.DEVICE_NOT_READY)
    assert hwi(*NAMED, "promptpin").value == {"success": True}
    assert hwi(*NAMED, "sendpin", "137").value == {"success": True}
    for command in (("promptpin",), ("sendpin", "137")):
        no(hwi(*NAMED, *command), HwiCode.DEVICE_ALREADY_UNLOCKED)
    # Locked by another program, which the daemon has not noticed.
    outer.bridge.failures.append(Locked())
    assert hwi(*NAMED, "promptpin").value == {"success": True}
    assert hwi(*NAMED, "sendpin", "137").value == {"success": True}


def test_l10_a_passphrase_is_left_to_the_page(hwi, outer):
    outer.bridge.state = DeviceState.LOCKED
    outer.bridge.secrets = {Question.PIN: "137", Question.PASSPHRASE: "ours"}
    hwi(*NAMED, "promptpin")
    assert "passphrase" in no(hwi(*NAMED, "sendpin", "137"), HwiCode.NO_PASSWORD)
    no(hwi(*NAMED, "sendpin", "137"), HwiCode.DEVICE_NOT_READY)


# --- what is not done ---------------------------------------------------------------------------------------


def test_l5_what_could_cost_money_is_refused_by_name(hwi):
    for command in sorted(REFUSED):
        words = no(hwi(*NAMED, "-i", command, "x", "m/0"), HwiCode.UNAVAILABLE_ACTION)
        assert " not support " in words
    no(hwi(*NAMED, "signmessage", "x", "f"), HwiCode.BAD_ARGUMENT)
    no(hwi(*NAMED, "displayaddress", "--addr-type", "legacy", "--path", "f"), HwiCode.BAD_ARGUMENT)


def test_l10_a_passphrase_on_a_command_line_is_refused_and_not_repeated(hwi):
    for given in (("--password", "hunter2"), ("-p", "hunter2"), ("--stdinpass",)):
        answered = hwi(*given, *NAMED, "getxpub", ACCOUNT)
        no(answered, HwiCode.BAD_ARGUMENT)
        listed = hwi(*given, "enumerate")
        assert [row["code"] for row in listed.value] == [HwiCode.BAD_ARGUMENT]
        assert "hunter2" not in answered.out + answered.err + listed.out + listed.err


def test_wrong_arguments_end_with_2_and_say_so_as_json(hwi):
    for given in ((), ("getxpub",), ("flyaway",), ("enumerate", "more"), ("--chain", "moon", "enumerate")):
        answered = hwi(*given)
        assert (answered.status, answered.value["code"]) == (2, HwiCode.MISSING_ARGUMENTS), given
    open_quote = hwi(*NAMED, "--stdin", typed='getxpub "m/0\n')
    assert (open_quote.status, open_quote.value["code"]) == (2, HwiCode.MISSING_ARGUMENTS)
    # Standard input ends at an empty line, and has quotes.
    typed = f'getxpub "{ACCOUNT}"\n\ngetxpub m/0\n'
    assert hwi(*NAMED, "--stdin", typed=typed).value == {"xpub": str(PROFILE.key.xpub)}
    helped = hwi("--help")
    assert (helped.status, helped.value["code"]) == (0, HwiCode.HELP_TEXT)
    assert "signtx" in helped.err
    assert hwi("--version").value.startswith("signerd-hwi ")
