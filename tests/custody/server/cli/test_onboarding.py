"""``custody admin requests``, ``approve`` and ``reject``, while no server runs."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from custody.common.terminal import Exit
from custody.schemas.onboarding import SubmitOnboardingRequest
from custody.server.calls import Ctx
from custody.server.cli import app
from custody.server.people.organisations import HINT_DECIDED, submit_onboarding_request
from custody.server.rules.credentials import Caller
from custody.server.sign_in.accounts import add_account
from tests.support.onboarding import REQUEST
from tests.support.platform import open_world

ASKER = "asker@example.net"


def request(**changes: str) -> SubmitOnboardingRequest:
    return SubmitOnboardingRequest.model_validate({**REQUEST, **changes})


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """An empty platform with two requests of one account, 1 and 2."""
    with open_world(tmp_path / "state") as world:
        services = world.platform.services
        with services.store.write() as db:
            user = add_account(db, world.clock(), ASKER, "no password")
            db.flush()
            asker = Caller(user.id, 1, ASKER, "trace")
            submit_onboarding_request(Ctx(services, asker, db), request())
            submit_onboarding_request(
                Ctx(services, asker, db), request(org_name="Another", network="mainnet")
            )
    return tmp_path / "state"


def custody(state: Path, command: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["admin", command, *arguments, "--state", str(state)])


def test_lists_what_waits(state: Path) -> None:
    assert custody(state, "requests").stdout == (
        "UID  STATUS   ORGANISATION    WORKSPACE  NETWORK  ASKED BY\n"
        f"1    pending  Prado & Filhas  Treasury   testnet  {ASKER}\n"
        f"2    pending  Another         Treasury   mainnet  {ASKER}\n"
    )
    assert [row["uid"] for row in json.loads(custody(state, "requests", "--json").stdout)] == [1, 2]
    assert custody(state, "requests", "--status", "approved").stdout == "No requests.\n"
    assert custody(state, "requests", "--after", "1").stdout.splitlines()[1].startswith("2 ")


def test_the_first_approval_opens_the_network(state: Path) -> None:
    """From an empty database, nothing says yet which chain testnet is."""
    refused = custody(state, "approve", "1")
    assert refused.exit_code == Exit.NOT_DECIDED
    assert "is on testnet yet" in refused.stderr
    approved = custody(state, "approve", "1", "--chain", "regtest")
    assert approved.stdout == f"Request 1 is approved: {ASKER} runs organisation 1.\n"
    told = json.loads(custody(state, "approve", "2", "--note", "Welcome.", "--json").stdout)
    assert (told["was_created"], told["created_org_uid"]["Int64"]) == (True, 2)
    assert (told["approved_by_email"]["String"], told["review_note"]["String"]) == ("operator", "Welcome.")
    assert custody(state, "requests", "--status", "pending").stdout == "No requests.\n"
    verified = CliRunner().invoke(app, ["audit", "verify", "--state", str(state)])
    assert verified.exit_code == 0, verified.output


def test_a_rejection_stands(state: Path) -> None:
    rejected = custody(state, "reject", "1", "--note", "Not yet.")
    assert rejected.stdout == f"Request 1 is rejected, and {ASKER} will be told.\n"
    again = custody(state, "approve", "1", "--chain", "regtest")
    assert again.exit_code == Exit.NOT_DECIDED
    assert again.stderr == f"custody: This request was rejected already.\n  {HINT_DECIDED}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["approve", "9"], "There is no such request."),
        (["reject", "9"], "There is no such request."),
        (["approve", "1", "--chain", "mainnet"], "The request is for testnet, and mainnet is not."),
        (["reject", "1", "--note", "x" * 1001], "the note is too long: at most 1000 characters."),
    ],
)
def test_what_cannot_be_decided_is_explained(state: Path, arguments: list[str], sentence: str) -> None:
    refused = custody(state, *arguments)
    assert refused.exit_code in {Exit.NOT_DECIDED, Exit.USAGE}
    assert refused.stderr.startswith(f"custody: {sentence}")
    assert "Traceback" not in refused.output
