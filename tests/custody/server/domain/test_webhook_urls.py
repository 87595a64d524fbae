"""A webhook's URL is read in one way, or not at all (P51)."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.server.domain.webhook_urls import BadUrl, WebhookUrl, read_url

GOOD = (
    ("https://hooks.example.org", WebhookUrl("hooks.example.org", 443, "/")),
    ("https://hooks.example.org/", WebhookUrl("hooks.example.org", 443, "/")),
    ("https://Hooks.Example.ORG:443/A/b", WebhookUrl("hooks.example.org", 443, "/A/b")),
    ("https://hooks.example.org:8443/a?b=c&d=%20", WebhookUrl("hooks.example.org", 8443, "/a?b=c&d=%20")),
    ("https://hooks.example.org?b=c", WebhookUrl("hooks.example.org", 443, "/?b=c")),
    ("https://bücher.example.org/", WebhookUrl("xn--bcher-kva.example.org", 443, "/")),
    ("https://xn--bcher-kva.example.org/", WebhookUrl("xn--bcher-kva.example.org", 443, "/")),
    # Dotted numbers in front, but a name: the last label decides, as in the URL standard.
    ("https://127.0.0.1.example.org/", WebhookUrl("127.0.0.1.example.org", 443, "/")),
)
BAD = (
    "",
    "http://hooks.example.org/",
    "HTTPS://hooks.example.org/",
    "ftp://hooks.example.org/",
    "//hooks.example.org/",
    "https:hooks.example.org",
    "https:/hooks.example.org",
    "https:///hooks.example.org",
    "https://",
    "https:///",
    " https://hooks.example.org/",
    "https://hooks.example.org/ ",
    "https://hooks.example.org/\n",
    "https://hooks.example.org/a b",
    "https://hooks.example.org/\r\nHost: evil",
    "https://hooks.example.org\\@127.0.0.1/",
    "https://hooks.example.org/\\evil",
    "https://user@hooks.example.org/",
    "https://user:password@hooks.example.org/",
    "https://hooks.example.org@127.0.0.1/",
    "https://hooks.example.org/#fragment",
    "https://hooks.example.org#@127.0.0.1/",
    "https://hooks.example.org/%zz",
    "https://hooks.example.org/ä",
    "https://hooks.example.org:/",
    "https://hooks.example.org:0/",
    "https://hooks.example.org:22/",
    "https://hooks.example.org:80/",
    "https://hooks.example.org:65536/",
    "https://hooks.example.org:99999/",
    "https://hooks.example.org:443443/",
    "https://hooks.example.org:+443/",
    # Addresses, in whatever way they are written.
    "https://1.1.1.1/",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://0X7F.0.0.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://127.0.0.0x1/",
    "https://127.0.0.0x/",
    "https://127.0.0.1./",
    "https://１２７.0.0.1/",
    "https://①②⑦.0.0.1/",
    "https://127。0。0。1/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[fe80::1%25eth0]/",
    "https://[2606:4700:4700::1111]/",
    "https://::1/",
    # Names of this machine, of its network, and of nothing.
    "https://localhost/",
    "https://LOCALHOST/",
    "https://localhost./",
    "https://app.localhost/",
    "https://metadata/",
    "https://metadata.google.internal/",
    "https://printer.local/",
    "https://nas.home.arpa/",
    "https://1.0.0.127.in-addr.arpa/",
    "https://db.corp/",
    "https://router.lan/",
    "https://hidden.onion/",
    "https://a.test/",
    "https://a.invalid/",
    # No names of the DNS.
    "https://hooks.example.org./",
    "https://hooks..example.org/",
    "https://.example.org/",
    "https://-hooks.example.org/",
    "https://hooks-.example.org/",
    "https://ho_oks.example.org/",
    "https://hooks%2eexample.org/",
    "https://hooks.example.org%00.evil.org/",
    "https://" + "a" * 64 + ".example.org/",
    "https://" + "a." * 126 + "example.org/",
    "https://xn--zzzzzzzz99999.example.org/",
    "https://ℓocalhost.example.org/",
    "https://hooks.example.org/" + "a" * 1_000,
)


@pytest.mark.parametrize(("text", "url"), GOOD)
def test_what_can_be_read_is(text: str, url: WebhookUrl) -> None:
    assert read_url(text) == url
    # As it is stored, it is read as the same again.
    assert read_url(str(url)) == url


@pytest.mark.parametrize("text", BAD)
def test_p51_what_leads_elsewhere_or_can_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(BadUrl):
        read_url(text)


@given(st.text(alphabet="https://user:p@a.b-1[]%#?\\0x7f.。１é ", max_size=40).map("https://".__add__))
def test_p51_what_is_accepted_is_what_another_parser_reads(text: str) -> None:
    try:
        url = read_url(text)
    except BadUrl:
        return
    other = urlsplit(str(url))
    assert (other.hostname, other.port or 443, other.username, other.fragment) == (
        url.host,
        url.port,
        None,
        "",
    )
    assert str(url).isascii()


def test_what_the_operator_allows_may_be_anything_with_a_name() -> None:
    allowed = ("localhost", "127.0.0.1", "nas.local")
    assert read_url("https://LOCALHOST:8/a", allowed) == WebhookUrl("localhost", 8, "/a", is_allowed=True)
    assert read_url("https://127.0.0.1:8443/", allowed).is_allowed
    assert read_url("https://nas.local/", allowed).is_allowed
    for other in (
        "https://127.0.0.2/",
        "https://other.local/",
        "https://localhost.local/",
        "http://localhost/",
    ):
        with pytest.raises(BadUrl):
            read_url(other, allowed)
