"""The rules files open what the bridge can see, and nothing else."""

import re
from pathlib import Path

import pytest

from firmware_bridge.model import Family
from firmware_bridge.presence.usb import USB_MODELS

RULES = sorted((Path(__file__).parents[2] / "udev").glob("*.rules"))
_IDS = re.compile(r'idVendor\}=="([0-9a-f]{4})"(?:, ATTRS?\{idProduct\}=="([0-9a-f]{4})")?')


def lines(path):
    return [
        line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]


def opened():
    return {
        (int(vendor, 16), int(product, 16) if product else None)
        for path in RULES
        for line in lines(path)
        for vendor, product in _IDS.findall(line)
    }


@pytest.mark.parametrize(
    "model",
    [model for model in USB_MODELS if model.transport is not None],
    ids=lambda model: f"{model.model}-{model.product:04x}",
)
def test_every_model_that_hwi_can_reach_has_a_rule(model):
    assert (model.vendor, model.product) in opened() or (model.vendor, None) in opened()


def test_nothing_is_opened_that_is_not_listed():
    listed = {(model.vendor, model.product) for model in USB_MODELS}
    vendors = {model.vendor for model in USB_MODELS if not model.product_mask}
    assert all(numbers in listed or (numbers[1] is None and numbers[0] in vendors) for numbers in opened())


def test_every_family_has_a_file():
    vendors = {vendor for vendor, _product in opened()}
    assert {model.family for model in USB_MODELS if model.vendor in vendors} == set(Family)


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_a_rule_names_a_vendor_and_opens_to_the_seat_only(path):
    assert lines(path)
    for line in lines(path):
        assert _IDS.search(line)
        assert 'MODE="0660"' in line
        assert 'TAG+="uaccess"' in line
        assert "0666" not in line


def test_rules_sort_before_the_seat_is_granted():
    assert RULES
    assert all(path.name < "73-seat-late.rules" for path in RULES)
