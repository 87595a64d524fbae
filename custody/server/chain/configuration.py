"""Which backend serves each network: configuration alone decides, and nothing is inferred.

``CUSTODY_CHAIN_MAINNET`` (``_TESTNET4``, ``_SIGNET``, ``_REGTEST``) is ``bitcoind:http://127.0.0.1:8332``,
``esplora:https://…`` or ``embedded``; what else a node needs stands in variables that begin with that name.
Where none is set, the platform has the embedded regtest chain, which may also stand for a signet (ADR 6). See
docs/operate/chain.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from custody.common.exchange import is_loopback
from custody.server.chain.core import CookieFile, CoreBackend, Credentials, Password
from custody.server.chain.embedded import EmbeddedChain
from custody.server.chain.esplora import EsploraBackend
from custody.server.chain.esplora.wire import check_url
from custody.server.errors import Misconfigured
from multisig.network import Network

PREFIX = "CUSTODY_CHAIN_"
TOKENS_FROM, BLOCK_SECONDS = "TOKENS_FROM", "BLOCK_SECONDS"
MAX_HEIGHT_DIGITS = 8
MAX_BLOCK_SECONDS = 3_600
# Bitcoin Core's ports for RPC (chainparamsbase.cpp).
RPC_PORTS = {Network.MAINNET: 8332, Network.TESTNET4: 48332, Network.SIGNET: 38332, Network.REGTEST: 18443}


class BackendKind(StrEnum):
    """The first word of a setting. A match over it has no default: mypy names one that misses a kind."""

    EMBEDDED = "embedded"
    BITCOIND = "bitcoind"
    ESPLORA = "esplora"


# Backends with a URL, which may index tokens.
REMOTE = tuple(kind for kind in BackendKind if kind is not BackendKind.EMBEDDED)
REMOTE_WORDS = " or ".join(f"{kind}:…" for kind in REMOTE)
# Which of them take an option.
OPTIONS: Mapping[str, tuple[BackendKind, ...]] = {
    **dict.fromkeys(
        ("COOKIE_FILE", "USER", "PASSWORD", "FIRST_HEIGHT", "ALLOW_HTTP"), (BackendKind.BITCOIND,)
    ),
    TOKENS_FROM: REMOTE,
    BLOCK_SECONDS: (BackendKind.EMBEDDED,),
}
OpenBackend = EmbeddedChain | CoreBackend | EsploraBackend


class ChainMisconfigured(Misconfigured):
    """An invalid setting. Messages repeat no value: it may hold a password (P49)."""

    def __init__(self, sentence: str) -> None:
        hint = "Correct it and start again. The page 'The chain' of the documentation has the settings."
        super().__init__(sentence, hint)


@dataclass(frozen=True)
class ChainSource:
    """How one network is reached. `credentials` are a node's; a URL of an explorer may hold a key.

    `tokens_from`: the first block that the tokens' index reads; None: the tip when it first looks.
    `block_seconds`: of an embedded chain, which mines so often where something waits; None: on request alone.
    """

    network: Network
    kind: BackendKind
    url: SecretStr
    credentials: Credentials | None = field(default=None, repr=False)
    first_height: int = 0
    tokens_from: int | None = None
    block_seconds: int | None = None

    @property
    def is_embedded(self) -> bool:
        return self.kind is BackendKind.EMBEDDED


# A signet is its operator's own chain (BIP-325), so a private one is legitimate; devices show its addresses
# as the platform does.
EMBEDDABLE = (Network.REGTEST, Network.SIGNET)
EMBEDDED_REGTEST = ChainSource(Network.REGTEST, BackendKind.EMBEDDED, SecretStr(""))


def read_sources(environment: Mapping[str, str]) -> dict[Network, ChainSource]:
    """Every network that is configured; the embedded regtest chain where none is. Raises
    ChainMisconfigured.
    """
    given = {name.upper(): value for name, value in environment.items() if name.upper().startswith(PREFIX)}
    _require_known(given)
    sources = (_read_source(network, given) for network in Network)
    by_network = {source.network: source for source in sources if source is not None}
    if sum(source.is_embedded for source in by_network.values()) > 1:
        raise ChainMisconfigured("Only one network can be embedded.")
    return by_network or {Network.REGTEST: EMBEDDED_REGTEST}


def open_backend(source: ChainSource, *, folder: Path, clock: Callable[[], float]) -> OpenBackend:
    """Sends nothing yet: the server also starts while a node is down. The embedded chain is in `folder`.
    Raises ChainUnavailable where another program uses that.
    """
    url = source.url.get_secret_value()
    match source.kind:
        case BackendKind.BITCOIND:
            assert source.credentials is not None
            return CoreBackend(source.network, url, source.credentials, first_height=source.first_height)
        case BackendKind.ESPLORA:
            return EsploraBackend(url, source.network)
        case BackendKind.EMBEDDED:
            return EmbeddedChain(folder, clock=clock, network=source.network)


def _require_known(given: Mapping[str, str]) -> None:
    """A misspelt name would leave the platform on another chain than the operator meant."""
    networks = [f"{PREFIX}{network.name}" for network in Network]
    known = {*networks, *(f"{name}_{option}" for name in networks for option in OPTIONS)}
    for name in sorted(given.keys() - known):
        raise ChainMisconfigured(f"{name} is not a setting. The networks are {', '.join(networks)}.")


def _read_source(network: Network, given: Mapping[str, str]) -> ChainSource | None:
    name = f"{PREFIX}{network.name}"
    options = {option: given.get(f"{name}_{option}", "") for option in OPTIONS}
    word, _, address = given.get(name, "").strip().partition(":")
    if word not in {"", *BackendKind}:
        raise ChainMisconfigured(f"{name} begins with {REMOTE_WORDS}, or is the word embedded.")
    for option, kinds in OPTIONS.items():
        if options[option] and word not in kinds:
            values = " or ".join(f"{kind}:…" if kind in REMOTE else kind for kind in kinds)
            raise ChainMisconfigured(f"{name}_{option} belongs to {name}={values}, which is not set.")
    if not word:
        return None
    match BackendKind(word):
        case BackendKind.EMBEDDED:
            return _embedded(network, name, address, options[BLOCK_SECONDS])
        case BackendKind.ESPLORA:
            try:
                check_url(address)
            except ValueError as error:
                raise ChainMisconfigured(f"{name}: {error}") from None
            tokens_from = _height(name, TOKENS_FROM, options)
            return ChainSource(network, BackendKind.ESPLORA, SecretStr(address), tokens_from=tokens_from)
        case BackendKind.BITCOIND:
            url = _rpc_url(network, name, address, options["ALLOW_HTTP"])
            return ChainSource(
                network,
                BackendKind.BITCOIND,
                SecretStr(url),
                _credentials(name, options),
                _height(name, "FIRST_HEIGHT", options) or 0,
                _height(name, TOKENS_FROM, options),
            )


def _embedded(network: Network, name: str, address: str, seconds: str) -> ChainSource:
    if network not in EMBEDDABLE or address:
        raise ChainMisconfigured(
            f"{name} cannot be embedded: the embedded chain is regtest or a signet of its own, and has no "
            "address."
        )
    if seconds not in {"", *map(str, range(1, MAX_BLOCK_SECONDS + 1))}:
        raise ChainMisconfigured(f"{name}_{BLOCK_SECONDS} is a number from 1 to {MAX_BLOCK_SECONDS}.")
    block_seconds = int(seconds) if seconds else None
    return ChainSource(network, BackendKind.EMBEDDED, SecretStr(""), block_seconds=block_seconds)


def _height(name: str, option: str, options: Mapping[str, str]) -> int | None:
    given = options[option]
    if not given:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) <= MAX_HEIGHT_DIGITS):
        raise ChainMisconfigured(f"{name}_{option} is the height of a block.")
    return int(given)


def _credentials(name: str, options: Mapping[str, str]) -> Credentials:
    cookie, user, password = options["COOKIE_FILE"], options["USER"], options["PASSWORD"]
    if cookie and not (user or password):
        return CookieFile(Path(cookie))
    if user and password and not cookie and ":" not in user:
        return Password(user, SecretStr(password))
    raise ChainMisconfigured(f"{name} needs {name}_COOKIE_FILE, or both {name}_USER and {name}_PASSWORD.")


def _rpc_url(network: Network, name: str, address: str, allows_http: str) -> str:
    if allows_http not in {"", "yes"}:
        raise ChainMisconfigured(f"{name}_ALLOW_HTTP is yes, or is not set.")
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or RPC_PORTS[network]
    except ValueError:
        raise ChainMisconfigured(f"{name} does not hold a URL after bitcoind:.") from None
    if parts.username is not None or parts.password is not None:
        raise ChainMisconfigured(f"{name} holds a password: it belongs into {name}_PASSWORD.")
    has_more = parts.path not in {"", "/"} or parts.query or parts.fragment
    if parts.scheme not in {"http", "https"} or not host or has_more:
        raise ChainMisconfigured(
            f"{name} is bitcoind: and a node's RPC address, such as http://127.0.0.1:8332."
        )
    if parts.scheme == "http" and not is_loopback(host) and not allows_http:
        raise ChainMisconfigured(
            f"{name} would send the node's password over the network without encryption. Use https or a "
            f"tunnel, or set {name}_ALLOW_HTTP=yes if the network is your own."
        )
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
