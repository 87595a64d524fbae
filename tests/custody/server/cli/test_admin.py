"""``custody admin reset-two-factor`` and ``rotate-secret``, and mail settings that do not go together."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from custody.server.cli import app
from custody.server.secrets import Purpose
from tests.support.accounts import CAROL, Phone, enrol, register, sign_in, validate
from tests.support.platform import World, open_world


@pytest.fixture
def world(tmp_path: Path):
    with open_world(tmp_path) as opened:
        yield opened


@pytest.fixture
def phone(world: World) -> Phone:
    register(world)
    return enrol(sign_in(world))


def admin(tmp_path: Path, command: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["admin", command, "--state", str(tmp_path), *arguments])


def test_a_lost_authenticator_is_set_back_to_mailed_codes(world: World, phone: Phone, tmp_path: Path) -> None:
    waiting = world.login(CAROL).json()["token_2fa"]
    answer = admin(tmp_path, "reset-two-factor", "Carol@Example.org")
    assert answer.exit_code == 0
    assert answer.stdout.startswith("carol@example.org signs in with mailed codes now")
    assert validate(world, waiting, phone.next_code()).status_code == 401
    assert world.login(CAROL).json()["two_factor_method"] == "email"
    session = sign_in(world)
    again = session.user.post("/auth/two-factor", {"password": "correct horse battery", "method": "totp"})
    assert again.status_code == 409
    world.deliver_mail()
    assert "Your second factor was changed" in [mail.subject for mail in world.mail.sent]
    assert "TWO_FACTOR_RESET" in world.audit_actions()


@pytest.mark.parametrize("purpose", sorted(map(str, Purpose)))
def test_every_secret_can_be_rotated_and_none_is_shown(world: World, tmp_path: Path, purpose: str) -> None:
    """P49."""
    for _ in range(2):
        answer = admin(tmp_path, "rotate-secret", purpose)
        assert answer.exit_code == 0
        assert answer.stdout.startswith(f"A new {purpose} secret.")
    text = (tmp_path / "secrets.json").read_text()
    assert [word for word in answer.stdout.split() if len(word) > 20 and word in text] == []
