"""All use cases of one platform, as the web layer is given them."""

from dataclasses import dataclass

from custody.server.service.address_book import AddressBook
from custody.server.service.audit import AuditLog
from custody.server.service.changes import Changes
from custody.server.service.idempotency import Idempotency
from custody.server.service.invitations import Invitations
from custody.server.service.keys import Keys
from custody.server.service.limits_administration import LimitAdministration
from custody.server.service.logs import Logs
from custody.server.service.members import Members
from custody.server.service.onboarding import Onboarding
from custody.server.service.people import People
from custody.server.service.proposals import Proposals
from custody.server.service.purchases import Purchases
from custody.server.service.rates import Rates
from custody.server.service.revocation import KeyRevocation
from custody.server.service.roles import Roles
from custody.server.service.secrets import Secrets
from custody.server.service.sessions import Sessions
from custody.server.service.sign_in_services import SignInServices
from custody.server.service.signin import SignIn
from custody.server.service.signing import Signing
from custody.server.service.vaults import Vaults
from custody.server.service.workspaces import Workspaces
from custody.server.store import Store


@dataclass(frozen=True)
class Services:
    store: Store
    secrets: Secrets
    audit: AuditLog
    rates: Rates
    idempotency: Idempotency
    sessions: Sessions
    signin: SignIn
    account: SignInServices
    people: People
    members: Members
    roles: Roles
    workspaces: Workspaces
    keys: Keys
    revocation: KeyRevocation
    changes: Changes
    invitations: Invitations
    address_book: AddressBook
    onboarding: Onboarding
    vaults: Vaults
    limits: LimitAdministration
    proposals: Proposals
    signing: Signing
    logs: Logs
    purchases: Purchases
    # How long an approval that met the threshold waits for the broadcast before it answers.
    broadcast_wait_seconds: float
