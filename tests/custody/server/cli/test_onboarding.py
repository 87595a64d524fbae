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


def test_an_operator_lists_approves_and_rejects(state: Path) -> None:
    """From an empty database, nothing says yet which chain testnet is: the first approval opens it."""
    assert custody(state, "requests").stdout == (
        "UID  STATUS   ORGANISATION    WORKSPACE  NETWORK  ASKED BY\n"
        f"1    pending  Prado & Filhas  Treasury   testnet  {ASKER}\n"
        f"2    pending  Another         Treasury   mainnet  {ASKER}\n"
    )
    assert [row["uid"] for row in json.loads(custody(state, "requests", "--json").stdout)] == [1, 2]
    assert custody(state, "requests", "--after", "1").stdout.splitlines()[1].startswith("2 ")
    refused = custody(state, "approve", "1")
    assert (refused.exit_code, "is on testnet yet" in refused.stderr) == (Exit.NOT_DECIDED, True)
    approved = custody(state, "approve", "1", "--chain", "regtest")
    assert approved.stdout == f"Request 1 is approved: {ASKER} runs organisation 1.\n"
    rejected = custody(state, "reject", "2", "--note", "Not yet.")
    assert rejected.stdout == f"Request 2 is rejected, and {ASKER} will be told.\n"
    again = custody(state, "approve", "2")
    assert (again.exit_code, HINT_DECIDED in again.stderr) == (Exit.NOT_DECIDED, True)
    assert custody(state, "requests", "--status", "pending").stdout == "No requests.\n"
    verified = CliRunner().invoke(app, ["audit", "verify", "--state", str(state)])
    assert verified.exit_code == 0, verified.output


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
