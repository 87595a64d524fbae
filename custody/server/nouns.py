"""Imports every noun, so that each declared call has the function that makes it (`custody.server.calls`)."""

from custody.server import address_book, purchases  # noqa: F401
from custody.server.audit import calls as audit_calls  # noqa: F401
from custody.server.history import coins, movements, statements  # noqa: F401
from custody.server.keys import calls as key_calls  # noqa: F401
from custody.server.keys import revocation  # noqa: F401
from custody.server.limits import calls as limit_calls  # noqa: F401
from custody.server.people import (  # noqa: F401
    invitations,
    members,
    organisations,
    roles,
    service_accounts,
)
from custody.server.proposals import (  # noqa: F401
    choosing,
    consolidating,
    ending,
    forwards,
    paying,
    proofs,
    reading,
    signing,
)
from custody.server.second_person import changes, rule  # noqa: F401
from custody.server.sign_in import accounts, identity_providers, second_factor, sessions  # noqa: F401
from custody.server.tokens import calling, creating, index_reading, records  # noqa: F401
from custody.server.vaults import calls as vault_calls  # noqa: F401
from custody.server.vaults import controls, replacement  # noqa: F401
from custody.server.webhooks import calls as webhook_calls  # noqa: F401
