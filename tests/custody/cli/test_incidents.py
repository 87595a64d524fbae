"""The runbooks of docs/operate/incidents.md, and the commands of other guides: a member's, and those of an
operator beside the database. They freeze the vault and revoke a key, so the platform is this module's own.
"""

import re
import shlex

from custody.common.terminal import Exit
from tests.support.custody import ok
from tests.support.pages import DOCS, command_lines
from tests.support.platform import PASSWORD

RUNBOOKS = (DOCS / "operate" / "incidents.md").read_text(encoding="utf-8")
# The answers of each runbook's commands.
WHOLE = "Every audit chain is whole."
STEPS = {
    "Incidents": ("custody 0.",),
    "A session or a secret leaked": (
        "4   carol@example.org",
        "The vault 'Treasury' is frozen.",
        "vaults.vault_frozen",
        "(Shop) is revoked.",
        *("A new totp secret.", "A new webhook secret.", "A new checkpoint secret."),
        "of user 4 is revoked: lost.",
    ),
    "The administrator is lost": ("eve@example.org is user 5, Administrator",),
    "A payment is stuck": ("Status:  pending",),
    "The disk is full": (WHOLE,),
    "The audit log is not whole": (WHOLE,),
}


# The commands of each page in their order, and what their answers hold.
GUIDES = {
    "scale": ("nothing was given up",),
    "purchases": ("A new purchase-webhook secret.",),
    "proofs": ("0 of 2  Audit of 2026", "is proven: 2 of 2 signatures.", "The proof is valid, on regtest."),
    # Last: it ends the sessions of a signer.
    "sign-in": ("signs in with mailed codes now", "A new totp secret."),
}
# Commands that are not run here, and the tests that run them.
ELSEWHERE = {
    ("admin", "jobs", "retry", "--kind", "mail"): "the same",
    ("admin", "jobs", "retry", "17"): "takes a job that failed: tests/custody/server/cli/test_status.py",
    ("admin", "jobs", "discard", "17"): "the same",
    ("proof", "verify", "proof.json", "--chain", "esplora:https://explorer.example/api"): "asks an explorer: "
    "tests/custody/server/cli/test_proofs.py",
}


def test_the_commands_of_a_guide_do_what_they_say(desk, state, service, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUSTODY_STATE", str(state))
    known = {
        "STATE": str(state), "DIR": str(state), "ID": desk.vault["id"], "Cold reserve": "Treasury",
        "alice@example.org": "bob@example.org",
    }  # fmt: skip
    left = set(ELSEWHERE)
    for page, told in GUIDES.items():
        said = ""
        for _custody, *words in map(shlex.split, command_lines(DOCS / "operate" / f"{page}.md")):
            if tuple(words) in ELSEWHERE:
                left.discard(tuple(words))
                continue
            if words[:2] == ["proof", "show"]:
                made = ok(desk.admin.get("/api/v1/psbt", workspace_id=1))
                known["PROOF"] = made[-1]["psbt_id"]
                desk.sign_off(known["PROOF"])
            answers = f"{'k' * 40}\n" if "--set" in words else "y\n"
            done = service(*(known.get(word, word) for word in words), answers=answers)
            assert done.exit_code == Exit.OK, (words, done.output)
            said += done.stdout
        assert [words for words in told if words not in said] == [], said
    assert not left


def commands_of(runbook: str) -> list[str]:
    """The commands in blocks and in sentences."""
    section = RUNBOOKS.partition(f"# {runbook}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^ {4,}(custody .+)$|`(custody [^`]+)`", section, re.MULTILINE)
    return [" ".join((block or inline).split()) for block, inline in found]


def test_the_steps_of_the_runbooks_do_what_they_say(desk, state, service, monkeypatch):
    monkeypatch.setenv("CUSTODY_STATE", str(state))
    rights = ["--right", "VIEW_BALANCES", "--network", "192.0.2.0/24", "--days", "9"]
    made = service("service-account", "make", "Shop", *rights, answers="y\n")
    assert made.exit_code == Exit.OK, made.output
    proposed = ok(desk.propose(100_000))["psbt_id"]
    (key,) = ok(desk.signers["carol"].get("/api/v1/keys"))
    known = {"NAME": "Shop", "Cold reserve": "Treasury", "ada@example.org": "bob@example.org"}
    for runbook, told in STEPS.items():
        said = ""
        for _custody, *words in map(shlex.split, commands_of(runbook)):
            known["ID"] = proposed if words[0] == "proposal" else key["ID"]
            answers = f"{PASSWORD}\n" if "add-member" in words else "y\n"
            done = service(*(known.get(word, word) for word in words), answers=answers)
            assert done.exit_code == Exit.OK, (words, done.output)
            said += done.stdout
        assert [words for words in told if words not in said] == [], said
