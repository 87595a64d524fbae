"""Faults from plain values."""

import pytest

from device_simulators.errors import InvalidFaults
from device_simulators.faults import Faults, Phase


def test_a_device_in_good_order():
    assert Faults.parse({}) == Faults()
    assert Faults.parse({"stall_at": None}) == Faults()


def test_every_fault_has_a_plain_form():
    parsed = Faults.parse(
        {
            "stall_at": "sign",
            "vanish_at": "return",
            "garbage_at": "probe",
            "wrong_signatures": [0, 2],
            "missing_signatures": [1],
        }
    )
    assert parsed == Faults(Phase.SIGN, Phase.RETURN, Phase.PROBE, frozenset({0, 2}), frozenset({1}))


@pytest.mark.parametrize(
    "values",
    [
        {"explode": True},
        {"stall_at": "lunch"},
        {"stall_at": 3},
        {"wrong_signatures": 0},
        {"wrong_signatures": [-1]},
        {"wrong_signatures": [True]},
        {"missing_signatures": ["0"]},
    ],
)
def test_faults_that_do_not_exist(values):
    with pytest.raises(InvalidFaults):
        Faults.parse(values)
