"""Every table. Importing this package fills ``Base.metadata``, from which a new database is made."""

from custody.server.store.models.accounts import *
from custody.server.store.models.base import *
from custody.server.store.models.bookkeeping import *
from custody.server.store.models.organisations import *
from custody.server.store.models.proposals import *
from custody.server.store.models.tokens import *
from custody.server.store.models.vaults import *
