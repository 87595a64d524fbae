"""Which addresses are the open Internet's, so that nobody has us call our own network for them (P51).

Python's ``is_global`` alone does not say: it changed between patch releases, and takes translations of private addresses for
public ones. These are IANA's special-purpose registries (RFC 6890; iana-ipv4-special-registry, iana-ipv6-special-registry),
the ranges that are reachable everywhere among them, too: none holds anybody's server.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

Address = IPv4Address | IPv6Address

SPECIAL_IPV4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network (RFC 791)
        "10.0.0.0/8",  # private use (RFC 1918)
        "100.64.0.0/10",  # shared address space of carriers (RFC 6598)
        "127.0.0.0/8",  # loopback (RFC 1122)
        "169.254.0.0/16",  # link local (RFC 3927); the clouds' metadata
        "172.16.0.0/12",  # private use
        "192.0.0.0/24",  # IETF protocol assignments (RFC 6890); Oracle's metadata
        "192.0.2.0/24",  # documentation (RFC 5737)
        "192.31.196.0/24",  # AS112 (RFC 7535)
        "192.52.193.0/24",  # AMT (RFC 7450)
        "192.88.99.0/24",  # 6to4 relays (RFC 7526)
        "192.168.0.0/16",  # private use
        "192.175.48.0/24",  # AS112 (RFC 7534)
        "198.18.0.0/15",  # benchmarking (RFC 2544)
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast (RFC 5771)
        "240.0.0.0/4",  # reserved (RFC 1112), and the limited broadcast (RFC 919)
        # In no registry: Azure's own services answer a virtual machine there, and nobody else.
        "168.63.129.16/32",
    )
)
# All that IANA has given out as global unicast (RFC 4291). Outside are loopback, the unspecified, IPv4 in disguise
# (::ffff:0:0/96), NAT64 (64:ff9b::/96 and 64:ff9b:1::/48), discard-only, SRv6, unique local, link local, multicast.
GLOBAL_IPV6: Final = IPv6Network("2000::/3")
SPECIAL_IPV6: Final = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # IETF protocol assignments (RFC 2928): Teredo, benchmarking, AMT, ORCHID, DETs
        "2001:db8::/32",  # documentation (RFC 3849)
        "2002::/16",  # 6to4, which holds an IPv4 address (RFC 3056)
        "2620:4f:8000::/48",  # AS112 (RFC 7534)
        "3ffe::/16",  # the 6bone's, given back (RFC 3701)
        "3fff::/20",  # documentation (RFC 9637)
    )
)
# ISATAP holds an IPv4 address behind any prefix (RFC 5214, section 6.1).
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})


def is_public(address: Address) -> bool:
    """Whether it is unicast, anybody's to reach, and nothing else in disguise."""
    if isinstance(address, IPv4Address):
        return address.is_global and not any(address in network for network in SPECIAL_IPV4)
    return (
        address.scope_id is None
        and address in GLOBAL_IPV6
        and address.is_global
        and not any(address in network for network in SPECIAL_IPV6)
        and (int(address) >> 32) & 0xFFFF_FFFF not in _ISATAP
    )


def is_public_text(text: str) -> bool:
    """Of an address as a resolver writes it; False for what is none."""
    try:
        return is_public(ip_address(text))
    except ValueError:
        return False
