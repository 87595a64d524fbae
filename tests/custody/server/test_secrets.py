"""The secrets file: created once, rotated without a lock-out, readable by its owner alone."""

import secrets
import stat
from pathlib import Path

import pytest
from pydantic import ValidationError

from custody.server.secrets import Purpose, Secrets


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "secrets.json"


@pytest.fixture
def kept(path: Path) -> Secrets:
    return Secrets(path, secrets.token_bytes)


def test_each_purpose_has_a_secret_of_its_own_that_stays(path: Path, kept: Secrets) -> None:
    first = [kept.of(purpose) for purpose in Purpose]
    assert [len(found) for found in first] == [1] * len(Purpose)
    assert len(set(first)) == len(Purpose)
    assert [Secrets(path, secrets.token_bytes).of(purpose) for purpose in Purpose] == first


def test_only_its_owner_may_read_the_file(path: Path, kept: Secrets) -> None:
    kept.of(Purpose.TOTP)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_secret_writes_and_the_old_ones_read_until_they_are_dropped(kept: Secrets) -> None:
    (old,) = kept.of(Purpose.TOTP)
    other = kept.of(Purpose.CHECKPOINT)
    kept.rotate(Purpose.TOTP)
    new, still = kept.of(Purpose.TOTP)
    assert still == old
    kept.drop(Purpose.TOTP, (old,))
    assert kept.of(Purpose.TOTP) == (new,)
    assert kept.of(Purpose.CHECKPOINT) == other


def test_what_another_rotation_put_in_front_meanwhile_stays(kept: Secrets) -> None:
    old = kept.of(Purpose.TOTP)
    kept.rotate(Purpose.TOTP)
    kept.rotate(Purpose.TOTP)
    newest, mine, _ = kept.of(Purpose.TOTP)
    kept.drop(Purpose.TOTP, old)
    assert kept.of(Purpose.TOTP) == (newest, mine)


def test_a_first_rotation_needs_no_first_use(kept: Secrets) -> None:
    kept.rotate(Purpose.PURCHASE_WEBHOOK)
    assert len(kept.of(Purpose.PURCHASE_WEBHOOK)) == 1


def test_a_damaged_file_is_not_replaced_and_not_quoted(path: Path, kept: Secrets) -> None:
    path.write_text('{"secrets": {"totp": [{"hidden": "precious"}]}}')
    with pytest.raises(ValidationError) as caught:
        kept.of(Purpose.TOTP)
    assert "precious" not in str(caught.value)
    assert "precious" in path.read_text()
