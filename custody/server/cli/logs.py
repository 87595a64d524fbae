"""The log of a server process: words at a terminal, else a JSON object per line; the first has its
configuration.
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final

import structlog
from pydantic import SecretStr
from sqlalchemy import make_url

from custody._version import __version__
from custody.common.text import plain
from custody.server.settings import Settings

log = structlog.get_logger()

# Text settings that hold no secret. Of any other text the log says only whether it is set (P49).
SHOWN_TEXTS: Final = frozenset({"log_level", "mail_from", "public_url", "smtp_host", "smtp_tls"})
SET: Final = "(set)"
NO_PUBLIC_URL: Final = (
    "mails have no links; passkeys and identity providers are off; only this machine registers keys"
)


def begin_log(level: str) -> None:
    """On the standard error."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            in_words if sys.stderr.isatty() else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def in_words(_logger: Any, _method: str, said: MutableMapping[str, Any]) -> str:
    """A line for a person, which no value can end; those of an exception follow it."""
    when, level, event = said.pop("timestamp")[11:19], said.pop("level"), said.pop("event")
    trace = said.pop("exception", "").splitlines()
    fields = ", ".join(f"{name} {value}" for name, value in said.items())
    return "\n".join(map(plain, (f"{when} {level}: {event}. {fields}", *trace)))


def log_start(command: str, settings: Settings) -> None:
    """Raises ChainMisconfigured."""
    log.info(
        "starting",
        command=command,
        version=__version__,
        database=make_url(settings.database).get_backend_name(),
        chains={source.network.value: str(source.kind) for source in settings.chains},
        settings=shown(settings),
    )
    if not settings.public_url:
        log.warning("no public address", setting="CUSTODY_PUBLIC_URL", reason=NO_PUBLIC_URL)


def shown(settings: Settings) -> dict[str, Any]:
    """Every setting that is given, without values that may be secret."""
    given = {name: getattr(settings, name) for name in type(settings).model_fields}
    return {name: _shown(name, value) for name, value in given.items() if value not in (None, "")}


def _shown(name: str, value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, SecretStr) or (isinstance(value, str) and name not in SHOWN_TEXTS):
        return SET
    return str(value) if name in SHOWN_TEXTS or not isinstance(value, dict | list | tuple) else SET
