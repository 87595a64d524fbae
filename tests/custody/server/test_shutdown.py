"""A server that is told to stop answers those who wait, and stops."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from custody.client import Client
from tests.support.cluster import until

START_SECONDS = 180
MODULE = [sys.executable, "-m", "custody.server"]
ACCOUNT = ("owner@vault.example", "a long enough password")


@pytest.fixture
def served(tmp_path: Path):
    state, port_file = tmp_path / "state", tmp_path / "port"
    bootstrap = ["admin", "bootstrap", "--organisation", "O", "--workspace", "W", "--chain", "regtest"]
    subprocess.run(
        [*MODULE, *bootstrap, "--email", ACCOUNT[0], "--no-two-factor", "--state", state],
        input=ACCOUNT[1] + "\n",
        text=True,
        check=True,
        capture_output=True,
    )
    serving = subprocess.Popen(
        [*MODULE, "serve", "--state", state, "--listen", "127.0.0.1:0", "--port-file", port_file],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(port_file.exists, "the server does not start")
        yield serving, f"http://127.0.0.1:{port_file.read_text().strip()}"
    finally:
        serving.kill()
        serving.wait()


def test_a_long_poll_ends_at_once_when_the_server_stops(served):
    serving, url = served
    statuses: list[int] = []
    with Client(url) as owner:
        owner.login(*ACCOUNT)
        etag = owner.proposals(1).etag
        assert etag is not None
        assert owner.core.session is not None
        headers = {"Authorization": f"Bearer {owner.core.session.access_token}"}
        headers |= {"If-None-Match": etag, "Prefer": "wait=50"}
        asked = threading.Event()

        def poll() -> None:
            with httpx.Client(event_hooks={"request": [lambda _request: asked.set()]}) as plain:
                answer = plain.get(
                    f"{url}/api/v1/psbt", params={"workspace_id": 1}, headers=headers, timeout=60
                )
                statuses.append(answer.status_code)

        waiting = threading.Thread(target=poll)
        waiting.start()
        asked.wait(START_SECONDS)
        # The answer to another request says that the server has taken up the one before.
        owner.user_info()
        os.kill(serving.pid, signal.SIGTERM)
        # A poll that the server had to cut off, after ten seconds, has no answer.
        assert serving.wait(timeout=START_SECONDS) == 0
        waiting.join(START_SECONDS)
    assert statuses == [304]
