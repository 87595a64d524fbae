"""One call to the desktop's keyring, in a process of its own: ``get|set|delete SERVICE ACCOUNT``.
The secret is read from stdin or written to stdout. Only the listed keyrings are accepted: none of the null or
failing backends, and none that stores plain text.
"""

import sys

import keyring
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError

REAL_KEYRINGS = (
    "keyring.backends.SecretService",
    "keyring.backends.libsecret",
    "keyring.backends.kwallet",
    "keyring.backends.macOS",
)


def real_keyring() -> KeyringBackend | None:
    """The best keyring of this desktop that is on the list."""
    usable = [
        backend
        for backend in keyring.backend.get_all_keyring()
        if type(backend).__module__.startswith(REAL_KEYRINGS) and backend.priority > 0
    ]
    return max(usable, key=lambda backend: backend.priority, default=None)


def main(verb: str, service: str, account: str) -> int:
    backend = real_keyring()
    if backend is None:
        sys.stderr.write("this desktop has no keyring\n")
        return 3
    try:
        if verb == "get":
            sys.stdout.write(backend.get_password(service, account) or "")
        elif verb == "set":
            backend.set_password(service, account, sys.stdin.read())
        elif backend.get_password(service, account) is not None:
            backend.delete_password(service, account)
    except KeyringError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 4
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:4]))
