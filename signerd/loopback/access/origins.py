"""Host and Origin, compared to the byte: nothing is parsed, cut or made smaller, so that nothing can be made to look like ours (L1, L3)."""

from signerd.errors import HostRefused, OriginRefused
from signerd.loopback.access.request_head import RequestHead

# What a browser sends in the place of an origin that it does not tell.
OPAQUE = "null"
FETCH_SITE, FETCH_DEST = "sec-fetch-site", "sec-fetch-dest"
_OF_OUR_OWN = frozenset({"same-origin", "none"})


def hosts_at(port: int) -> frozenset[str]:
    """Every name under which this port may be called. Browsers leave the port away at 80 alone."""
    names = ("127.0.0.1", "[::1]", "localhost")
    named = {f"{name}:{port}" for name in names}
    return frozenset(named | set(names) if port == 80 else named)


def require_host(asked: RequestHead, hosts: frozenset[str]) -> str:
    """Raises HostRefused for any other, for none, and for more than one."""
    given = asked.all("host")
    if len(given) != 1 or given[0] not in hosts:
        raise HostRefused("this is not an address at which signerd can be called")
    return given[0]


def own_origin(host: str) -> str:
    return f"http://{host}"


def require_no_other_site(asked: RequestHead) -> None:
    """Of a request without another site's Origin: a browser must not say that another site made it all the same.

    A picture or a link brings no Origin, and costs as much to answer (L2, L11). Raises OriginRefused.
    """
    site = asked.sole(FETCH_SITE)
    if site is not None and site not in _OF_OUR_OWN:
        raise OriginRefused("another site made this request", hint="Open the page with `signerd open`.")


def require_our_page(asked: RequestHead, host: str) -> None:
    """Of a request with the session of the page: no other page has its secret, and none may use it (L4). Raises OriginRefused."""
    origin = asked.sole("origin")
    if origin is None and asked.is_safe:
        return
    if origin != own_origin(host):
        raise OriginRefused("a request in a session of the page must have the page's origin")


def require_navigation(asked: RequestHead) -> None:
    """Of entering, which a file of ours begins: it is a person's whole window, and no frame or script of somebody's. Raises OriginRefused."""
    if asked.sole(FETCH_DEST) not in {None, "document"}:
        raise OriginRefused("the page is entered by a window of its own")
