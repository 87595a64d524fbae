"""``custody admin``: a lost second factor, secrets, operators, requests for organisations, a rescan."""

import json
from pathlib import Path

import pytest

from custody.common.terminal import Exit
from custody.schemas.onboarding import SubmitOnboardingRequest
from custody.server.calls import Ctx
from custody.server.people.organisations import HINT_DECIDED, submit_onboarding_request
from custody.server.rules.credentials import Caller
from custody.server.secrets import Purpose
from custody.server.sign_in.accounts import add_account
from custody.server.store.models import UserRow
from tests.support.accounts import CAROL, PASSWORD, Phone, enrol, register, sign_in, validate
from tests.support.custody import open_desk, refused
from tests.support.onboarding import REQUEST
from tests.support.operator import custody
from tests.support.platform import World, open_world

ALICE, ASKER = "alice@example.org", "asker@example.net"


@pytest.fixture
def world(tmp_path: Path):
    with open_world(tmp_path) as opened:
        yield opened


@pytest.fixture
def phone(world: World) -> Phone:
    register(world)
    return enrol(sign_in(world))


def test_a_lost_authenticator_is_set_back_to_mailed_codes(world: World, phone: Phone, tmp_path: Path) -> None:
    waiting = world.login(CAROL).json()["token_2fa"]
    answer = custody("admin", "reset-two-factor", "Carol@Example.org", state=tmp_path)
    assert answer.exit_code == 0
    assert answer.stdout.startswith("carol@example.org signs in with mailed codes now")
    assert validate(world, waiting, phone.next_code()).status_code == 401
    assert world.login(CAROL).json()["two_factor_method"] == "email"
    again = sign_in(world).user.post("/auth/two-factor", {"password": PASSWORD, "method": "totp"})
    refused(again, 409, "STATE_CONFLICT")
    world.deliver_mail()
    assert "Your second factor was changed" in [mail.subject for mail in world.mail.sent]
    assert "TWO_FACTOR_RESET" in world.audit_actions()


@pytest.mark.parametrize("purpose", sorted(map(str, Purpose)))
def test_every_secret_can_be_rotated_and_none_is_shown(world: World, tmp_path: Path, purpose: str) -> None:
    """P49."""
    for _ in range(2):
        answer = custody("admin", "rotate-secret", purpose, state=tmp_path)
        assert answer.exit_code == 0
        assert answer.stdout.startswith(f"A new {purpose} secret.")
    text = (tmp_path / "secrets.json").read_text()
    assert [word for word in answer.stdout.split() if len(word) > 20 and word in text] == []


def test_an_operator_is_made_and_unmade_by_command_alone(world: World, tmp_path: Path) -> None:
    world.organisation("Acme", ALICE)

    def make(*words: str) -> str:
        return custody("admin", "make-operator", *words, state=tmp_path).stdout

    def is_operator() -> bool:
        with world.platform.services.store.read() as db:
            return db.get_one(UserRow, 1).is_operator

    assert not is_operator()
    for _ in range(2):
        assert make("Alice@example.org").endswith("(user 1) is an operator.\n")
    assert is_operator()
    assert json.loads(make(ALICE, "--json")) == {"user_id": 1, "is_operator": True}
    for _ in range(2):
        assert "no longer an operator" in make(ALICE, "--take-away")
    assert not is_operator()
    assert world.audit_actions() == ["OPERATOR_APPOINTED", "OPERATOR_DISMISSED"]


def test_a_rescan_says_what_is_watched(tmp_path: Path) -> None:
    with open_desk(tmp_path) as desk:
        asked = ["admin", "rescan", "--vault", desk.vault["id"], "--addresses", "30"]
        answer = custody(*asked, "--json", state=tmp_path)
        assert json.loads(answer.stdout) == {"vault_id": desk.vault["id"], "addresses": 30}
        assert "The first 30 addresses" in custody(*asked, state=tmp_path).stdout


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """An empty platform, on which no server runs, with two requests of one account, 1 and 2."""
    with open_world(tmp_path / "state") as world:
        services = world.platform.services
        with services.store.write() as db:
            user = add_account(db, world.clock(), ASKER, "no password")
            db.flush()
            ctx = Ctx(services, Caller(user.id, 1, ASKER, "trace"), db)
            for changes in ({}, {"org_name": "Another", "network": "mainnet"}):
                submit_onboarding_request(ctx, SubmitOnboardingRequest.model_validate(REQUEST | changes))
    return tmp_path / "state"


def test_an_operator_lists_approves_and_rejects(state: Path) -> None:
    """From an empty database, nothing says yet which chain testnet is: the first approval opens it."""

    def run(*words: str) -> str:
        return custody("admin", *words, state=state).stdout

    assert run("requests") == (
        "UID  STATUS   ORGANISATION    WORKSPACE  NETWORK  ASKED BY\n"
        f"1    pending  Prado & Filhas  Treasury   testnet  {ASKER}\n"
        f"2    pending  Another         Treasury   mainnet  {ASKER}\n"
    )
    assert [row["uid"] for row in json.loads(run("requests", "--json"))] == [1, 2]
    assert run("requests", "--after", "1").splitlines()[1].startswith("2 ")
    asked = run("approve", "1", "--chain", "regtest")
    assert asked == f"Request 1 is approved: {ASKER} runs organisation 1.\n"
    rejected = run("reject", "2", "--note", "Not yet.")
    assert rejected == f"Request 2 is rejected, and {ASKER} will be told.\n"
    again = custody("admin", "approve", "2", state=state)
    assert (again.exit_code, HINT_DECIDED in again.stderr) == (Exit.NOT_DECIDED, True)
    assert run("requests", "--status", "pending") == "No requests.\n"
    verified = custody("audit", "verify", state=state)
    assert verified.exit_code == 0, verified.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("approve 1", "No workspace of this platform is on testnet yet."),
        ("approve 9", "There is no such request."),
        ("reject 9", "There is no such request."),
        ("approve 1 --chain mainnet", "The request is for testnet, and mainnet is not."),
        (f"reject 1 --note {'x' * 1001}", "the review note is too long: at most 1000 characters."),
        ("make-operator nobody@example.org", "no account for nobody@example.org"),
    ],
)
def test_what_cannot_be_decided_is_explained(state: Path, words: str, sentence: str) -> None:
    done = custody("admin", *words.split(), state=state)
    assert done.exit_code in {Exit.NOT_DECIDED, Exit.USAGE}
    assert done.stderr.startswith("custody: ")
    assert sentence in done.stderr.splitlines()[0]
    assert "Traceback" not in done.output
