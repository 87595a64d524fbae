"""Registering the device's keys at the platform, and watching the registration.

Two steps. An ``Offer`` of the device's keys shows what would be registered; the person compares the
fingerprint. Then, for the offer's digest, the device signs the platform's challenge, and exactly what was
offered is registered.

``KeyWatch`` reads our keys after a sign-in, before a registration, when the platform speaks of a revoked key,
and six times an hour: the list has no tag and rarely changes.
"""

import asyncio
import base64
import contextlib
import hashlib
import logging
from dataclasses import dataclass, field
from typing import cast

from custody.common.pace import Backoff
from custody.common.text import said
from custody.schemas.common import ApiNetwork
from custody.schemas.errors import ErrorCode
from custody.schemas.keys import (
    ChallengeLine,
    Key,
    KeyChallengeRequest,
    KeyDevice,
    KeyProof,
    ProfileKey,
    RegisterKeyRequest,
    VaultAccount,
    offered_digest,
)
from multisig import DerivationPath, Fingerprint, InvalidMessage, Network, OriginKey, recover_message_key
from signerd.account.platform import PlatformClient, Sink
from signerd.core.events import REGISTRATION
from signerd.core.keys import RevocationReason, VaultAccounts, is_marked_lost, revocation_of
from signerd.core.text import canonical
from signerd.core.values import OwnKey
from signerd.errors import (
    AnswerRefused,
    KeyLost,
    PlatformAnswersWrongly,
    PlatformError,
    PlatformRefused,
    RegistrationStale,
    SignedOut,
    SignerdError,
)
from signerd.feed import Troubles, unforeseen
from signerd.journal import Journal
from signerd.runtime import DaemonDependencies

# The path of the challenge's signature, below the registered key: Trezor refuses the account path itself.
PROOF_BELOW = "0/0"

# The challenge names the account and keys; the platform forgets it after ten minutes.
AGAIN_HINT = "Register again, and answer on the device within ten minutes: then the challenge expires."
REPLACE_HINT = (
    "Another device is registered. Where this one is to take its place, lost or not: `signerd register "
    "--replace`."
)


@dataclass(frozen=True)
class Offer:
    """What would be registered: ``vault_keys`` are the BIP-48 accounts from 0 on, ``profile`` the BIP-84
    account.
    """

    network: Network
    vault_keys: tuple[OriginKey, ...]
    profile: OriginKey

    @property
    def base(self) -> OriginKey:
        return self.vault_keys[0]

    @property
    def proof_path(self) -> DerivationPath:
        """Where the challenge is signed."""
        return self.base.origin.path / PROOF_BELOW

    def require_proof(self, text: str, signature: bytes) -> None:
        """Check that the key to be registered signed this text, as the platform will check it. Raises
        AnswerRefused.
        """
        try:
            signer = recover_message_key(text, signature)
        except InvalidMessage as error:
            raise AnswerRefused(f"this is not a signature of a message: {said(error)}") from error
        if signer != self.base.xpub.derive_public_key(0, 0):
            raise AnswerRefused(
                f"this is not a signature of the challenge by the key at {self.proof_path}",
                hint="Sign the whole line, unchanged, at this path.",
            )

    @property
    def digest(self) -> str:
        """What the person's confirmation is bound to."""
        shown = [str(self.network), *(str(key) for key in (*self.vault_keys, self.profile))]
        return hashlib.sha256(b"signerd-offer-v1" + canonical(shown)).hexdigest()

    def own_keys(self) -> tuple[OwnKey, ...]:
        vaults = tuple(OwnKey(key, "vault", account) for account, key in enumerate(self.vault_keys))
        return (*vaults, OwnKey(self.profile, "profile", 0))

    def pairs(self) -> list[tuple[str, str]]:
        """Every (path, xpub) that is offered: what the proof covers."""
        return [(str(key.origin.path), str(key.xpub)) for key in (*self.vault_keys, self.profile)]


async def ask_challenge(offer: Offer, digest: str, user_id: int, platform: PlatformClient) -> str:
    """The platform's challenge for exactly these keys, to be signed at ``offer.proof_path``.

    Raises:
        RegistrationStale: the device gave other keys than those that were shown. KeyLost.
        PlatformAnswersWrongly: the challenge is not one for these keys. Else what the platform raises.
    """
    if offer.digest != digest:
        raise RegistrationStale("the device gives other keys than those that were shown")
    if is_marked_lost(str(offer.base.xpub), await platform.keys()):
        raise KeyLost(f"the platform says that the key {offer.base.fingerprint} was marked lost")
    challenge = await platform.key_challenge(_request(offer))
    require_challenge(challenge.challenge, offer, user_id, platform.host)
    if DerivationPath.parse(challenge.derivation_path) != offer.proof_path:
        raise PlatformAnswersWrongly(f"the platform asks for a signature at {challenge.derivation_path}")
    return challenge.challenge


async def registered(
    platform: PlatformClient,
    offer: Offer,
    text: str,
    signature: bytes,
    *,
    label: str,
    replace: bool,
    device: KeyDevice,
) -> Key:
    """The platform's key for what was offered, by the device's signature of the challenge. Raises what the
    platform raises.
    """
    proof = KeyProof(challenge=text, signature=base64.b64encode(signature).decode())
    request = RegisterKeyRequest(
        **dict(_request(offer)), label=label, replace=replace, proof=proof, device=device
    )
    try:
        return await platform.register_key(request, f"register-{hashlib.sha256(signature).hexdigest()}")
    except PlatformRefused as error:
        return await _already_ours(error, offer, platform)


async def _already_ours(error: PlatformRefused, offer: Offer, platform: PlatformClient) -> Key:
    """The key of a registration that was interrupted before it was recorded here. Raises ``error`` for
    another active key.
    """
    if error.platform_code == ErrorCode.KEY_ALREADY_ACTIVE:
        ours = offer.network.api_name, str(offer.base.xpub), str(offer.base.origin.fingerprint)
        for key in await platform.keys():
            if key.status == "active" and (key.net, key.xpub.value, key.master_fingerprint.value) == ours:
                return key
        error.hint = REPLACE_HINT
    elif error.platform_code == ErrorCode.VALIDATION:
        error.hint = AGAIN_HINT
    raise error


def _request(offer: Offer) -> KeyChallengeRequest:
    return KeyChallengeRequest(
        network=cast("ApiNetwork", offer.network.api_name),
        xpub=str(offer.base.xpub),
        master_fingerprint=str(offer.base.origin.fingerprint),
        derivation_base_path=str(offer.base.origin.path),
        vault_accounts=[
            VaultAccount(account=account, xpub=str(key.xpub)) for account, key in enumerate(offer.vault_keys)
        ],
        profile=ProfileKey(xpub=str(offer.profile.xpub), derivation_base_path=str(offer.profile.origin.path)),
    )


def require_challenge(text: str, offer: Offer, user_id: int, host: str) -> None:
    """Check that the text is this platform's challenge for exactly these keys, this person and this network,
    before a device signs it. Raises PlatformAnswersWrongly.
    """
    try:
        line = ChallengeLine.parse(text)
    except ValueError as error:
        raise PlatformAnswersWrongly(f"the platform asks to sign another text: {error}") from error
    if line.host != host:
        raise PlatformAnswersWrongly(
            f"the platform asks for a registration at {line.host}, and it is {host} here: nothing was signed",
            hint="Ask its operator which is right: platform.url in config.toml, or CUSTODY_PUBLIC_URL there. "
            "A platform that passes another one's challenge on to you looks the same.",
        )
    wanted = (offer.network.api_name, user_id, offered_digest(offer.pairs()))
    if (line.network, line.user_id, line.keys_digest) != wanted:
        raise PlatformAnswersWrongly(
            "the platform's challenge is not for these keys, this account or this network"
        )


KEYS_EVERY_SECONDS = 600.0
KEYS = "keys"


_log = logging.getLogger(__name__)


@dataclass
class KeyWatch:
    """``run`` ends only by cancellation or by an error that must stop the daemon. ``due``: a caller wants it
    read now.
    """

    journal: Journal
    platform: PlatformClient
    sink: Sink
    signed_in: asyncio.Event
    due: asyncio.Event
    troubles: Troubles
    outside: DaemonDependencies
    every: float = KEYS_EVERY_SECONDS
    reads: int = field(default=0, init=False)
    _listed: tuple[Key, ...] = field(default=(), init=False)

    async def run(self) -> None:
        pause = Backoff(self.outside.jitter)
        while True:
            await self.signed_in.wait()
            self.due.clear()
            try:
                await self.read_now()
            except (PlatformError, SignedOut) as error:
                # The status already reports a platform that gives no answer, and a missing sign-in.
                if isinstance(error, PlatformRefused | PlatformAnswersWrongly):
                    sentence = f"The status of your key at the platform cannot be read: {said(error)}"
                    self.troubles.report(KEYS, {REGISTRATION: sentence})
            except SignerdError:
                raise
            except Exception:  # noqa: BLE001 - an answer that breaks our code must not end the reading
                _log.exception("reading the registered keys failed in an unforeseen way")
                self.troubles.report(KEYS, {REGISTRATION: unforeseen("Reading your keys at the platform")})
            else:
                pause.reset()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.every):
                        await self.due.wait()
                continue
            await self.outside.sleep(pause.next())

    async def read_now(self) -> None:
        """Raises leaves of PlatformError, SignedOut."""
        network = self.journal.network.api_name
        self._listed = tuple(key for key in await self.platform.keys() if key.net == network)
        self.reads += 1
        key_id = self.journal.platform_key_id()
        # The platform lists the key of account 0.
        registered = (own for own in self.journal.own_keys() if own.purpose == "vault" and own.account == 0)
        base = next(registered, None)
        if key_id is None or base is None:
            self.troubles.report(KEYS, {})
            return
        revocation = revocation_of(base, key_id, self._listed, self.journal.now())
        if revocation is not None:
            self.sink.announce(self.journal.revoke(revocation))
        for former in self.journal.former_keys():
            revoked = revocation_of(former.own, former.platform_key_id, self._listed, self.journal.now())
            if revoked is not None and revoked.why is RevocationReason.LOST:
                self.sink.announce(self.journal.revoke(revoked))
        fingerprint = base.key.fingerprint
        advice = None if revocation else self.accounts_of(fingerprint).advice or self._check(fingerprint)
        self.troubles.report(KEYS, {} if advice is None else {REGISTRATION: advice})

    def _check(self, fingerprint: Fingerprint) -> str | None:
        """What to do where a workspace asks whether the device still signs."""
        for key in self._listed:
            is_its = key.status == "active" and key.master_fingerprint.value == str(fingerprint)
            if is_its and key.check_due and key.last_signed_at is not None:
                return (
                    f"Your device last signed on {key.last_signed_at:%Y-%m-%d}, and a workspace asks whether "
                    "it still does: connect it and run `signerd register`. That moves no money."
                )
        return None

    def accounts_of(self, fingerprint: Fingerprint) -> VaultAccounts:
        """The vault accounts of the device with this fingerprint: here, and at the platform at the last
        reading.
        """
        known = sum(
            own.purpose == "vault" and own.key.fingerprint == fingerprint for own in self.journal.own_keys()
        )
        for key in self._listed:
            if key.status == "active" and key.master_fingerprint.value == str(fingerprint):
                return VaultAccounts(known, key.next_account or 0, key.free_accounts)
        return VaultAccounts(known)
