"""deploy/compose.yaml, and what the units start and are told, compared with the code, without a container
engine. `test_containers.py` starts it.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click import Context

from custody.server.chain.configuration import read_sources
from custody.server.cli import app
from custody.server.settings import CREDENTIALS_DIR, Settings
from custody.server.web.listen import ListenAddress
from multisig import Network
from tests.deploy.test_units import FOLDER, HARDENING, PLATFORM, settings

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: SERVICES[name] for name in ("api-1", "api-2", "worker-1", "worker-2")}
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
STARTS = {name: settings((FOLDER / name).read_text())["ExecStart"][0].split()[1:] for name in PLATFORM}
STARTS |= {name: service["command"] for name, service in OURS.items()}
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


@pytest.fixture(params=OURS)
def service(request: pytest.FixtureRequest) -> dict[str, Any]:
    return OURS[request.param]


def test_has_the_shape_that_the_specification_gives() -> None:
    assert {key for key in COMPOSE if not key.startswith("x-")} == {"name", "services", "networks", "secrets"}
    for name, found in SERVICES.items():
        for key, value in found.items():
            assert isinstance(value, SERVICE[key]), f"{name}.{key}"
        assert "image" in found
        assert found["restart"] == "unless-stopped"
        for key in ("networks", "secrets"):
            assert set(found.get(key, ())) <= COMPOSE[key].keys()
        assert set(found.get("depends_on", ())) <= SERVICES.keys()
        assert all(isinstance(value, str) for value in found.get("environment", {}).values()), name
        check = found["healthcheck"]
        assert check["test"][0] == "CMD"
        spans = [found["stop_grace_period"], *(check[key] for key in ("interval", "timeout", "start_period"))]
        assert all(map(DURATION.fullmatch, spans))
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())


def test_two_answer_two_work_and_no_address_faces_the_world() -> None:
    assert [service["command"][0] for service in OURS.values()] == ["serve", "serve", "worker", "worker"]
    for found in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in found.get("ports", ()))
    assert COMPOSE["networks"]["inside"]["internal"] is True
    assert SERVICES["postgres"]["networks"] == ["inside"]


def test_what_a_process_may_do_is_little(service: dict[str, Any]) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    user, group = service["user"].split(":")
    assert int(user)
    assert f"USER {user}:{group}" in DOCKERFILE


def test_every_variable_is_a_setting(service: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given = service["environment"]
    chain = {name: value for name, value in given.items() if name.startswith("CUSTODY_CHAIN_")}
    known = {f"CUSTODY_{name.upper()}" for name in Settings.model_fields}
    assert not given.keys() - known - chain.keys() - OTHERS_VARIABLES - {CREDENTIALS_DIR}
    sources = read_sources(chain)
    assert list(sources) == [Network.MAINNET]
    assert not sources[Network.MAINNET].is_embedded
    for name, value in given.items():
        monkeypatch.setenv(name, re.sub(r"\$\{\w+:\?[^}]*\}", "given@example.org", value))
    monkeypatch.delenv(CREDENTIALS_DIR)
    assert str(Settings().state) == "/var/lib/custody"


def test_every_secret_is_a_file_and_a_setting() -> None:
    for found in SERVICES.values():
        for name in found.get("environment", {}):
            assert not re.search(r"(PASSWORD|SECRET|TOKEN|(?<!PUBLIC_)URL)$", name), name
    ours = {name for service in OURS.values() for name in service["secrets"]}
    told = settings(HARDENING.read_text())
    ours |= {line.split(":")[0] for line in told["LoadCredential"]}
    assert ours <= {f"custody_{name}" for name in Settings.model_fields}
    names = {pair.split("=")[0] for line in told["Environment"] for pair in line.split()}
    assert names == {"CUSTODY_STATE", CREDENTIALS_DIR}


@pytest.mark.parametrize("name", STARTS)
def test_every_command_and_option_is_one_and_metrics_stay_on_loopback(name: str) -> None:
    command, *options = STARTS[name]
    given = (
        app.get_command(Context(app), command).make_context(command, [*options, "--state", "/state"]).params
    )
    assert ListenAddress.parse(given["metrics"]).is_loopback
    assert ListenAddress.parse(given["listen" if command == "serve" else "health"])


def test_health_is_asked_where_the_process_answers(service: dict[str, Any]) -> None:
    (url,) = re.findall(r"http://[^']+", " ".join(service["healthcheck"]["test"]))
    command = service["command"]
    listens = command[command.index("--listen" if command[0] == "serve" else "--health") + 1]
    assert url == f"http://127.0.0.1:{listens.rpartition(':')[2]}/ready"


def test_the_node_has_what_the_platform_asks_of_it() -> None:
    """Its two indexes; and one network in common, so that its name leads to the address it answers on."""
    node = SERVICES["bitcoind"]
    assert {"-txindex=1", "-blockfilterindex=1"} <= set(node["command"])
    for found in OURS.values():
        assert set(node["networks"]) & set(found["networks"]) == {"inside"}


def test_the_image_is_built_from_what_is_locked() -> None:
    for line in (line for line in DOCKERFILE.splitlines() if " install " in line):
        assert "--require-hashes" in line or "--no-deps" in line, line
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        for path in copied.split():
            assert (ROOT / path).exists(), path
