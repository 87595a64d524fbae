"""The tables between the daemon's words and HWI's, each against the other side."""

import hwilib.errors as theirs
import pytest

from firmware_bridge import BridgeError, DeviceState, Endpoint, Family
from firmware_bridge.errors import RefusedByPerson, WrongApp
from firmware_bridge.model import Device as BridgeDevice
from firmware_bridge.presence.usb import USB_MODELS
from signerd import errors as e
from signerd import shapes
from signerd.core.states import State
from signerd.hwi import codes, connection, listing, signing
from signerd.hwi.codes import Code, code_of
from signerd.hwi.keys import MAX_ACCOUNT
from signerd.hwi.signing import ENDS
from signerd.loopback.endpoints import ROUTES
from signerd.problems import leaves
from signerd.shapes import vaults


def test_every_leaf_of_our_errors_has_a_code_of_hwi():
    assert set(codes.CODES) == set(leaves())


def test_the_codes_are_hwi_s_own():
    named = {value: name for name, value in vars(theirs).items() if name.isupper() and isinstance(value, int)}
    assert {code.value for code in Code} == set(named)
    for code in Code:
        # HWI's own spelling of this one is another.
        assert named[code.value] in {code.name, "UNKNWON_DEVICE_TYPE"}


def test_every_outcome_of_a_device_has_a_code():
    assert set(codes.OUTCOMES) == {kind.code for kind in BridgeError.__subclasses__()}


@pytest.mark.parametrize(
    "kind",
    [kind for kind in BridgeError.__subclasses__() if kind is not WrongApp],
    ids=lambda kind: kind.code,
)
def test_a_device_s_failure_is_known_by_its_words(kind):
    told = kind.sentence
    assert code_of(e.DeviceFailed(told)) == codes.OUTCOMES[kind.code]
    assert code_of(e.DeviceFailed(f"{told} (its own words) {kind.hint}")) == codes.OUTCOMES[kind.code]


def test_words_of_a_device_cannot_pass_for_the_person_s_no():
    told = f"It said: {RefusedByPerson.sentence}"
    assert code_of(e.DeviceFailed(told)) is Code.UNKNOWN_ERROR


def test_every_state_of_a_device_has_its_row_or_is_passed_over():
    assert set(listing._STATES) | listing._PASSED_OVER == {state.value for state in DeviceState}
    assert {family.value for family in Family} == listing.FAMILIES


def test_every_end_without_a_signature_is_known():
    signed = {State.SIGNED, State.HANDED_OVER, State.SUBMITTING, State.SUBMITTED}
    open_still = {
        State.RECEIVED, State.INSPECTED, State.WAITING_PERSON, State.WAITING_DEVICE,
        State.SIGNING, State.VERIFYING,
    }  # fmt: skip
    assert {State(name) for name in ENDS} == set(State) - signed - open_still


@pytest.mark.parametrize(
    ("shape", "ours"),
    [
        (shapes.DeviceView, connection.Device),
        (shapes.KeyView, connection.Key),
        (shapes.AccountKeys, connection.Accounts),
        (shapes.BroughtView, connection.Imported),
    ],
)
def test_what_is_read_is_what_the_daemon_s_shapes_have(shape, ours):
    assert set(ours.__dataclass_fields__) <= set(shape.model_fields)


def test_what_is_read_by_hand_stands_in_the_shapes_too():
    assert {"pinned", "vault_id", "threshold", "cosigners"} <= set(shapes.VaultView.model_fields)
    assert {"fingerprint", "path", "xpub"} <= set(shapes.CosignerView.model_fields)
    assert {"state", "question"} <= set(shapes.UnlockStep.model_fields)
    assert {"id", "kind", "device_id"} <= set(shapes.QuestionView.model_fields)
    assert vaults.MAX_ACCOUNT == MAX_ACCOUNT


def test_every_path_that_is_asked_is_a_row_of_the_api():
    rows = {(route.method, route.path) for route in ROUTES}
    assert rows >= {
        ("GET", "/accounts"),
        ("GET", "/devices"),
        ("POST", "/devices/{device_id}/accounts"),
        ("POST", "/devices/{device_id}/unlock"),
        ("GET", "/devices/{device_id}/unlock"),
        ("GET", "/questions"),
        ("POST", "/questions/{question_id}"),
        ("GET", "/vaults"),
        ("POST", "/vaults/{vault_id}/addresses/show"),
        ("POST", "/profile/addresses/show"),
        ("GET", "/psbts"),
        ("POST", "/psbts"),
        ("GET", "/psbts/{psbt_id}"),
        ("DELETE", "/psbts/{psbt_id}"),
        ("GET", "/events"),
    }


@pytest.mark.parametrize(
    ("endpoint", "path"),
    [
        ("trezor:udp:127.0.0.1:21324", "udp:127.0.0.1:21324"),
        ("trezor:webusb:001:2", "webusb:001:2"),
        ("trezor:hid:/dev/hidraw0", "hid:/dev/hidraw0"),
        ("coldcard:unix:/tmp/ckcc-simulator.sock", "/tmp/ckcc-simulator.sock"),
        ("coldcard:hid:/dev/hidraw1", "/dev/hidraw1"),
        ("ledger:tcp:127.0.0.1:9999", "tcp:127.0.0.1:9999"),
        ("ledger:hid:/dev/hidraw2", "/dev/hidraw2"),
        ("jade:serial:/dev/ttyUSB0", "/dev/ttyUSB0"),
        ("jade:tcp:127.0.0.1:30121", "tcp:127.0.0.1:30121"),
        ("bitbox02:tcp:127.0.0.1:15423", "127.0.0.1:15423"),
    ],
)
def test_a_path_is_written_as_hwi_writes_it(endpoint, path):
    found = Endpoint.parse(endpoint)
    assert listing.path_of(_seen(BridgeDevice.at(found, "x"))) == path


def test_every_ledger_that_hwi_drives_has_hwi_s_name():
    from hwilib.devices.ledger import LEDGER_MODEL_IDS

    ours = {
        listing.MODELS[model.model]
        for model in USB_MODELS
        if model.family is Family.LEDGER and model.transport is not None
    }
    assert ours == set(LEDGER_MODEL_IDS.values())


def _seen(device):
    return connection.Device(
        id=device.id,
        family=device.family.value,
        model=device.model,
        label=None,
        endpoint=str(device.endpoint),
        state="ready",
        fingerprint=None,
        emulator=device.emulator,
        detail=None,
        advice=None,
    )


def test_who_waits_tells_the_person_on_standard_error_only(capsys):
    signing._tell(connection.Imported("b-1", "waiting-for-person", "", "Treas\x1bury", 5, None))
    seen = capsys.readouterr()
    assert seen.out == ""
    assert "\x1b" not in seen.err
    assert "signerd approve b-1" in seen.err
