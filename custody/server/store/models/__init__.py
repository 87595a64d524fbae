"""Every table. Importing this package fills ``Base.metadata``, from which a new database is made."""

from custody.server.store.models.accounts import (
    AccessToken,
    Attempt,
    Credential,
    IdentityFlow,
    IdentityLink,
    IdentityProvider,
    OtpChallenge,
    Passkey,
    PasswordReset,
    Purchase,
    RecoveryCode,
    RefreshToken,
    ServiceAccount,
    SignInSession,
    User,
    full_name,
)
from custody.server.store.models.base import Base, table_of
from custody.server.store.models.bookkeeping import (
    AuditEvent,
    AuditHead,
    IdempotencyRecord,
    Job,
    Lease,
    Revision,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)
from custody.server.store.models.organisations import (
    AddressBookEntry,
    Invitation,
    Membership,
    OnboardingRequest,
    Organisation,
    PendingChange,
    Role,
    RolePermission,
    SecondPersonRule,
    Workspace,
)
from custody.server.store.models.proposals import (
    HELD,
    OPEN,
    PROOFS,
    UNUSUAL,
    CoinLock,
    Decision,
    Proposal,
    ProposalInput,
    Signature,
)
from custody.server.store.models.tokens import (
    Contract,
    ContractCall,
    TokenBlock,
    TokenCell,
    TokenEffect,
    TokenTransaction,
)
from custody.server.store.models.vaults import (
    MOVING,
    ChainBlock,
    ChainCoin,
    ChainTransaction,
    Key,
    KeyAccount,
    KeyChallenge,
    Movement,
    Profile,
    Vault,
    VaultSigner,
    WatchedScript,
)
