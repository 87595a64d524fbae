"""The tables between the daemon's words and HWI's, each against the other side."""

import hwilib.errors as theirs
import pytest

from firmware_bridge import BridgeError, DeviceState, Family
from firmware_bridge.errors import RefusedByPerson, WrongApp
from firmware_bridge.makers import MAKERS
from firmware_bridge.presence.usb import USB_MODELS
from signerd import errors as e
from signerd.core.states import State
from signerd.errors import HwiCode
from signerd.hwi import listing, registrations
from signerd.hwi.codes import code_of
from signerd.hwi.signing import ENDS


def test_the_codes_are_hwi_s_own():
    named = {value: name for name, value in vars(theirs).items() if name.isupper() and isinstance(value, int)}
    # The one that came after 3.2.0.
    assert set(named) <= {code.value for code in HwiCode} <= set(named) | {HwiCode.INVALID_POLICY}
    for code, name in named.items():
        # HWI's own spelling of this one is another.
        assert name in {HwiCode(code).name, "UNKNWON_DEVICE_TYPE"}


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
    assert set(MAKERS) == listing.FAMILIES
    assert {family for family, maker in MAKERS.items() if not maker.enrols} == registrations._KEEP_NONE


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
        listing.MODELS[model.model]
        for model in USB_MODELS
        if model.family is Family.LEDGER and model.transport is not None
    }
    # Known to HWI after 3.2.0.
    assert ours == set(LEDGER_MODEL_IDS.values()) - {"ledger_nano_gen5"}
