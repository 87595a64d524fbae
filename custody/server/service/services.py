"""All use cases of one platform, as the web layer is given them."""

from dataclasses import dataclass

from custody.server.service.audit.log import AuditLog
from custody.server.service.audit.reading import Logs
from custody.server.service.keys.keys import Keys
from custody.server.service.keys.profiles import Profiles
from custody.server.service.keys.revocation import KeyRevocation
from custody.server.service.limits.administration import LimitAdministration
from custody.server.service.operations.readiness import Readiness
from custody.server.service.people.address_book import AddressBook
from custody.server.service.people.invitations import Invitations
from custody.server.service.people.members import Members
from custody.server.service.people.onboarding import Onboarding
from custody.server.service.people.people import People
from custody.server.service.people.purchases import Purchases
from custody.server.service.people.roles import Roles
from custody.server.service.people.workspaces import Workspaces
from custody.server.service.proposals.accelerating import Accelerating
from custody.server.service.proposals.ending import Cancelling
from custody.server.service.proposals.forwarding import Forwarding
from custody.server.service.proposals.proposals import Proposals
from custody.server.service.proposals.replacing import Replacing
from custody.server.service.proposals.signing import Signing
from custody.server.service.requests.changes import Changes
from custody.server.service.requests.following import Following
from custody.server.service.requests.idempotency import Idempotency
from custody.server.service.requests.rates import Rates
from custody.server.service.secrets import Secrets
from custody.server.service.sign_in.services import SignInServices
from custody.server.service.sign_in.sessions import Sessions
from custody.server.service.sign_in.signin import SignIn
from custody.server.service.tokens.calling import Calling, Resubmitting
from custody.server.service.tokens.creating import TokenCreating
from custody.server.service.vaults import Vaults
from custody.server.service.webhooks.webhooks import Webhooks
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
    profiles: Profiles
    revocation: KeyRevocation
    changes: Changes
    following: Following
    readiness: Readiness
    invitations: Invitations
    address_book: AddressBook
    onboarding: Onboarding
    vaults: Vaults
    limits: LimitAdministration
    proposals: Proposals
    replacing: Replacing
    accelerating: Accelerating
    cancelling: Cancelling
    forwarding: Forwarding
    signing: Signing
    resubmitting: Resubmitting
    token_creating: TokenCreating
    calling: Calling
    logs: Logs
    purchases: Purchases
    webhooks: Webhooks
    # How long an approval that met the threshold waits for the broadcast before it answers.
    broadcast_wait_seconds: float
