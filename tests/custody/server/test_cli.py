"""The ``custody`` command, as the program that an operator starts."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from custody.cli.program import app
from custody.common.terminal import Exit
from custody.server.store import sqlite_url
from custody.server.web.listen import only_server

PASSWORD = "correct horse battery"
START_SECONDS = 300
BOOTSTRAP = ["admin", "bootstrap", "--organisation", "Acme", "--workspace", "Main", "--chain", "regtest"]


def custody(*arguments: str, answer: str = "") -> Result:
    return CliRunner().invoke(app, arguments, input=answer)


def bootstrap(state: Path, *more: str) -> Result:
    arguments = [*BOOTSTRAP, "--state", str(state), "--email", "alice@example.org", *more]
    return custody(*arguments, answer=f"{PASSWORD}\n")


@contextmanager
def serving(state: Path, *more: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    port_file = state / "port"
    command = [sys.executable, "-m", "custody.server", "serve", "--state", str(state), "--listen",
               "127.0.0.1:0", "--port-file", str(port_file), *more]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert "Serving on" in server.stdout.readline()
            yield f"http://127.0.0.1:{int(port_file.read_text())}", server
        finally:
            server.kill()


def poll(url: str, headers: dict[str, str], asked: threading.Event) -> int:
    """Waits until something changes; the answer's status."""
    url = f"{url}/api/v1/psbt?workspace_id=1"
    with httpx.Client(event_hooks={"request": [lambda _request: asked.set()]}, timeout=60) as plain:
        etag = httpx.get(url, headers=headers).headers["ETag"]
        return plain.get(url, headers=headers | {"If-None-Match": etag, "Prefer": "wait=50"}).status_code


def test_from_nothing_to_a_signed_in_member_and_a_graceful_end(tmp_path: Path) -> None:
    """A server that is told to stop answers those who wait, and stops."""
    state = tmp_path / "state"
    placed = json.loads(bootstrap(state, "--no-two-factor", "--json").stdout)
    assert placed == {"organisation_id": 1, "workspace_id": 1, "role_id": 1, "user_id": 1}
    with serving(state) as (url, server):
        added = custody(
            "admin", "add-member", "--state", str(state), "--workspace-id", "1", "--email", "bob@example.org",
            "--first-name", "Bob", answer=f"{PASSWORD}\n",
        )  # fmt: skip
        place = "Signer (role 2) of workspace 1 in organisation 1"
        assert added.stdout == f"bob@example.org is user 2, {place}.\n"
        login = {"email": "alice@example.org", "password": PASSWORD}
        alice = httpx.post(f"{url}/auth/login", json=login).json()
        headers = {"Authorization": f"Bearer {alice['token']}"}
        rows = httpx.get(f"{url}/api/v1/get-users-from-workspace?workspace_id=1", headers=headers).json()
        assert [row["FirstName"]["String"] for row in rows] == ["", "Bob"]
        bob = httpx.post(f"{url}/auth/login", json={**login, "email": "bob@example.org"}).json()
        assert bob["requires_2FA"] is True
        assert len(list((state / "mail").glob("*.eml"))) == 1
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(poll, url, headers, asked := threading.Event())
            assert asked.wait(START_SECONDS)
            # The answer to another request says that the server has taken up the one before.
            assert httpx.get(f"{url}/api/v1/get-user-info", headers=headers).status_code == 200
            server.send_signal(signal.SIGTERM)
            assert server.wait(timeout=START_SECONDS) == 0
            # A poll that the server had to cut off, after ten seconds, has no answer.
            assert waiting.result(START_SECONDS) == 304
        logged = server.stderr.read() if server.stderr else ""
    lines = [json.loads(line) for line in logged.splitlines()]
    assert next(line["path"] for line in lines if line["event"] == "request") == "/auth/login"
    assert PASSWORD not in logged
    assert alice["token"] not in logged


def test_what_cannot_be_served_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that another server has, an address that others reach, a folder that cannot be, the
    embedded chain for several processes, and a Python for which the engine has no wheel.
    """
    with only_server(tmp_path):
        second = custody("serve", "--state", str(tmp_path), "--listen", "127.0.0.1:0")
    assert second.exit_code == Exit.STATE
    assert "Another server is running" in second.stderr
    answer = custody("serve", "--state", str(tmp_path), "--listen", "0.0.0.0:0")
    assert answer.exit_code == Exit.STATE
    assert "can be reached from other machines" in answer.stderr
    assert "--behind-proxy" in answer.stderr
    (tmp_path / "file").touch()
    refused = custody("serve", "--state", str(tmp_path / "file" / "state"), "--listen", "127.0.0.1:0")
    assert refused.exit_code == Exit.STATE
    assert "cannot be used" in refused.output
    assert "Traceback" not in refused.output
    for command in (["serve", "--no-workers", "--listen", "127.0.0.1:0"], ["worker"]):
        answer = custody(*command, "--state", str(tmp_path))
        assert answer.exit_code == Exit.STATE
        assert "The embedded chain lives in the one process" in answer.stderr
        assert "the page 'Several processes'" in answer.stderr
    monkeypatch.setitem(sys.modules, "pbk", None)
    answer = custody("serve", "--state", str(tmp_path), "--listen", "127.0.0.1:0")
    assert answer.exit_code == Exit.STATE
    assert answer.stderr.rstrip().endswith("uv tool install --python 3.13 'signerd[desktop,server]'")


def test_what_cannot_be_bootstrapped_is_explained_and_leaves_nothing(tmp_path: Path) -> None:
    for arguments, password, sentence in (
        (["--email", "nobody"], PASSWORD, "must be written like ada@"),
        (["--email", "alice@example.org"], "", "at least 12"),
        (["--email", "alice@example.org"], "a" * 12, "guessed too easily"),
        (["--email", "alice@example.org", "--organisation", " "], PASSWORD, "organisation's name"),
    ):
        answer = custody(*BOOTSTRAP, "--state", str(tmp_path), *arguments, answer=f"{password}\n")
        assert (answer.exit_code, sentence in answer.stderr) == (Exit.USAGE, True), sentence
    add = ("admin", "add-member", "--state", str(tmp_path), "--workspace-id", "1", "--email", "b@c.d")
    assert custody(*add, answer=f"{PASSWORD}\n").exit_code == Exit.NOT_DECIDED


def test_a_chain_without_a_backend_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Warning" not in bootstrap(tmp_path / "regtest").stderr
    mainnet = bootstrap(tmp_path / "one", "--chain", "mainnet")
    assert mainnet.exit_code == 0
    assert "no backend for mainnet" in mainnet.stderr
    assert "CUSTODY_CHAIN_MAINNET" in mainnet.stderr
    monkeypatch.setenv("CUSTODY_CHAIN_MAINNET", "esplora:https://explorer.example.org/api")
    assert "Warning" not in bootstrap(tmp_path / "two", "--chain", "mainnet").stderr


def test_what_an_operator_does_with_a_platform_that_was_bootstrapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state is the owner's alone; testnet means one thing; advice is for a person at a command line."""
    state = tmp_path / "state"
    assert bootstrap(state).exit_code == 0
    modes = {path.name: path.stat().st_mode & 0o777 for path in state.iterdir()}
    assert state.stat().st_mode & 0o777 == 0o700
    assert (modes["custody.db"], modes["mail"]) == (0o600, 0o700)

    other = bootstrap(state, "--organisation", "B", "--workspace", "M", "--chain", "signet")
    assert other.exit_code == Exit.NOT_DECIDED
    assert "testnet always means regtest" in other.stderr
    unknown = custody("admin", "reset-two-factor", "nobody@example.org", "--state", str(state))
    assert unknown.exit_code == Exit.NOT_DECIDED
    assert "workspace you name" not in unknown.output
    assert "--state" in unknown.output


def test_a_mistyped_folder_is_no_platform_whose_log_is_whole(tmp_path: Path) -> None:
    make = ("admin", "make-operator", "alice@example.org")
    for command in (("audit", "verify"), ("admin", "requests"), make):
        refused = custody(*command, "--state", str(tmp_path / "typo"))
        assert refused.exit_code == Exit.STATE
        assert "There is no platform in" in refused.output
    assert list(tmp_path.iterdir()) == []


def test_prints_the_openapi_document_and_leaves_the_database_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUSTODY_DATABASE_URL", sqlite_url(tmp_path / "other.db"))
    document = json.loads(custody("openapi").stdout)
    assert document["openapi"].startswith("3.1")
    assert "/auth/login" in document["paths"]
    assert not (tmp_path / "other.db").exists()
