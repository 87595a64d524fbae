"""The guides for signers as a reader meets them: each command of a page is run in its order, against a daemon
with a scripted platform and a device that obeys.
"""

import re
import shlex

import pytest
from click.testing import CliRunner

from custody.cli.program import app as custody
from custody.common.terminal import Exit
from tests.support.command import signerd
from tests.support.desk import VAULT, VAULT_ID
from tests.support.pages import DOCS, command_lines
from tests.support.served import make_outer, served_daemon

PAGES = [
    "first-steps", "approving", "emergency", "backup", "pinning", "rules", "cli", "codes", "lost-device",
]  # fmt: skip
# What is not run here, and where it is.
LEFT_OUT = {
    "signerd udev install": "tells of the system's own rules: tests/signerd/cli/test_service.py",
    "signerd setup": "signs in at a platform over the network: tests/signerd/cli/test_setup.py",
    "signerd service install": "starts a service: tests/signerd/cli/test_service.py",
    "signerd doctor": "looks at the whole machine: tests/signerd/doctor",
    "signerd approve ID --acknowledge paid-twice": "nothing came before: tests/signerd/cli/test_proposals.py",
    "signerd decline ID": "it was approved before: tests/signerd/cli/test_proposals.py",
    "signerd restore": "into a folder without a daemon: tests/signerd/cli/test_backup.py",
    "signerd login": "asks for a password: tests/signerd/cli/test_setup.py",
    "signerd completion": "writes a file: tests/signerd/cli/test_program.py",
    "signerd run": "is the daemon that all of this asks",
}
CONFIG = 'network = "regtest"\n[platform]\nurl = "http://127.0.0.1:9"\n'
TYPED = {"register": "yes\n", "pin": f"{VAULT.verification_code}\n", "approve": "yes\n"}
TYPED |= {"debug": "yes\n", "unpin": TYPED["pin"], "backup": "a phrase of mine\na phrase of mine\n"}


def left_out(line):
    return next((start for start in LEFT_OUT if line.startswith(start)), None)


def filled_in(line, folder):
    for placeholder, given in (
        ("VAULT", VAULT_ID),
        ("(ID|8bdd)", "p-1"),
        ("Cold reserve", VAULT_ID),
        ("FILE", f"{folder}/rules.toml"),
        ("(?=kit.html|bundle.json)", f"{folder}/"),
    ):
        line = re.sub(rf"\b{placeholder}", given, line)
    return shlex.split(line.replace("/media/stick/", f"{folder}/"))[1:]


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_guide_work_in_its_order(page, tmp_path):
    state = tmp_path / "s"
    lines = [line for line in command_lines(DOCS / "sign" / f"{page}.md") if not left_out(line)]
    (tmp_path / "rules.toml").write_text('[ask]\nabove_per_transaction = "0.5 BTC"\n')
    with served_daemon(state, make_outer(tmp_path), prepared=page != "first-steps") as desk:
        (state / "config.toml").write_text(CONFIG)
        for line in lines:
            if line.startswith("custody "):
                assert CliRunner().invoke(custody, shlex.split(line)[1:]).exit_code == Exit.OK, line
                continue
            arguments = filled_in(line, tmp_path)
            if arguments[0] == "proposals":
                desk.until(lambda: any(one.psbt_id == "p-1" for one in desk.service.journal.records()))
            ended = signerd(*arguments, state=state, typed=TYPED.get(arguments[0], ""))
            assert ended.status == Exit.OK, (line, ended.out, ended.err)
