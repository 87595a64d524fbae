"""Every table. Importing this package fills ``Base.metadata``, from which a new database is made."""

from custody.server.store.models.accounts import (
    AccessTokenRow,
    AttemptRow,
    CredentialRow,
    IdentityFlowRow,
    IdentityLinkRow,
    IdentityProviderRow,
    OtpChallengeRow,
    PasskeyRow,
    PasswordResetRow,
    PurchaseRow,
    RecoveryCodeRow,
    RefreshTokenRow,
    ServiceAccountRow,
    SignInSessionRow,
    UserRow,
    full_name,
)
from custody.server.store.models.base import Base, table_of
from custody.server.store.models.bookkeeping import (
    AuditEventRow,
    AuditHeadRow,
    IdempotencyRecordRow,
    JobRow,
    LeaseRow,
    RevisionRow,
    WebhookDeliveryRow,
    WebhookEventRow,
    WebhookRow,
)
from custody.server.store.models.organisations import (
    AddressBookEntryRow,
    InvitationRow,
    MembershipRow,
    OnboardingRequestRow,
    OrganisationRow,
    PendingChangeRow,
    RolePermissionRow,
    RoleRow,
    SecondPersonRuleRow,
    WorkspaceRow,
)
from custody.server.store.models.proposals import (
    HELD,
    OPEN,
    PROOFS,
    CoinLockRow,
    DecisionRow,
    ProposalInputRow,
    ProposalRow,
    SignatureRow,
)
from custody.server.store.models.tokens import (
    ContractCallRow,
    ContractRow,
    TokenBlockRow,
    TokenCellRow,
    TokenEffectRow,
    TokenTransactionRow,
)
from custody.server.store.models.vaults import (
    MOVING,
    ChainBlockRow,
    ChainCoinRow,
    ChainTransactionRow,
    KeyAccountRow,
    KeyChallengeRow,
    KeyRow,
    MovementRow,
    ProfileRow,
    VaultRow,
    VaultSignerRow,
    WatchedScriptRow,
)
