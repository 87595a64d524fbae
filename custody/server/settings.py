"""The platform's settings. Commands that ask a running server read them without loading the server."""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
)

from custody.server.rules.defaults import CALLS_PER_MINUTE, LEASE, WRITES_PER_MINUTE
from custody.server.store import sqlite_url

if TYPE_CHECKING:
    from custody.server.chain.configuration import ChainSource

# A folder of files, each named like its variable in lower case, as containers and systemd provide secrets.
CREDENTIALS_DIR = "CUSTODY_CREDENTIALS_DIR"


def _signable(url: str) -> str:
    from custody.schemas.keys import MAX_HOST_CHARACTERS, signed_host

    if len(signed_host(url)) > MAX_HOST_CHARACTERS:
        raise ValueError(f"devices sign a host of {MAX_HOST_CHARACTERS} characters at most")
    return url


class Settings(BaseSettings):
    """From the command line, the environment (``CUSTODY_…``), or the files of ``CUSTODY_CREDENTIALS_DIR``;
    the first counts.
    """

    # An error in one setting must not show the values of others: one may hold a password (P49).
    model_config = SettingsConfigDict(env_prefix="CUSTODY_", hide_input_in_errors=True)

    state: Path
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    # sqlite:///… or postgresql://…; default: a file in the state folder.
    database_url: SecretStr | None = None
    # Who may register: anybody, or only addresses with an open invitation.
    registration: Literal["open", "invited"] = "open"
    broadcast_wait_seconds: float = 3.0
    # For each signed-in user and process: all calls, and those that write.
    calls_per_minute: Annotated[int, Field(ge=1)] = CALLS_PER_MINUTE
    writes_per_minute: Annotated[int, Field(ge=1)] = WRITES_PER_MINUTE

    # Jobs that a process with workers does at once, of each kind of work.
    worker_threads: Annotated[int, Field(ge=1, le=64)] = 4
    # How long other processes wait before they take over the work of one that was killed.
    lease_seconds: Annotated[float, Field(ge=1, le=600)] = LEASE.total_seconds()
    # Whether the process that answers requests has workers, too: `custody serve --no-workers`.
    with_workers: bool = True

    # For several servers that share it; default: in the state folder.
    secrets_file: Path | None = None
    # The audit log's checkpoints, best on a disk that the database's owner cannot write.
    checkpoint_file: Path | None = None

    # Without a mail server, mails are files in the state folder.
    smtp_host: str | None = None
    smtp_port: int | None = Field(default=None, ge=1, le=65_535)
    smtp_username: str | None = None
    smtp_password: SecretStr | None = None
    smtp_tls: Literal["starttls", "tls", "none"] = "starttls"
    # A private authority for the mail server's certificate, instead of the usual ones.
    smtp_ca_file: Path | None = None
    mail_from: str = "custody@localhost"
    # The address of the console and the API, for links in mails and in the line that a device signs to
    # register; without it mails have no links, and keys are registered from this machine alone.
    public_url: Annotated[str, AfterValidator(_signable)] | None = None

    # Hosts, separated by commas, that webhooks may call although they have no public name or a private
    # address: every member who may make webhooks can then reach them. And a private certificate authority for
    # them, beside the usual ones.
    webhook_allow: str = ""
    webhook_ca_file: Path | None = None
    # The same for identity providers: internal hosts that an organisation's owner may name, each at one port
    # (443, or as host:port), and a certificate authority.
    identity_allow: Annotated[
        str, Field(pattern=r"^(\s*[^\s:,]+(:[1-9][0-9]{0,4})?\s*(,\s*[^\s:,]+(:[1-9][0-9]{0,4})?\s*)*)?$")
    ] = ""
    identity_ca_file: Path | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - no file of a working folder is read
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - which folder, the environment says
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Raises NotADirectoryError: without the file of its database's password a platform would start with
        a new, empty database.
        """
        folder = os.environ.get(CREDENTIALS_DIR)
        if not folder:
            return init_settings, env_settings
        if not Path(folder).is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
        return init_settings, env_settings, SecretsSettingsSource(settings_cls, folder)

    @property
    def webhook_hosts(self) -> frozenset[str]:
        return _hosts(self.webhook_allow)

    @property
    def identity_hosts(self) -> frozenset[str]:
        """Each with its port."""
        return frozenset(host if ":" in host else f"{host}:443" for host in _hosts(self.identity_allow))

    @property
    def chains(self) -> "tuple[ChainSource, ...]":
        """By CUSTODY_CHAIN_MAINNET and its like, in the environment or in files. Raises
        ChainMisconfigured.
        """
        from custody.server.chain.configuration import read_sources

        return tuple(read_sources(_chains_in_files() | dict(os.environ)).values())

    @property
    def chain_folder(self) -> Path:
        return self.state / "chain"

    @property
    def database(self) -> str:
        """The database's URL, including the password."""
        given = self.database_url
        return sqlite_url(self.sqlite_file) if given is None else given.get_secret_value()

    @property
    def sqlite_file(self) -> Path:
        """The default database."""
        return self.state / "custody.db"


def _hosts(text: str) -> frozenset[str]:
    return frozenset(host.strip().lower() for host in text.split(",") if host.strip())


def _chains_in_files() -> dict[str, str]:
    """Settings of chains in files named like their variables: a node's password belongs there, and a setting
    that is overlooked would leave the platform on another chain.
    """
    from custody.server.chain.configuration import PREFIX

    folder = os.environ.get(CREDENTIALS_DIR)
    files = Path(folder).glob(f"{PREFIX.lower()}*") if folder else ()
    return {path.name.upper(): path.read_text(encoding="utf-8").strip() for path in files}


def utc_now() -> datetime:
    return datetime.now(UTC)
