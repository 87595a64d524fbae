"""``make demo AUTO=1``: every part real and in a process of its own, from nothing to a confirmed transaction."""

import re
import subprocess
import sys

from signerd.demo import story

DEMO_SECONDS = 480


def test_the_main_job_runs_unattended_and_prints_the_confirmed_transaction_id_last():
    ran = subprocess.run(
        [sys.executable, "-m", "signerd", "demo", "--auto"],
        capture_output=True,
        text=True,
        timeout=DEMO_SECONDS,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.fullmatch(r"[0-9a-f]{64}", ran.stdout.splitlines()[-1])
    assert "Coldcard of the second signer shows" in ran.stdout
    assert "Ledger of the first signer shows" in ran.stdout
    (address,) = re.search(r"compares the first address (bcrt1\w+)", ran.stdout).groups()
    # What a device calls testnet: the same program, with another prefix and so another checksum.
    program = address.removeprefix("bcrt1")[:-6]
    for device in ("Ledger of the first", "Coldcard of the second", "Trezor of the third"):
        shown = [line for line in ran.stdout.splitlines() if f"{device} signer shows" in line]
        assert any(program in "".join(line.split()).replace("/", "") for line in shown), shown


def test_a_refusal_on_a_device_fails_the_demo_loudly(monkeypatch, capsys):
    """The first signer's device is told no when it shows the payment: nothing is confirmed, and the reason is said."""

    def press(_title: str, lines: list[str]) -> bool:
        return not any("0.12345678" in line for line in lines)

    monkeypatch.setattr(story, "_script", lambda _demo: press)
    assert story.main(auto=True) == story.EXIT_FAILED
    said = capsys.readouterr()
    assert "The demo failed" in said.err
    assert "refused" in said.err.lower()
    assert not re.search(r"^[0-9a-f]{64}$", said.out, re.MULTILINE)


def test_a_step_that_does_nothing_is_noticed(monkeypatch, capsys):
    """A demo that skips a step must not reach its end."""

    async def nothing(*_args: object) -> str:
        return "no code"

    monkeypatch.setattr(story, "_pin", nothing)
    monkeypatch.setattr(story, "STEP_SECONDS", 5.0)
    assert story.main(auto=True) == story.EXIT_FAILED
    assert "The demo failed" in capsys.readouterr().err
