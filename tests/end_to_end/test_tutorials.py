"""The trial and the tutorials as a reader meets them: every line of docs/operate/trial.md, then of
docs/build/tutorial-payment.md; and docs/build/tutorial-device.md. docs/operate/platform.md has the same
commands. The programs are real, each in a process of its own.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

import httpx
import pytest

from multisig import Psbt
from signerd.client import DaemonClient
from signerd.core.states import ASKED
from tests.support.bitcoind import free_port
from tests.support.cluster import until
from tests.support.pages import DOCS, shell_lines
from tests.support.processes import ended

pytestmark = pytest.mark.slow("every line of three pages, with every program as a whole")

TRIAL, PAYMENT = DOCS / "operate" / "trial.md", DOCS / "build" / "tutorial-payment.md"
DEVICE = DOCS / "build" / "tutorial-device.md"
PASSWORD, PHRASE, OWN_PHRASE = "a long password of mine", "phrase of signerd", "phrase of custody"
ADA = f"ada@example.org\n{PASSWORD}\n"
# What the tests do otherwise: this environment is made already.
PREPARED = ("make ", "export ", "mkdir ", "python3 -m venv", "pip install")
# What stays in a terminal of its own, and the words that say that it is ready.
STAYS = {
    "custody serve": "Serving on",
    "signerd device virtual": "Ready at",
    "signerd --state signer run": "is ready.",
    "python pay.py": "PENDING",
}
TYPED = {
    "custody admin bootstrap": f"{PASSWORD}\n",
    "signerd --state signer setup": f"{PHRASE}\n{ADA}",
    "signerd --state signer run": f"{PHRASE}\n",
    "signerd --state signer register": "yes\n",
    "custody login": f"{OWN_PHRASE}\n{ADA}",
    "signerd --state signer approve": "yes\n",
    "custody ": f"{OWN_PHRASE}\ny\n",
    "(umask": f"{OWN_PHRASE}\n",
}
SECONDS = 120


def code(page: Path, name: str) -> str:
    """The page's program of this name, with which its first line begins."""
    found = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (program,) = [text for text in found if text.startswith(f'"""{name}')]
    return program


class Reader:
    """Types a page's lines, with a terminal for each program that keeps running."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self._stack = folder, stack
        self.ports = {"8080": str(free_port()), "21424": str(free_port())}
        own = {"CUSTODY_STATE": str(folder / "platform"), "CUSTODY_SESSION": str(folder / "session")}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.env = os.environ | own | {"PATH": path, "HOME": str(folder), "CUSTODY_CHAIN_SIGNET": "embedded"}
        self.env["CUSTODY_PUBLIC_URL"] = f"http://127.0.0.1:{self.ports['8080']}"
        self.said: dict[str, Path] = {}

    def follows(self, page: Path) -> None:
        for line in shell_lines(page):
            if line.startswith("python unsigned.py"):
                until(lambda: "CONFIRMED" in self.heard("python pay.py"), "the end of pay.py")
            if not line.startswith(PREPARED):
                self.types(self.filled_in(line))

    def filled_in(self, line: str) -> str:
        for written, ours in self.ports.items():
            line = line.replace(f":{written}", f":{ours}")
        if line.startswith("custody serve"):
            line += f" --listen 127.0.0.1:{self.ports['8080']}"
        return re.sub(r"\b(VAULT|ADDRESS|ID)$|\b(ADDRESS)(?= )", lambda found: self.asked(found[0]), line)

    def asked(self, name: str) -> str:
        """What a person reads off the screen."""
        if name == "ID":
            return self.waiting()
        return self.vault["vault_id"] if name == "VAULT" else self.vault["first_address"]

    @cached_property
    def vault(self) -> dict[str, str]:
        (vault,) = json.loads(self.types("signerd --state signer vaults --json"))
        return vault

    def waiting(self) -> str:
        """Looked for by a client: a command each time would be most of what this test takes."""
        found: list[str] = []

        def looked() -> bool:
            with DaemonClient(self.folder / "signer") as daemon:
                found[:] = [one.psbt_id for one in daemon.proposals() if one.state in ASKED]
            return bool(found)

        until(looked, "a proposal that waits")
        return found[0]

    def types(self, line: str) -> str:
        typed = next((answer for start, answer in TYPED.items() if line.startswith(start)), "")
        if line.startswith("signerd --state signer pin"):
            typed = f"{self.vault['verification_code']}\n"
        for start, words in STAYS.items():
            if line.startswith(start):
                return self.leaves_running(line, start, typed, words)
        done = self.run(line, typed)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return done.stdout

    def run(self, line: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        return ended(["bash", "-c", line], cwd=self.folder, env=self.env, input=typed, seconds=SECONDS)

    def opened_invitation(self) -> str:
        """The page to which the link of the newest mail leads."""
        folder = self.folder / "platform" / "mail"
        until(lambda: any(folder.glob("*.eml")), "the invitation's mail")
        link = re.search(r"^http://\S+$", max(folder.glob("*.eml")).read_text(), re.MULTILINE)
        assert link is not None
        return httpx.get(link[0], follow_redirects=True).raise_for_status().text

    def leaves_running(self, line: str, start: str, typed: str, ready: str) -> str:
        self.said[start] = self.folder / f"said-{len(self.said)}"
        auto = " --auto approve" if "virtual" in line else ""
        with self.said[start].open("w") as heard:
            pipes = {"stdin": subprocess.PIPE, "stdout": heard, "stderr": heard, "text": True}
            command = ["bash", "-c", f"exec {line}{auto}"]
            running = subprocess.Popen(command, cwd=self.folder, env=self.env, **pipes)
            self._stack.enter_context(running)
        self._stack.callback(running.terminate)
        assert running.stdin is not None
        running.stdin.write(typed)
        running.stdin.flush()
        until(lambda: ready in self.heard(start) or running.poll() is not None, line)
        assert running.poll() is None, self.heard(start)
        return ""

    def heard(self, start: str) -> str:
        return self.said[start].read_text()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with ExitStack() as stack:
        yield Reader(tmp_path, stack)


def test_the_trial_pays_and_a_program_pays_after_it(reader: Reader) -> None:
    reader.follows(TRIAL)
    paid = reader.types("custody vault history Trial")
    assert "A first payment" in paid
    assert "0.50000000 BTC" in paid
    assert "bob@example.org" in reader.opened_invitation()

    for name in ("pay.py", "unsigned.py"):
        program = code(PAYMENT, name).replace(":8080", f":{reader.ports['8080']}")
        (reader.folder / name).write_text(program)
    reader.follows(PAYMENT)
    unsigned = Psbt.parse((reader.folder / "unsigned.psbt").read_text())
    assert all(one.non_witness_utxo is not None and not one.partial_signatures for one in unsigned.inputs)
    assert "invoice-17" in reader.types("custody vault history Trial")
    assert (reader.folder / "secret").stat().st_mode & 0o777 == 0o600
    other = "python pay.py 1000 tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx invoice-17"
    refused = reader.run(other)
    assert "IDEMPOTENCY_KEY_REUSED" in refused.stderr


def test_a_device_is_found_and_signs(reader: Reader) -> None:
    (reader.folder / "device.py").write_text(code(DEVICE, "device.py"))
    told = [reader.types(line) for line in shell_lines(DEVICE) if not line.startswith(PREPARED)]
    assert re.search(r"Coldcard .* ready [0-9a-f]{8}\n", told[-1])
    for words in ("its key for vaults: [", "shown, and the same here: tb1q", "signed, and verified: "):
        assert words in told[-1]
