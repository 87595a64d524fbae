"""The tables between the daemon's words and HWI's, each against the other side."""

from argparse import Namespace
from importlib import import_module
from types import SimpleNamespace

import hwilib.errors as theirs
import pytest

from firmware_bridge import BridgeError, DeviceState, Family
from firmware_bridge.errors import RefusedByPerson, WrongApp
from firmware_bridge.makers import MAKERS
from firmware_bridge.presence.usb import USB_MODELS
from signerd import errors as e
from signerd.core.states import State
from signerd.errors import HwiCode
from signerd.hwi import codes, listing, signing
from signerd.hwi.codes import HwiError, code_of
from signerd.hwi.signing import ENDS


def test_the_codes_are_hwi_s_own():
    named = {value: name for name, value in vars(theirs).items() if name.isupper() and isinstance(value, int)}
    # The one that came after 3.2.0.
    for code in set(HwiCode) - {HwiCode.INVALID_POLICY}:
        # HWI's own spelling of this one is another.
        assert named[code] in {code.name, "UNKNWON_DEVICE_TYPE"}


@pytest.mark.parametrize(
    "kind",
    [kind for kind in BridgeError.__subclasses__() if kind is not WrongApp],
    ids=lambda kind: kind.code,
)
def test_a_device_s_failure_is_known_by_its_words(kind):
    told = kind.sentence
    assert code_of(e.DeviceFailed(told)) == kind.hwi_code
    assert code_of(e.DeviceFailed(f"{told} (its own words) {kind.hint}")) == kind.hwi_code


def test_words_of_a_device_cannot_pass_for_the_person_s_no():
    told = f"It said: {RefusedByPerson.sentence}"
    assert code_of(e.DeviceFailed(told)) is HwiCode.UNKNOWN_ERROR


def test_every_state_of_a_device_has_its_row_or_is_passed_over():
    assert set(listing._STATES) | listing._PASSED_OVER == {state.value for state in DeviceState}
    assert set(MAKERS) == set(codes.FAMILIES)
    keep_none = {family for family, (_, refused) in codes.FAMILIES.items() if "registerdescriptor" in refused}
    assert {family for family, maker in MAKERS.items() if not maker.enrols} == keep_none


DRIVER = {
    "wipe": "wipe_device",
    "setup": "setup_device",
    "restore": "restore_device",
    "backup": "backup_device",
    "togglepassphrase": "toggle_passphrase",
    "promptpin": "prompt_pin",
    "sendpin": "send_pin",
}


def ours(family, command):
    device = SimpleNamespace(family=family)
    asked = (signing._asked_here, listing.Chosen(None, None, device))
    if "pin" not in command:
        asked = (codes.refuse, Namespace(command=command), device)
    with pytest.raises(HwiError) as refused:
        asked[0](*asked[1:])
    assert refused.value.code is HwiCode.UNAVAILABLE_ACTION
    return str(refused.value)


@pytest.mark.parametrize("family", sorted(codes.FAMILIES))
def test_what_hwi_s_own_driver_refuses_is_refused_in_its_words(family):
    driver = getattr(import_module(f"hwilib.devices.{family}"), f"{family.capitalize()}Client")
    unopened, refused = driver.__new__(driver), {}
    unopened.type = "Trezor"
    for command, method in DRIVER.items():
        try:
            getattr(unopened, method)(*["1"] * (command == "sendpin"))
        except theirs.UnavailableActionError as error:
            refused[command] = str(error)
        except AttributeError:
            # It goes to the device, which is not there.
            continue
    pins = {"promptpin", "sendpin"} if family not in listing.PIN_AT_THE_HOST else set()
    here = codes.FAMILIES[family][1] & set(DRIVER) | pins
    assert refused == {command: ours(family, command) for command in here}


def test_every_end_without_a_signature_is_known():
    signed = {State.SIGNED, State.HANDED_OVER, State.SUBMITTING, State.KEPT, State.SUBMITTED}
    open_still = {
        State.RECEIVED, State.WAITING_PERSON, State.WAITING_DEVICE,
        State.EXPORTED, State.SIGNING,
    }  # fmt: skip
    assert {State(name) for name in ENDS} == set(State) - signed - open_still


def test_every_ledger_that_hwi_drives_has_hwi_s_name():
    from hwilib.devices.ledger import LEDGER_MODEL_IDS

    ours = {
        listing.model_of(SimpleNamespace(model=model.model, family="ledger", emulator=False))
        for model in USB_MODELS
        if model.family is Family.LEDGER and model.transport is not None
    }
    # Known to HWI after 3.2.0.
    assert ours == set(LEDGER_MODEL_IDS.values()) - {"ledger_nano_gen5"}
