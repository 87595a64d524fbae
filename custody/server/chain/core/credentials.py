"""Who we are to the node: the cookie that it writes at each start, or a user of its `rpcauth`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from custody.server.domain.errors import ChainUnavailable

# A cookie is "__cookie__:" and 64 hexadecimal digits.
MAX_COOKIE_BYTES = 1_024


class Credentials(Protocol):
    """What HTTP's basic authentication asks for (RFC 7617)."""

    def read(self) -> tuple[str, str]:
        """User and password as they are now. Raises ChainUnavailable."""
        ...

    @property
    def hint(self) -> str:
        """What to look at where the node refuses them."""
        ...


@dataclass(frozen=True)
class Password:
    """A user of the node's `rpcauth`."""

    user: str
    password: SecretStr = field(repr=False)
    hint: str = "Compare user and password with the node's rpcauth line."

    def read(self) -> tuple[str, str]:
        return self.user, self.password.get_secret_value()


@dataclass(frozen=True)
class CookieFile:
    """The node's cookie file, which is another one after each of its starts."""

    path: Path
    hint: str = "Check that the cookie file is this node's."

    def read(self) -> tuple[str, str]:
        try:
            with self.path.open("rb") as file:
                content = file.read(MAX_COOKIE_BYTES + 1)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ChainUnavailable(
                f"The node's cookie file cannot be read ({reason}). Check that the node runs, and that this "
                "program's user may read it (rpccookieperms=group)."
            ) from error
        user, colon, password = content.decode("latin-1").strip().partition(":")
        if not colon or not user or len(content) > MAX_COOKIE_BYTES:
            raise ChainUnavailable("The node's cookie file does not hold a cookie.")
        return user, password
