"""Every table. Importing this package fills ``Base.metadata``, which migrations are compared with."""

from custody.server.store.models.audit import AuditEvent, AuditHead
from custody.server.store.models.base import Base
from custody.server.store.models.jobs import IdempotencyRecord, Job
from custody.server.store.models.keys import Key, KeyAccount, KeyChallenge, Profile
from custody.server.store.models.people import (
    AccessToken,
    Credential,
    Membership,
    Organisation,
    OtpChallenge,
    RefreshToken,
    Role,
    RolePermission,
    SignInSession,
    User,
    Workspace,
)
from custody.server.store.models.proposals import CoinLock, Decision, Proposal, ProposalInput, Signature
from custody.server.store.models.vaults import (
    ChainBlock,
    ChainCoin,
    ChainTransaction,
    Vault,
    VaultScript,
    VaultSigner,
)

__all__ = [
    "AccessToken",
    "AuditEvent",
    "AuditHead",
    "Base",
    "ChainBlock",
    "ChainCoin",
    "ChainTransaction",
    "CoinLock",
    "Credential",
    "Decision",
    "IdempotencyRecord",
    "Job",
    "Key",
    "KeyAccount",
    "KeyChallenge",
    "Membership",
    "Organisation",
    "OtpChallenge",
    "Profile",
    "Proposal",
    "ProposalInput",
    "RefreshToken",
    "Role",
    "RolePermission",
    "SignInSession",
    "Signature",
    "User",
    "Vault",
    "VaultScript",
    "VaultSigner",
    "Workspace",
]
