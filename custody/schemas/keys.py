"""Registered signing keys (public data only), the signing profile, and the line a device signs to register.

The line is printable ASCII: purpose, the platform's host, network, user, nonce, and the SHA-256 of every
(path, xpub) that is offered. The platform writes it. Before a person is asked to sign, the signer's machine
compares the host with its own setting, so that no platform can pass on what another one asks (S36), and the
digest with the one that it computes.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, StrictBool, StrictInt, StringConstraints

from custody.schemas.call import Auth, Call, few
from custody.schemas.common import (
    ApiNetwork,
    IntId,
    Label,
    Name,
    NullString,
    Request,
    Sats,
    Shape,
    TextId,
    Timestamp,
)
from custody.schemas.errors import ErrorCode

KeyStatus = Literal["active", "revoked"]
# ``superseded``: another device took its place. ``lost``: its holder is unknown.
RevokedReason = Literal["superseded", "lost"]
# 111 or 112 characters today; pasted keys may carry white space, which the parser strips.
XpubText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=100, max_length=130)]
PathText = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=120, pattern=r"^m(/[0-9]+['hH]?)*$")
]
FingerprintText = Annotated[
    str, StringConstraints(strip_whitespace=True, to_lower=True, pattern=r"^[0-9a-fA-F]{8}$")
]
# BIP-137: 65 bytes in base64.
MessageSignature = Annotated[str, StringConstraints(min_length=88, max_length=88)]
# BIP-48 accounts 0 to 100 are the paths that a Trezor expects.
MAX_ACCOUNT = 100
MAX_ACCOUNTS_PER_CALL = MAX_ACCOUNT + 1


class VaultAccount(Request):
    """The xpub of one BIP-48 account: accounts are hardened, so that the platform cannot derive them."""

    account: Annotated[StrictInt, Field(ge=0, le=MAX_ACCOUNT)]
    xpub: XpubText


class ProfileKey(Request):
    """The member's own single-signature account (BIP-84)."""

    xpub: XpubText
    derivation_base_path: PathText


class KeyDevice(Request):
    """What the device says of itself, by its holder's word. What is left out is not known."""

    maker: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{2,20}$")] | None = None
    model: Annotated[Name, StringConstraints(max_length=60)] | None = None
    firmware: Annotated[Name, StringConstraints(max_length=30)] | None = None


class KeyChallengeRequest(Request):
    """Every (path, xpub) that will be offered, so that the proof covers them."""

    network: ApiNetwork
    xpub: XpubText
    master_fingerprint: FingerprintText
    derivation_base_path: PathText
    vault_accounts: Annotated[list[VaultAccount], Field(max_length=MAX_ACCOUNTS_PER_CALL)] = Field(
        default_factory=list
    )
    profile: ProfileKey | None = None


class KeyChallenge(Shape):
    """One printable ASCII line to sign as a Bitcoin Signed Message at ``derivation_path`` (base path, then 0/0). Who signs
    checks first that its ``host:`` is the platform's, as `ChallengeLine.parse` reads it.
    """  # noqa: E501

    challenge: Label
    derivation_path: Label
    expires_at: Timestamp


class KeyProof(Request):
    challenge: Annotated[str, StringConstraints(max_length=240)]
    signature: MessageSignature


class RegisterKeyRequest(KeyChallengeRequest):
    key_type: Literal["xpub"] = "xpub"
    label: Name | None = None
    replace: StrictBool = False
    proof: KeyProof | None = None
    device: KeyDevice = KeyDevice.model_construct()


class RevokeKeyRequest(Request):
    """``force``: also where a vault keeps fewer signers than a movement needs. ``workspace_id``: for ``request-change`` alone, where a
    member's key is under the rule of two people.
    """  # noqa: E501

    key_id: TextId
    reason: RevokedReason
    force: StrictBool = False
    workspace_id: IntId | None = None


class RegisteredDevice(Shape):
    """What is known of a key's device since its registration."""

    maker: Label | None = None
    model: Label | None = None
    firmware: Label | None = None


class Key(Shape):
    """The specification's Key."""

    id: Label = Field(alias="ID")
    user_id: Label = Field(alias="UserID")
    key_type: Literal["xpub"] = Field(alias="KeyType")
    status: KeyStatus = Field(alias="Status")
    pub_key_hex: NullString = Field(alias="PubKeyHex")
    xpub: NullString = Field(alias="Xpub")
    master_fingerprint: NullString = Field(alias="MasterFingerprint")
    derivation_base_path: NullString = Field(alias="DerivationBasePath")
    label: NullString = Field(alias="Label")
    net: ApiNetwork = Field(alias="Net")
    # Ours beside the specification's: why it was revoked, so that a daemon can tell its person.
    revoked_reason: NullString = Field(default=NullString.model_construct(valid=False), alias="RevokedReason")
    # Ours too. Each vault takes one account of each signer: the signer's daemon registers more before they
    # run out. How many registered accounts no vault uses yet, and the number above the highest registered
    # account.
    free_accounts: Annotated[int, Field(ge=0, le=MAX_ACCOUNT + 1)] | None = Field(
        default=None, alias="FreeVaultAccounts"
    )
    next_account: Annotated[int, Field(ge=0, le=MAX_ACCOUNT + 1)] | None = Field(
        default=None, alias="NextVaultAccount"
    )
    # Ours too: when the device last signed anything; and whether a workspace asks it to sign again
    # (``key_check_months``): a ``register-key`` of the same keys is enough.
    last_signed_at: Timestamp | None = Field(default=None, alias="LastSignedAt")
    check_due: bool = Field(default=False, alias="CheckDue")
    # Ours too: what the device said of itself at the registration.
    device: RegisteredDevice = Field(default=RegisteredDevice.model_construct(), alias="Device")
    created_at: Timestamp = Field(alias="CreatedAt")
    updated_at: Timestamp = Field(alias="UpdatedAt")


class ProfileQuery(Request):
    """Of the active key, or of another one of the caller's own by ``key_id``."""

    network: ApiNetwork
    key_id: TextId | None = None


class SigningProfileAddress(Shape):
    """The profile's one address, and what it holds: there and where the change of its forwards came back.

    ``locked_sats`` counts what pending forwards hold, of either kind.
    """

    network: ApiNetwork
    wallet_address: Label
    derivation_path: Label
    key_id: Label
    confirmed_sats: Sats = 0
    unconfirmed_sats: Sats = 0
    locked_sats: Sats = 0


PURPOSE = "Register signing key"
# What the longest of the other parts leave of the 240 characters that a Coldcard takes.
MAX_HOST_CHARACTERS = 64
# A platform without a public address is one that only its own machine reaches.
HERE = "localhost"
_LOOPBACK = frozenset({"127.0.0.1", "::1", HERE})
_LINE = re.compile(
    rf"{PURPOSE} host:([a-z0-9._:\[\]-]{{1,{MAX_HOST_CHARACTERS}}}) network:(mainnet|testnet) "
    r"user:([1-9][0-9]{0,18}) nonce:([0-9a-f]{32}) keys:([0-9a-f]{64})"
)


def offered_digest(offered: Iterable[tuple[str, str]]) -> str:
    """SHA-256 in hex over the lines ``<path> <xpub>``, sorted. Paths are written ``m/48h/1h/0h/2h``."""
    lines = sorted(f"{path} {xpub}\n" for path, xpub in offered)
    return sha256("".join(lines).encode()).hexdigest()


def signed_host(url: str | None) -> str:
    """The host of a platform's URL as the line has it: in small letters and ASCII, with a port that is not
    the scheme's own; ``localhost`` for this machine at any port, and for a platform without a public URL.
    """
    parts = urlsplit(url or "")
    host = parts.hostname
    if host is None or host in _LOOPBACK:
        return HERE
    written = f"[{host}]" if ":" in host else host.rstrip(".").encode("idna").decode()
    is_usual = parts.port in {None, {"https": 443, "http": 80}.get(parts.scheme)}
    return written if is_usual else f"{written}:{parts.port}"


@dataclass(frozen=True)
class ChallengeLine:
    """``host``: as ``signed_host`` gives it. ``nonce``: 32 hex digits; ``keys_digest``: 64, as
    ``offered_digest`` gives them.
    """

    host: str
    network: ApiNetwork
    user_id: int
    nonce: str
    keys_digest: str

    def __str__(self) -> str:
        return (
            f"{PURPOSE} host:{self.host} network:{self.network} user:{self.user_id} nonce:{self.nonce} "
            f"keys:{self.keys_digest}"
        )

    @classmethod
    def parse(cls, text: str) -> "ChallengeLine":
        """Raises ValueError for anything but such a line: a signer must never sign another text
        in the place of a challenge.
        """
        match = _LINE.fullmatch(text)
        if match is None:
            raise ValueError("this is not a challenge for registering a key")
        network: ApiNetwork = "mainnet" if match[2] == "mainnet" else "testnet"
        return cls(match[1], network, int(match[3]), match[4], match[5])


KEY_CHALLENGE = Call(
    "POST", "/api/v1/key-challenge", KeyChallengeRequest, KeyChallenge,
    "A line for the device to sign, bound to the keys that will be offered; good for ten minutes, once.",
    Auth.SIGNED_IN, repeatable=True,
)  # fmt: skip
REGISTER_KEY = Call(
    "POST", "/api/v1/register-key", RegisterKeyRequest, Key,
    "Registers the caller's device on a network, or adds accounts to the one that is registered.",
    Auth.SIGNED_IN, creates=True, refuses=(ErrorCode.KEY_ALREADY_ACTIVE, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
REVOKE_KEY = Call(
    "POST", "/api/v1/revoke-key", RevokeKeyRequest, Key,
    "Revokes the caller's own key, or marks a member's as lost: with MANAGE_USERS in each of the member's "
    "workspaces on\nthe key's network. Final. ``superseded`` still approves moves into the workspace's own "
    "vaults; ``lost`` approves\nnothing, and what it approved and is pending is asked of the others again. "
    "Refused where a vault keeps fewer signers\nthan a movement needs, unless ``force`` is set. Where an "
    "organisation has the rule of two people, a second person\nconfirms that a member's key is lost; one's "
    "own needs nobody.",
    Auth.SIGNED_IN, second_person="Revoke a signing key", repeatable=True,
    refuses=(ErrorCode.NOT_FOUND, ErrorCode.PERMISSION_DENIED, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
KEYS = Call(
    "GET", "/api/v1/keys", type(None), few(Key), "The caller's keys, the oldest first, revoked ones too.",
    Auth.SIGNED_IN,
)  # fmt: skip
SIGNING_PROFILE_ADDRESS = Call(
    "GET", "/api/v1/signing-profile-address", ProfileQuery, SigningProfileAddress,
    "The address of the caller's own single-signature account (BIP-84) on a network, and what it holds.",
    Auth.SIGNED_IN, refuses=(ErrorCode.NOT_FOUND,),
)  # fmt: skip
