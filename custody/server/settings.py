"""The platform's settings. A command that asks a running server reads them without the server's modules."""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, SecretStr
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
)

from custody.server.service.jobs.leases import LEASE
from custody.server.service.jobs.workers import JOB_THREADS
from custody.server.service.mail.mailer import SENDER
from custody.server.service.requests.rates import CALLS_PER_MINUTE, WRITES_PER_MINUTE
from custody.server.store import sqlite_url

if TYPE_CHECKING:
    from custody.server.chain.configuration import ChainSource

# A folder whose files are settings, each named as its variable in small letters: what containers and systemd
# call secrets.
CREDENTIALS_DIR = "CUSTODY_CREDENTIALS_DIR"


class Settings(BaseSettings):
    """From the command line, the environment (``CUSTODY_…``), or the files of ``CUSTODY_CREDENTIALS_DIR``;
    the first counts.
    """

    # A mistake in one setting must not show the others: one of them may hold a password (P49).
    model_config = SettingsConfigDict(env_prefix="CUSTODY_", hide_input_in_errors=True)

    state: Path
    # What the server writes about itself: from this level on.
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    # sqlite:///… or postgresql://…; a file in the state folder where it is not given.
    database_url: SecretStr | None = None
    # Registering a key without proving its possession is for an operator who checks by other means.
    require_key_proof: bool = True
    # Who may make an account by themselves: anybody, or those alone whose address has an open invitation.
    registration: Literal["open", "invited"] = "open"
    broadcast_wait_seconds: float = 3.0
    # Of one signed-in person, in each process: all calls, and those that change something.
    calls_per_minute: Annotated[int, Field(ge=1)] = CALLS_PER_MINUTE
    writes_per_minute: Annotated[int, Field(ge=1)] = WRITES_PER_MINUTE

    # Jobs that a process with workers does at once, of each kind of work.
    worker_threads: Annotated[int, Field(ge=1, le=64)] = JOB_THREADS
    # How long others wait for a process that was killed before they take over what it did.
    lease_seconds: Annotated[float, Field(ge=1, le=600)] = LEASE.total_seconds()
    # Whether the process that answers requests has workers, too: `custody serve --no-workers`.
    with_workers: bool = True

    # Where several servers are to share one copy; else it is in the state folder.
    secrets_file: Path | None = None
    # Where the audit log's checkpoints go; better on a disk that the database's owner cannot write.
    checkpoint_file: Path | None = None

    # A CSV file of what a bitcoin was worth on each day, for vaults' histories: docs/operate/history.md.
    rates_file: Path | None = None

    # Without a mail server, mails are files in the state folder.
    smtp_host: str | None = None
    smtp_port: int | None = Field(default=None, ge=1, le=65_535)
    smtp_username: str | None = None
    smtp_password: SecretStr | None = None
    smtp_tls: Literal["starttls", "tls", "none"] = "starttls"
    # A private authority for the mail server's certificate, instead of the usual ones.
    smtp_ca_file: Path | None = None
    mail_from: str = SENDER
    # Where people's own page is, for links in mails; without it a mail says in words what to do.
    public_url: str | None = None

    # Hosts, with commas between them, that webhooks may call though they are no public names or have private
    # addresses; and a private authority for their certificates, beside the usual ones. Every member who may
    # make webhooks can then reach them.
    webhook_allow: str = ""
    webhook_ca_file: Path | None = None
    # The same for identity providers: hosts inside that an organisation's owner may name, each at one port
    # (443, or as host:port), and an authority.
    identity_allow: Annotated[
        str, Field(pattern=r"^(\s*[^\s:,]+(:[1-9][0-9]{0,4})?\s*(,\s*[^\s:,]+(:[1-9][0-9]{0,4})?\s*)*)?$")
    ] = ""
    identity_ca_file: Path | None = None

    # Whose signed advisories are taken: publishers' keys (x-only, in hex) with commas between them.
    advisory_keys: Annotated[str, Field(pattern=r"^([0-9a-f]{64}(,[0-9a-f]{64})*)?$")] = ""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - no file of a working folder is read
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - which folder, the environment says
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Raises NotADirectoryError: without its password file a platform would begin another, empty
        database.
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
    def trusted_publishers(self) -> frozenset[str]:
        return frozenset(filter(None, self.advisory_keys.split(",")))

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
        """The database's URL, password and all."""
        given = self.database_url
        return sqlite_url(self.sqlite_file) if given is None else given.get_secret_value()

    @property
    def sqlite_file(self) -> Path:
        """The database where no other one is named."""
        return self.state / "custody.db"

    @property
    def secrets_path(self) -> Path:
        return self.secrets_file or self.state / "secrets.json"

    @property
    def mail_folder(self) -> Path:
        return self.state / "mail"


def _hosts(text: str) -> frozenset[str]:
    return frozenset(host.strip().lower() for host in text.split(",") if host.strip())


def _chains_in_files() -> dict[str, str]:
    """Each file's name as the variable's: a node's password belongs there, and a chain that was overlooked
    would be another.
    """
    from custody.server.chain.configuration import PREFIX

    folder = os.environ.get(CREDENTIALS_DIR)
    found = Path(folder).glob(f"{PREFIX.lower()}*") if folder else ()
    return {path.name.upper(): path.read_text(encoding="utf-8").strip() for path in found}


def utc_now() -> datetime:
    return datetime.now(UTC)
