"""deploy/compose.yaml compared with the code, without a container engine.
`test_containers.py` starts it.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from custody.server.chain.configuration import read_sources
from custody.server.cli import app
from custody.server.settings import CREDENTIALS_DIR, Settings
from custody.server.web.listen import ListenAddress
from multisig import Network

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "compose.yaml"
OURS = ("api-1", "api-2", "worker-1", "worker-2")
# Of the Compose specification's service, what this file uses, with its shape.
SERVICE: dict[str, type | tuple[type, ...]] = {
    "image": str, "build": dict, "user": str, "read_only": bool, "tmpfs": list, "cap_drop": list,
    "security_opt": list, "restart": str, "init": bool, "stop_grace_period": str, "mem_limit": str,
    "pids_limit": int, "environment": dict, "secrets": list, "networks": list, "volumes": list,
    "depends_on": dict, "logging": dict, "command": list, "healthcheck": dict, "ports": list,
    "entrypoint": list, "shm_size": str,
}  # fmt: skip
DURATION = re.compile(r"\d+(ms|s|m|h)")
# A setting of the server below uvicorn, not ours.
OTHERS_VARIABLES = {"FORWARDED_ALLOW_IPS"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text())


@pytest.fixture(params=OURS)
def service(request: pytest.FixtureRequest, compose: dict[str, Any]) -> dict[str, Any]:
    return compose["services"][request.param]


def test_has_the_shape_that_the_specification_gives(compose: dict[str, Any]) -> None:
    assert {key for key in compose if not key.startswith("x-")} == {"name", "services", "networks", "secrets"}
    for name, found in compose["services"].items():
        for key, value in found.items():
            assert isinstance(value, SERVICE[key]), f"{name}.{key}"
        assert "image" in found
        assert found["restart"] == "unless-stopped"
        assert set(found["networks"]) <= compose["networks"].keys()
        assert set(found.get("secrets", ())) <= compose["secrets"].keys()
        assert set(found.get("depends_on", ())) <= compose["services"].keys()
        assert all(isinstance(value, str) for value in found.get("environment", {}).values()), name
        check = found["healthcheck"]
        assert check["test"][0] == "CMD"
        for key in ("interval", "timeout", "start_period"):
            assert DURATION.fullmatch(check[key])
        assert DURATION.fullmatch(found["stop_grace_period"])
    assert all(set(secret) == {"file"} for secret in compose["secrets"].values())


def test_two_answer_two_work_and_no_address_faces_the_world(compose: dict[str, Any]) -> None:
    commands = [compose["services"][name]["command"][0] for name in OURS]
    assert commands == ["serve", "serve", "worker", "worker"]
    for found in compose["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in found.get("ports", ()))
    assert compose["networks"]["inside"]["internal"] is True
    assert compose["services"]["postgres"]["networks"] == ["inside"]


def test_what_a_process_may_do_is_little(service: dict[str, Any]) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    user, group = service["user"].split(":")
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    assert int(user)
    assert f"USER {user}:{group}" in dockerfile


def test_every_variable_is_a_setting(service: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {f"CUSTODY_{name.upper()}" for name in Settings.model_fields}
    chain = {
        name: value for name, value in service["environment"].items() if name.startswith("CUSTODY_CHAIN_")
    }
    unknown = service["environment"].keys() - settings - chain.keys() - OTHERS_VARIABLES - {CREDENTIALS_DIR}
    assert not unknown
    sources = read_sources(chain)
    assert list(sources) == [Network.MAINNET]
    assert not sources[Network.MAINNET].is_embedded
    for name, value in service["environment"].items():
        monkeypatch.setenv(name, re.sub(r"\$\{\w+:\?[^}]*\}", "given@example.org", value))
    monkeypatch.delenv(CREDENTIALS_DIR)
    assert str(Settings().state) == "/var/lib/custody"


def test_no_secret_stands_in_the_file(compose: dict[str, Any]) -> None:
    """Settings that are secret come from files, and each of those files is a setting."""
    for found in compose["services"].values():
        for name in found.get("environment", {}):
            assert not re.search(r"(PASSWORD|SECRET|TOKEN|(?<!PUBLIC_)URL)$", name), name
    ours = {name for name in OURS for name in compose["services"][name]["secrets"]}
    assert ours <= {f"custody_{name}" for name in Settings.model_fields}


def test_every_command_and_option_is_one(service: dict[str, Any]) -> None:
    (name, *rest) = service["command"]
    command = app.commands[name]
    options = {option: found for found in command.params for option in (*found.opts, *found.secondary_opts)}
    position = 0
    while position < len(rest):
        found = options[rest[position]]
        position += 1 if found.is_flag else 2
        if not found.is_flag:
            ListenAddress.parse(rest[position - 1])


def test_health_is_asked_where_the_process_answers(service: dict[str, Any]) -> None:
    (url,) = re.findall(r"http://[^']+", " ".join(service["healthcheck"]["test"]))
    command = service["command"]
    listens = command[command.index("--listen" if command[0] == "serve" else "--health") + 1]
    assert url == f"http://127.0.0.1:{listens.rpartition(':')[2]}/ready"


def test_the_node_has_what_the_platform_asks_of_it(compose: dict[str, Any]) -> None:
    """Its two indexes; and one network in common, so that its name leads to the address it answers on."""
    node = compose["services"]["bitcoind"]
    assert {"-txindex=1", "-blockfilterindex=1"} <= set(node["command"])
    for name in OURS:
        assert set(node["networks"]) & set(compose["services"][name]["networks"]) == {"inside"}


def test_metrics_stay_on_loopback(service: dict[str, Any]) -> None:
    command = service["command"]
    assert ListenAddress.parse(command[command.index("--metrics") + 1]).is_loopback


def test_the_image_is_built_from_what_is_locked() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    for line in (line for line in text.splitlines() if " install " in line):
        assert "--require-hashes" in line or "--no-deps" in line, line
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        for path in copied.split():
            assert (ROOT / path).exists(), path
