"""A publisher's list from the key to the platform, by the commands of docs/operate/flaws.md; and a drill
that is timed.
"""

import json
import re

from custody.terminal import Exit
from tests.support.advisories import entry, trust
from tests.support.evacuations import key_of, staff, start


def test_a_drill_is_signed_checked_taken_and_shown(desk, service, tmp_path):
    files = {name: str(tmp_path / name) for name in ("secret", "other", "draft", "signed", "second")}
    key = json.loads(service("advisory", "new-key", files["secret"], "--json").stdout)["publisher"]
    assert service("advisory", "new-key", files["secret"]).exit_code == Exit.USAGE
    made = service("advisory", "new-key", files["other"])
    other = made.stdout.strip()
    assert "CUSTODY_ADVISORY_KEYS" in made.stderr
    draft = {"issued": "2026-02-01T00:00:00Z", "expires": "9999-02-01T00:00:00Z"}
    (tmp_path / "draft").write_text(json.dumps(draft | {"advisories": [entry("DRILL-1", drill=True)]}))
    signed = service("advisory", "sign", files["draft"], files["signed"], "--key", files["secret"])
    assert "DRILL-1: drill, stop-using." in signed.stdout
    checked = service("advisory", "check", files["signed"], "--publisher", key)
    assert (checked.exit_code, checked.stdout) == (Exit.OK, signed.stdout)
    assert service("advisory", "check", files["signed"], "--publisher", other).exit_code == Exit.FAILED

    trust(desk, key)
    assert "DRILL-1" in service("advisory", "take", files["signed"]).stdout
    handed = (
        "advisory", "sign", files["draft"], files["second"],
        "--key", files["other"], "--after", files["signed"],
    )  # fmt: skip
    assert "give it as the former key" in service(*handed).stderr
    assert service(*handed, "--former-key", files["secret"]).exit_code == Exit.OK
    assert service("advisory", "take", files["second"]).exit_code == Exit.OK
    assert service("advisory", "take", files["signed"]).exit_code != Exit.OK
    assert "serial 2" in service("advisory", "list").stdout
    shown = service("advisory", "exposures", "DRILL-1").stdout
    assert "Treasury" in shown
    assert "none" in shown
    assert "no evacuation was started" in service("advisory", "report", "DRILL-1").stderr
    start(desk, staff(desk), [key_of(desk, "carol")])
    desk.settle()
    old = service("advisory", "exposures", "DRILL-1").stdout.splitlines()[1]
    assert re.search(r"Treasury \(being evacuated since 20..-..-.., replaced by Treasury \(new\)\)$", old)
    nothing = service("evacuate", "start", "--key", key_of(desk, "carol"))
    assert "there is nothing to evacuate" in nothing.stderr
    file = tmp_path / "report"
    told = service("advisory", "report", "DRILL-1", "--file", str(file)).stdout.splitlines()
    assert told[0].startswith("Drill DRILL-1, evacuation ")
    (report,) = json.loads(file.read_text())
    assert [step["what"] for step in report["steps"] if step["seconds"] is None] == [
        "the last sweep was in a block"
    ]
    assert len(told) == 1 + len(report["steps"])
