"""The platform's own secrets: a file that its owner alone reads, and rotations through which authenticators
keep working, kills and concurrent work among it.
"""

import secrets
import stat
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from custody.server import rotation as rotating
from custody.server.errors import StateConflict
from custody.server.secrets import Purpose, Secrets
from custody.server.store.models import CredentialRow
from tests.support.accounts import Phone, enrol, register, sign_in, validate
from tests.support.platform import World


@pytest.fixture
def phone(world: World) -> Phone:
    register(world)
    return enrol(sign_in(world))


@dataclass(frozen=True)
class Rotation:
    world: World

    @property
    def parts(self) -> tuple:
        tools = self.world.platform.services.tools
        return self.world.platform.services.store, tools.audit, tools.secrets

    def rotate(self, purpose: Purpose) -> rotating.Rotated:
        return rotating.rotate(*self.parts, purpose)

    def finish(self, purpose: Purpose) -> rotating.Rotated:
        return rotating.drop_old(*self.parts, purpose)

    def part(self, name: str) -> object:
        _, audit, secrets = self.parts
        return {"_totp": rotating, "_audit": audit, "_secrets": secrets}[name]


@pytest.fixture
def rotation(world: World) -> Rotation:
    return Rotation(world)


class Killed(BaseException):
    """Nothing catches it, as nothing catches a kill."""


def killing(inner, when: str):
    def killed(*args, **kwargs):
        if when == "after":
            inner(*args, **kwargs)
        raise Killed

    return killed


def secrets_of(world: World, purpose: Purpose = Purpose.TOTP) -> tuple[bytes, ...]:
    return world.platform.services.tools.secrets.of(purpose)


def sealed(world: World) -> list[bytes]:
    with world.platform.services.store.read() as db:
        rows = db.execute(select(CredentialRow.totp_secret, CredentialRow.totp_pending)).all()
    return [value for row in rows for value in row if value is not None]


def works(world: World, phone: Phone) -> bool:
    token = world.login("carol@example.org").json()["token_2fa"]
    return validate(world, token, phone.next_code()).status_code == 200


def test_authenticators_are_reencrypted_and_the_old_secret_is_gone(
    world: World, phone: Phone, rotation: Rotation
) -> None:
    (old,), (before,) = secrets_of(world), sealed(world)
    done = rotation.rotate(Purpose.TOTP)
    assert (done.reencrypted, done.dropped, done.still_read) == (1, 1, 0)
    assert old not in secrets_of(world)
    assert sealed(world) != [before]
    assert works(world, phone)
    assert world.audit_actions()[-1] == "SIGNED_IN"
    assert "SECRET_ROTATED" in world.audit_actions()


def test_a_kill_at_any_point_leaves_everything_readable(
    world: World, phone: Phone, rotation: Rotation, monkeypatch
) -> None:
    steps = [("_secrets", "rotate"), ("_totp", "reencrypt"), ("_audit", "record"), ("_secrets", "drop")]
    for (owner, step), when in product(steps, ("before", "after")):
        part = rotation.part(owner)
        monkeypatch.setattr(part, step, killing(getattr(part, step), when))
        with pytest.raises(Killed):
            rotation.rotate(Purpose.TOTP)
        monkeypatch.undo()
        assert works(world, phone), (step, when)
        assert rotation.rotate(Purpose.TOTP).still_read == 0
        assert len(secrets_of(world)) == 1
        assert works(world, phone), (step, when)


@pytest.mark.parametrize(("owner", "step"), [("_totp", "reencrypt"), ("_secrets", "drop")])
def test_two_rotations_at_once_drop_nothing_that_is_needed(
    world: World, phone: Phone, rotation: Rotation, monkeypatch, owner: str, step: str
) -> None:
    """The second runs as a whole between two steps of the first; the first one's transaction is not open
    yet.
    """
    part = rotation.part(owner)
    inner = getattr(part, step)

    def meanwhile(*args, **kwargs):
        monkeypatch.undo()
        if owner == "_secrets":
            rotation.rotate(Purpose.TOTP)
        else:
            world.platform.services.tools.secrets.rotate(Purpose.TOTP)
        return inner(*args, **kwargs)

    monkeypatch.setattr(part, step, meanwhile)
    rotation.rotate(Purpose.TOTP)
    assert works(world, phone)


def test_an_unreadable_offer_stops_no_rotation(world: World, phone: Phone, rotation: Rotation) -> None:
    with world.platform.services.store.write() as db:
        db.scalars(select(CredentialRow)).one().totp_pending = b"sealed with a file that is lost"
    rotation.rotate(Purpose.TOTP)
    assert b"sealed with a file that is lost" in sealed(world)
    assert works(world, phone)


def test_others_read_with_the_old_secret_too_until_it_is_dropped(world: World, rotation: Rotation) -> None:
    """The secret that the provider signs with by now outlives the old one."""
    for purpose in (Purpose.PURCHASE_WEBHOOK, Purpose.CHECKPOINT):
        (old,) = secrets_of(world, purpose)
        assert rotation.rotate(purpose).still_read == 1
        assert secrets_of(world, purpose)[1:] == (old,)
    new, _ = secrets_of(world, Purpose.PURCHASE_WEBHOOK)
    assert rotation.finish(Purpose.PURCHASE_WEBHOOK).dropped == 1
    assert secrets_of(world, Purpose.PURCHASE_WEBHOOK) == (new,)
    assert world.audit_actions()[-2:] == ["SECRET_ROTATED", "OLD_SECRETS_DROPPED"]


def test_finishing_seals_anew_before_it_drops_and_drops_no_key_of_old_checkpoints(
    world: World, phone: Phone, rotation: Rotation
) -> None:
    world.platform.services.tools.secrets.rotate(Purpose.TOTP)
    assert rotation.finish(Purpose.TOTP).reencrypted == 1
    assert len(secrets_of(world)) == 1
    assert works(world, phone)
    before = secrets_of(world, Purpose.CHECKPOINT)
    with pytest.raises(StateConflict, match="stays"):
        rotation.finish(Purpose.CHECKPOINT)
    assert secrets_of(world, Purpose.CHECKPOINT) == before


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
