"""Service accounts: accounts of programs, with rights, networks and an end of their own
(docs/operate/service-accounts.md).
"""

from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StrictInt, StringConstraints

from custody.schemas.call import USER_MANAGERS, WORKSPACE_MANAGERS, Auth, Call, PermissionName, Way, few
from custody.schemas.common import (
    Few,
    Int64,
    IntId,
    Label,
    Name,
    Shape,
    Timestamp,
    WorkspaceQuery,
    WorkspaceRequest,
)
from custody.schemas.errors import ErrorCode

# In a log or a repository it shows what it is; secret scanners search for such prefixes.
SECRET_PREFIX: Final = "custody_sa_"  # noqa: S105 - the beginning of each
MAX_NETWORKS: Final = 20
MAX_OVERLAP_HOURS: Final = 7 * 24
DEFAULT_OVERLAP_HOURS: Final = 24
# ::ffff:0:0/96 (RFC 4291, section 2.5.5.2).
_MAPPED_BITS: Final = 96
_IPV4: Final = 2**32 - 1


def read_network(text: str) -> IPv4Network | IPv6Network:
    """``10.1.0.0/16``, ``2001:db8::/48``, or one address. IPv4 within IPv6 (``::ffff:10.1.0.0/112``) is IPv4.

    Raises ValueError, in words.
    """
    try:
        network = ip_network(text)
    except ValueError:
        raise ValueError(
            "write a network as 10.1.0.0/16 or 2001:db8::/48, with nothing but zeros behind its prefix"
        ) from None
    if isinstance(network, IPv6Network):
        if network.network_address.scope_id is not None:
            raise ValueError("write the network without a zone (what follows the %)")
        if network.prefixlen >= _MAPPED_BITS and network.network_address.ipv4_mapped is not None:
            return IPv4Network((int(network.network_address) & _IPV4, network.prefixlen - _MAPPED_BITS))
    return network


Network = Annotated[
    str,
    StringConstraints(min_length=2, max_length=60),
    AfterValidator(lambda text: str(read_network(text))),
    Field(examples=["10.1.0.0/16", "2001:db8::/48"], description="In CIDR notation, IPv4 or IPv6."),
]
Networks = Annotated[list[Network], Field(min_length=1, max_length=MAX_NETWORKS)]
Rights = Annotated[list[PermissionName], Field(min_length=1, max_length=len(PermissionName))]


class ServiceAccountStatus(StrEnum):
    """``WAITING``: no secret was made yet. ``IDLE``: its maker is no member any more."""

    WAITING = "WAITING"
    ACTIVE = "ACTIVE"
    IDLE = "IDLE"
    EXPIRED = "EXPIRED"
    REVOKED = "REVOKED"


class ServiceAccount(Shape):
    """``rights`` are what it was given; it has no more of them than its maker's role carries at the time. ``made_by``: whose
    limits count for it. ``former_secret_until``: until then the secret before the newest one is good, too.
    """  # noqa: E501

    service_account_id: Int64
    workspace_id: Int64
    org_id: Int64
    name: Label
    rights: Few[PermissionName]
    networks: Few[Label]
    status: ServiceAccountStatus
    expires_at: Timestamp
    made_by: Label
    made_by_name: Label
    created_at: Timestamp
    former_secret_until: Timestamp | None = None
    last_used_at: Timestamp | None = None
    last_used_from: Label | None = None
    revoked_at: Timestamp | None = None


class CreateServiceAccountRequest(WorkspaceRequest):
    """``expires_at``: within a year."""

    name: Name
    rights: Rights
    networks: Networks
    expires_at: Timestamp


class ServiceAccountRequest(WorkspaceRequest):
    service_account_id: IntId


class UpdateServiceAccountRequest(ServiceAccountRequest):
    """What is left out stays."""

    name: Name | None = None
    rights: Rights | None = None
    networks: Networks | None = None
    expires_at: Timestamp | None = None


class IssueServiceSecretRequest(ServiceAccountRequest):
    """``overlap_hours``: how long the secret before stays good."""

    overlap_hours: Annotated[StrictInt, Field(ge=0, le=MAX_OVERLAP_HOURS)] = DEFAULT_OVERLAP_HOURS


class ServiceSecret(Shape):
    """The secret is shown here and never again: ``Authorization: Bearer custody_sa_…``."""

    service_account: ServiceAccount
    secret: Label


KEEPERS: Final = WORKSPACE_MANAGERS | USER_MANAGERS
SERVICE_ACCOUNTS = Call(
    "GET", "/api/v1/service-accounts", WorkspaceQuery, few(ServiceAccount),
    "The workspace's accounts of programs, the newest first, without their secrets.",
    KEEPERS, attempt="see the programs",
)  # fmt: skip
OWN_SERVICE_ACCOUNT = Call(
    "GET", "/api/v1/own-service-account", type(None), ServiceAccount,
    "The account of the program that calls.",
    Auth.SIGNED_IN, open_to=frozenset({Way.PROGRAM}), refuses=(ErrorCode.NOT_FOUND,),
)  # fmt: skip
CREATE_SERVICE_ACCOUNT = Call(
    "POST", "/api/v1/create-service-account", CreateServiceAccountRequest, ServiceAccount,
    "An account for a program, which acts in its maker's name with some of the maker's rights. It has no "
    "secret yet.",
    WORKSPACE_MANAGERS, creates=True, second_person="Make an account for a program", cools=True,
    refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
UPDATE_SERVICE_ACCOUNT = Call(
    "POST", "/api/v1/update-service-account", UpdateServiceAccountRequest, ServiceAccount,
    "Its name, rights, networks and end, by its maker.",
    WORKSPACE_MANAGERS, second_person="Change a program's account", refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
ISSUE_SERVICE_SECRET = Call(
    "POST", "/api/v1/issue-service-secret", IssueServiceSecretRequest, ServiceSecret,
    "A new secret, shown to the account's maker here and never again. The one before stays good for "
    "``overlap_hours``.",
    WORKSPACE_MANAGERS, creates=True, attempt="make a new secret of a program",
    refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
REVOKE_SERVICE_ACCOUNT = Call(
    "POST", "/api/v1/revoke-service-account", ServiceAccountRequest, ServiceAccount,
    "Ends it at once and for good, by whichever member it was made.",
    KEEPERS, attempt="revoke a program", repeatable=True,
)  # fmt: skip
