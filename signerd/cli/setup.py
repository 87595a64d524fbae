"""What a first sign-in and every start need: the configuration, written and found, and the secret store, opened."""

import json
import os
from pathlib import Path

from signerd.account.config import FILE, Config, find_config, load_config
from signerd.account.secrets import SECRETS_FILE, SecretStore, credential_passphrase
from signerd.app import secret_store
from signerd.cli.answers import Answers
from signerd.errors import AlreadyConfigured, ConfigInvalid
from signerd.journal.storage import make_private, write_private


def write_config(
    state: Path, *, platform: str, network: str, endpoints: list[str], label: str | None, secrets: str
) -> Config:
    """Write ``config.toml`` into the state folder, checked; one that says the same is left alone.

    Raises:
        ConfigInvalid: a value cannot be. AlreadyConfigured: there is one that says something else. Leaves of
        JournalError: the folder cannot be used.
    """
    make_private(state)
    path, text = state / FILE, _text(platform, network, endpoints, label, secrets)
    if path.exists():
        return _same_or_refuse(path, platform, network)
    write_private(path, text.encode())
    try:
        return load_config(path)
    except ConfigInvalid:
        path.unlink()
        raise


def _same_or_refuse(path: Path, platform: str, network: str) -> Config:
    known = load_config(path)
    if (known.platform.url, str(known.network)) != (platform, network):
        raise AlreadyConfigured(f"{path} names {known.platform.url} on {known.network}")
    return known


def require_endpoints(state: Path, endpoints: list[str]) -> None:
    """Refuse a device that the configuration does not name: it would not be looked for.

    Raises:
        AlreadyConfigured: with what it names instead. ConfigMissing, ConfigInvalid: there is none that can be read.
    """
    path = find_config(state)
    known = load_config(path).devices.endpoints
    unknown = [endpoint for endpoint in endpoints if endpoint not in known]
    if unknown:
        named = f"the device {', '.join(known)}" if known else "no device but those on USB"
        raise AlreadyConfigured(
            f"{path} names {named}, and not {', '.join(unknown)}",
            hint="Change `endpoints` under [devices] in that file and start signerd again, or use another state folder: `--state DIR`.",
        )


def _text(platform: str, network: str, endpoints: list[str], label: str | None, secrets: str) -> str:
    lines = [f"network = {_quoted(network)}"]
    if label is not None:
        lines.append(f"label = {_quoted(label)}")
    lines += ["", "[platform]", f"url = {_quoted(platform)}", "", "[secrets]", f"store = {_quoted(secrets)}"]
    if endpoints:
        listed = ", ".join(_quoted(endpoint) for endpoint in endpoints)
        lines += ["", "[devices]", f"endpoints = [{listed}]"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A JSON string that is not forced into ASCII is a TOML basic string, but for the one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def opened_store(config: Config, state: Path, answers: Answers) -> SecretStore:
    """As configured. Raises SecretsLocked where a passphrase is wrong, AnswerMissing where nobody gives one."""
    if config.secrets.store != "file" or _handed_over():
        return secret_store(config, state, lambda: None)
    fresh = not (state / SECRETS_FILE).exists()
    question = "Choose a passphrase for the secrets file" if fresh else "Passphrase of the secrets file"
    given = answers.secret(question, fresh=fresh)
    store = secret_store(config, state, lambda: given)
    store.load()
    return store


def _handed_over() -> bool:
    return credential_passphrase(os.environ.get("CREDENTIALS_DIRECTORY")) is not None
