"""The example in docs/build/devices.md, run as it stands there."""

import re
from pathlib import Path

import pytest

from firmware_bridge import airgap
from multisig import signer_progress
from tests.support.airgap import SEED, VAULT, CardDevice
from tests.support.wallets import make_spend

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "build" / "devices.md"


@pytest.fixture
def example():
    section = DOCUMENT.read_text(encoding="utf-8").partition("\n## Air-gapped\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return code


def test_the_example(tmp_path, example):
    device = CardDevice()
    device.enrol(airgap.enrolment_text(VAULT, "Treasury").encode())
    names = {name: value for name, value in vars(airgap).items() if not name.startswith("_")}
    names |= {"card": tmp_path, "vault": VAULT, "psbt": make_spend(VAULT)}
    names |= {"device": device, "signer": SEED.fingerprint}
    exec(compile(example, str(DOCUMENT), "exec"), names)
    assert signer_progress(names["psbt"], VAULT, SEED.fingerprint).is_complete
    assert names["received"].complete
    assert all(picture.startswith(b"<?xml") for picture in names["pictures"])
    assert len(list(tmp_path.iterdir())) == 3
