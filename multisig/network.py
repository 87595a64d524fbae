"""The Bitcoin networks and the constants in which they differ."""

from enum import StrEnum


class NetworkKind(StrEnum):
    """The kinds of network that an extended key distinguishes: test networks share one (BIP-32, SLIP-44)."""

    MAINNET = "mainnet"
    TESTNET = "testnet"

    @property
    def xpub_version(self) -> bytes:
        """The four version bytes of an extended public key (BIP-32, Serialization format)."""
        return _XPUB_VERSIONS[self]

    @property
    def coin_type(self) -> int:
        """The second level of BIP-44 style paths: 0 for bitcoin, 1 for every test network."""
        return 0 if self is NetworkKind.MAINNET else 1


_XPUB_VERSIONS = {
    NetworkKind.MAINNET: bytes.fromhex("0488b21e"),
    NetworkKind.TESTNET: bytes.fromhex("043587cf"),
}


class Network(StrEnum):
    """A Bitcoin network. Which test network is meant is configuration, never read from an address."""

    MAINNET = "mainnet"
    TESTNET4 = "testnet4"
    SIGNET = "signet"
    REGTEST = "regtest"

    @property
    def kind(self) -> NetworkKind:
        return NetworkKind.MAINNET if self is Network.MAINNET else NetworkKind.TESTNET

    @property
    def api_name(self) -> str:
        """Its name in the platform's API: "mainnet" or "testnet"."""
        return self.kind.value

    @property
    def coin_type(self) -> int:
        return self.kind.coin_type

    @property
    def hrp(self) -> str:
        """The human-readable part of its segwit addresses (BIP-173)."""
        return _HRPS[self]

    @property
    def p2pkh_prefix(self) -> int:
        return 0x00 if self is Network.MAINNET else 0x6F

    @property
    def p2sh_prefix(self) -> int:
        return 0x05 if self is Network.MAINNET else 0xC4


_HRPS = {
    Network.MAINNET: "bc",
    Network.TESTNET4: "tb",
    Network.SIGNET: "tb",
    Network.REGTEST: "bcrt",
}
