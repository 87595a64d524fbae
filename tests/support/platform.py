"""A whole platform over a real database, with a clock that the test moves, cheap hashes and a mailbox."""

import random
import re
import secrets
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from argon2 import PasswordHasher
from sqlalchemy import select

from custody.server.app import Platform, open_platform
from custody.server.limits.stored import Policies
from custody.server.mail.mailer import Mail
from custody.server.opening import PlatformDependencies
from custody.server.rules.credentials import Caller
from custody.server.settings import Settings
from custody.server.setup import NewOrganisation, NewPerson, Placement, add_member, bootstrap, has_account
from custody.server.sign_in.access_tokens import caller_of
from custody.server.store.models import AuditEventRow, VaultRow
from custody.server.webhooks.sending import Resolve, look_up
from device_simulators.seed import Seed
from multisig import DerivationPath, Network, message_hash, multisig_account_path, profile_account_path
from tests.support.asgi import asgi_client
from tests.support.databases import make_sqlite

PASSWORD = "correct horse battery"
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@dataclass
class Clock:
    """Stands still until moved."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **span: float) -> None:
        self.now += timedelta(**span)


@dataclass
class KeptMail:
    sent: list[Mail] = field(default_factory=list)

    def send(self, mail: Mail) -> None:
        self.sent.append(mail)

    def newest_code(self) -> str:
        return re.findall(r"\b[0-9]{6}\b", self.sent[-1].text)[0]


@dataclass
class World:
    """A platform with helpers. ``http`` calls it from one address."""

    platform: Platform
    clock: Clock
    mail: KeptMail
    http: httpx.Client

    def organisation(self, name: str, email: str, chain: Network = Network.REGTEST) -> Placement:
        """An organisation on regtest, whose administrator signs in without a code."""
        names = NewOrganisation(organisation=name, workspace="Main")
        person = NewPerson(email=email, password=PASSWORD, two_factor=False)
        return bootstrap(self.platform.services, names, chain, person)

    def member(self, workspace_id: int, email: str, role: str = "Signer") -> Placement:
        password = None if has_account(self.platform.services, email) else PASSWORD
        person = NewPerson(email=email, password=password, two_factor=False)
        return add_member(self.platform.services, workspace_id, role, person)

    def login(self, email: str, password: str = PASSWORD) -> httpx.Response:
        return self.http.post("/auth/login", json={"email": email, "password": password})

    def as_user(self, email: str) -> "As":
        """Signs in and calls with the token."""
        answer = self.login(email)
        assert answer.status_code == 200, answer.text
        self.http.cookies.clear()
        return As(self.http, {"Authorization": f"Bearer {answer.json()['token']}"})

    def caller(self, token: str) -> Caller:
        """The person behind an access token."""
        with self.platform.services.store.read() as db:
            return caller_of(db, token, self.clock(), "192.0.2.1", "trace")

    def deliver_mail(self) -> None:
        """Runs the mail worker once."""
        self.platform.background.outbox("mail").run_due()

    def deliver_webhooks(self) -> int:
        """Runs the webhooks' workers once; returns the number of due deliveries."""
        return sum(self.platform.background.outbox(name).run_due() for name in ("webhooks", "questions"))

    def audit_actions(self, chain_id: str = "platform") -> list[str]:
        query = select(AuditEventRow.action).where(AuditEventRow.chain_id == chain_id)
        with self.platform.services.store.read() as db:
            return list(db.scalars(query.order_by(AuditEventRow.position)))


@dataclass(frozen=True)
class As:
    """A signed-in person's calls."""

    http: httpx.Client
    headers: dict[str, str]

    def get(self, path: str, **query: object) -> httpx.Response:
        return self.http.get(path, params=query, headers=self.headers)

    def post(self, path: str, body: object = None, **headers: str) -> httpx.Response:
        return self.http.post(path, json=body, headers={**self.headers, **headers})


@contextmanager
def open_world(
    folder: Path,
    *,
    database_url: str | None = None,
    policies: Policies | None = None,
    resolve: Resolve = look_up,
    chance: random.Random | None = None,
    **settings: object,
) -> Iterator[World]:
    """``database_url``: a SQLite file in the folder by default. ``policies``: the platform's own by default.
    ``resolve``: the addresses of a webhook's host. ``chance``: a seeded generator, for a repeatable run.
    """
    if database_url is None and not (folder / "custody.db").exists():
        make_sqlite(folder / "custody.db")
    clock, mail = Clock(), KeptMail()
    drawn = {"random": chance.randbytes if chance else secrets.token_bytes}
    drawn["rng"] = chance or random.SystemRandom()
    kept = {"clock": clock, "hasher": CHEAP, "mailer": mail, "policies": policies or Policies()}
    outside = PlatformDependencies(**kept, **drawn, resolve=resolve)
    platform = open_platform(Settings(state=folder, database_url=database_url, **settings), outside)
    try:
        with asgi_client(platform.asgi) as http:
            yield World(platform, clock, mail, http)
    finally:
        platform.close()


def seed(number: int) -> Seed:
    return Seed.from_entropy(bytes([number]) * 16)


def key_offer(device: Seed, network: Network = Network.REGTEST, accounts: int = 2) -> dict:
    """A registration's body without its proof."""
    base = multisig_account_path(network)
    profile = profile_account_path(network)
    return {
        "network": network.api_name,
        "xpub": str(device.xpub(base, network)),
        "master_fingerprint": device.fingerprint.hex,
        "derivation_base_path": str(base),
        "vault_accounts": [
            {"account": number, "xpub": str(device.xpub(multisig_account_path(network, number), network))}
            for number in range(accounts)
        ],
        "profile": {"xpub": str(device.xpub(profile, network)), "derivation_base_path": str(profile)},
    }


def sign_challenge(device: Seed, challenge: dict) -> dict:
    """The device's proof for the answer of key-challenge."""
    path = DerivationPath.parse(challenge["derivation_path"])
    signature = device.sign_recoverable(path, message_hash(challenge["challenge"]))
    return {"challenge": challenge["challenge"], "signature": b64encode(signature).decode()}


def register_key(
    user: As, device: Seed, network: Network = Network.REGTEST, /, **changes: object
) -> httpx.Response:
    """A whole registration, as signerd does it."""
    offer = key_offer(device, network)
    offer |= {name: value for name, value in changes.items() if name in {"vault_accounts", "profile"}}
    challenge = user.post("/api/v1/key-challenge", offer)
    assert challenge.status_code == 200, challenge.text
    proof = sign_challenge(device, challenge.json())
    return user.post("/api/v1/register-key", {**offer, **changes, "proof": proof})


def plain_vault(vault_id: str, workspace_id: int = 1) -> VaultRow:
    """A row of a vault where only its existence matters."""
    return VaultRow(
        id=vault_id, workspace_id=workspace_id, created_by=1, name=vault_id, network="testnet",
        chain="regtest", m=1, n=1, script_type="wsh", descriptor=f"descriptor of {vault_id}",
        address=f"address of {vault_id}", witness_script_hex="", limit_sats=0, cycle_period="W", cycle_day=1,
        next_receive_index=0, next_change_index=0, created_at=START, updated_at=START,
    )  # fmt: skip
