"""A vault's record as platforms of several ages answer with it: what signerd takes of it is the same."""

from pathlib import Path
from typing import Any

import pytest

from custody.schemas.vaults import Vault
from signerd.account.wire import PlatformWorkspace, claim_of
from tests.support.desk import CLAIM
from tests.support.fake_platform import STAMP, FakePlatform

HERE = PlatformWorkspace(1, "Main", "testnet")
FIGURES = {"Limit": "1.00", "Used": "0.40", "Unused": "0.60", "NextReset": STAMP}
LIMITS = {"detailed_vault_limits": FIGURES | {"CyclePeriod": "W", "CycleDay": 1}}
ASSET = {"contract_uid": 1, "contract_id": None, "ticker": "GOLD", "decimals": 2, **FIGURES}


@pytest.mark.parametrize(
    "fields",
    [
        {"limit_error": "no"},
        LIMITS,
        LIMITS | {"assets": []},
        LIMITS | {"assets": [ASSET]},
        LIMITS | {"assets": [ASSET | {"LimitOfItsOwn": True}], "more": {}},
    ],
    ids=["no policies", "older", "no token moved", "a token moved", "newer"],
)
def test_a_vault_is_the_same_whatever_is_told_of_its_limits(tmp_path: Path, fields: dict[str, Any]) -> None:
    record = FakePlatform(tmp_path, {})._vault()
    del record["limit_error"]
    claim = claim_of(Vault.model_validate(record | fields), HERE)
    assert (claim.vault_id, claim.descriptor) == (CLAIM.vault_id, CLAIM.descriptor)
