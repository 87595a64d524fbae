"""Every table. Importing this package fills ``Base.metadata``, which migrations are compared with."""

from custody.server.store.models.accounts import (
    AccessToken,
    Attempt,
    Credential,
    OtpChallenge,
    PasswordReset,
    RecoveryCode,
    RefreshToken,
    SignInSession,
    User,
)
from custody.server.store.models.audit import AuditEvent, AuditHead
from custody.server.store.models.base import Base, table_of
from custody.server.store.models.events import Webhook, WebhookDelivery, WebhookEvent
from custody.server.store.models.jobs import IdempotencyRecord, Job, Lease, Revision
from custody.server.store.models.keys import Key, KeyAccount, KeyChallenge, Profile
from custody.server.store.models.people import (
    AddressBookEntry,
    Invitation,
    Membership,
    Organisation,
    Role,
    RolePermission,
    Workspace,
)
from custody.server.store.models.proposals import CoinLock, Decision, Proposal, ProposalInput, Signature
from custody.server.store.models.requests import OnboardingRequest, Purchase
from custody.server.store.models.tokens import (
    Contract,
    ContractCall,
    TokenBlock,
    TokenCell,
    TokenEffect,
    TokenTransaction,
)
from custody.server.store.models.vaults import (
    ChainBlock,
    ChainCoin,
    ChainTransaction,
    Vault,
    VaultSigner,
    WatchedScript,
)

__all__ = [
    "AccessToken",
    "AddressBookEntry",
    "Attempt",
    "AuditEvent",
    "AuditHead",
    "Base",
    "ChainBlock",
    "ChainCoin",
    "ChainTransaction",
    "CoinLock",
    "Contract",
    "ContractCall",
    "Credential",
    "Decision",
    "IdempotencyRecord",
    "Invitation",
    "Job",
    "Key",
    "KeyAccount",
    "KeyChallenge",
    "Lease",
    "Membership",
    "OnboardingRequest",
    "Organisation",
    "OtpChallenge",
    "PasswordReset",
    "Profile",
    "Proposal",
    "ProposalInput",
    "Purchase",
    "RecoveryCode",
    "RefreshToken",
    "Revision",
    "Role",
    "RolePermission",
    "SignInSession",
    "Signature",
    "TokenBlock",
    "TokenCell",
    "TokenEffect",
    "TokenTransaction",
    "User",
    "Vault",
    "VaultSigner",
    "WatchedScript",
    "Webhook",
    "WebhookDelivery",
    "WebhookEvent",
    "Workspace",
    "table_of",
]
