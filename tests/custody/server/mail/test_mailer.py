"""Mail into a folder, and over SMTP to a real server: what arrives, what is verified, what is retried, and
that every wait ends.
"""

import socket
import threading
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest
from pydantic import SecretStr

from custody.server.errors import MailRefused, MailUnavailable
from custody.server.mail.mailer import (
    CannotMail,
    FileMailer,
    Mail,
    MessageBuilder,
    SmtpMailer,
    SmtpServer,
)
from custody.server.rules.ports import RandomBytes
from tests.support.certificates import certificate_for_address
from tests.support.platform import Clock
from tests.support.smtp import mail_server


@pytest.fixture
def mailer(tmp_path: Path) -> FileMailer:
    return FileMailer(tmp_path / "mail", "custody@example.org", Clock(), random())


def test_each_message_is_a_private_file(mailer: FileMailer, tmp_path: Path) -> None:
    for number in range(3):
        mailer.send(Mail("a@example.org", f"Subject {number}", "Text with a code 123456\nand Umlaute: äöü\n"))
    files = sorted((tmp_path / "mail").iterdir())
    assert [path.suffix for path in files] == [".eml"] * 3
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (tmp_path / "mail").stat().st_mode & 0o777 == 0o700
    message = message_from_bytes(files[0].read_bytes(), policy=default)
    assert message["To"] == "a@example.org"
    assert message["Subject"] == "Subject 0"
    assert "code 123456" in message.get_content()
    assert "äöü" in message.get_content()


def test_a_link_can_be_copied_from_the_file_and_a_line_too_long_for_a_mail_is_encoded(
    mailer: FileMailer, tmp_path: Path
) -> None:
    link = "https://custody.example.org/reset-password#token=HLVk438ZjvnViqvpjex7rG0_WZLCMIWj9hvQlHXQO3c"
    for line in (f"Go on at {link} now.", "x" * 999):
        mailer.send(Mail("a@example.org", "Subject", f"{line}\n"))
    copied, encoded = (path.read_bytes() for path in sorted((tmp_path / "mail").iterdir()))
    assert link in copied.decode("ascii")
    assert max(map(len, encoded.splitlines())) <= 998
    assert message_from_bytes(encoded, policy=default).get_content().strip() == "x" * 999


def test_an_address_beyond_ascii_stays_that_mailbox(mailer: FileMailer, tmp_path: Path) -> None:
    mailer.send(Mail("ada@bücher.example", "Subject", "Text\n"))
    mailer.send(Mail("ädä@bücher.example", "Subject", "Text\n"))
    headers = [path.read_text(encoding="utf-8") for path in sorted((tmp_path / "mail").iterdir())]
    assert "To: ada@xn--bcher-kva.example\n" in headers[0]
    assert "To: ädä@xn--bcher-kva.example\n" in headers[1]


def test_a_folder_that_is_gone_is_no_crash(mailer: FileMailer, tmp_path: Path) -> None:
    (tmp_path / "mail").rmdir()
    with pytest.raises(MailUnavailable, match="cannot be written"):
        mailer.send(Mail("a@example.org", "Subject", "Text\n"))


def test_what_no_header_can_hold_is_refused(mailer: FileMailer, tmp_path: Path) -> None:
    """P50; and a code stays out of the repr of its mail (P49)."""
    for subject in ("Subject\r\nBcc: everybody@example.org", "Hello\n\nAnother text"):
        with pytest.raises(MailRefused):
            mailer.send(Mail("a@example.org", subject, "Text\n"))
    assert "123456" not in repr(MAIL)
    assert list((tmp_path / "mail").iterdir()) == []


MAIL = Mail("a@example.org", "Your code", "It is 123456, and Umlaute: äöü\n.\nafter a lonely dot\n")
PASSWORD = "the mail server's password"


def random() -> RandomBytes:
    """Other bytes at each call."""
    numbers = iter(range(1_000))
    return lambda count: next(numbers).to_bytes(count, "little")


def smtp_mailer(port: int, tls: str = "none", **settings: object) -> SmtpMailer:
    return SmtpMailer(
        SmtpServer("127.0.0.1", tls, port, **settings), "custody@example.org", Clock(), random()
    )


def test_a_mail_arrives_whole_and_is_sent_whatever_the_goodbye() -> None:
    with mail_server() as box:
        box.refusals["QUIT"] = "421 Rude"
        smtp_mailer(box.port).send(MAIL)
    (message,), (envelope,) = box.arrived, box.envelopes
    assert (envelope.mail_from, envelope.rcpt_tos) == ("custody@example.org", ["a@example.org"])
    assert (message["From"], message["To"], message["Subject"]) == (
        "custody@example.org", "a@example.org", "Your code"
    )  # fmt: skip
    assert message["Date"].datetime == Clock()()
    assert message["Message-ID"].endswith("@example.org>")
    assert message.get_content().splitlines() == MAIL.text.splitlines()
    assert box.sessions[0].host_name == "example.org"


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_is_encrypted_and_signed_in(tls: str, tmp_path: Path) -> None:
    authority, context = certificate_for_address(tmp_path)
    login = {"username": "custody", "password": SecretStr(PASSWORD)}
    with mail_server(tls=tls, context=context, password=PASSWORD) as box:
        smtp_mailer(box.port, tls, ca_file=authority, **login).send(MAIL)
    assert len(box.arrived) == 1
    assert box.sessions[0].authenticated


def test_a_server_that_offers_no_encryption_gets_nothing() -> None:
    """A middleman who hides the offer gains nothing by it."""
    with mail_server() as box:
        with pytest.raises(MailUnavailable):
            smtp_mailer(box.port, "starttls", username="custody", password=SecretStr(PASSWORD)).send(MAIL)
        assert box.arrived == []


@pytest.mark.parametrize("tls", ["starttls", "tls"])
@pytest.mark.parametrize("why", ["unknown authority", "another name"])
def test_a_certificate_that_proves_nothing_gets_nothing(tls: str, why: str, tmp_path: Path) -> None:
    address = "127.0.0.1" if why == "unknown authority" else "127.0.0.2"
    authority, context = certificate_for_address(tmp_path, address)
    trusted = None if why == "unknown authority" else authority
    with mail_server(tls=tls, context=context) as box:
        with pytest.raises(MailUnavailable, match="SSLCertVerificationError"):
            smtp_mailer(box.port, tls, ca_file=trusted).send(MAIL)
        assert box.arrived == []


@pytest.mark.parametrize(
    ("command", "reply", "outcome"),
    [
        ("RCPT", "550 No such mailbox", MailRefused),
        ("RCPT", "450 Greylisted", MailUnavailable),
        ("DATA", "554 Not this mail", MailRefused),
        ("DATA", "451 Later", MailUnavailable),
        ("MAIL", "550 Not from you", MailUnavailable),
        ("MAIL", "421 Going down", MailUnavailable),
    ],
)
def test_what_is_refused_for_good_and_what_may_pass(command: str, reply: str, outcome: type) -> None:
    with mail_server() as box:
        box.refusals[command] = reply
        with pytest.raises(outcome, match=reply[:3]) as refused:
            smtp_mailer(box.port).send(MAIL)
    assert reply[4:] not in refused.value.detail


def test_a_wrong_password_is_for_the_operator_to_repair(tmp_path: Path) -> None:
    """P49: and it is in no sentence."""
    authority, context = certificate_for_address(tmp_path)
    login = {"username": "custody", "password": SecretStr("not the password")}
    with mail_server(tls="tls", context=context, password=PASSWORD) as box:
        wrong = smtp_mailer(box.port, "tls", ca_file=authority, **login)
        with pytest.raises(MailUnavailable, match="535") as refused:
            wrong.send(MAIL)
    assert "not the password" not in str(refused.value) + repr(wrong._server)


def test_a_server_that_is_not_there_or_says_nothing_is_unavailable(monkeypatch) -> None:
    monkeypatch.setattr("custody.server.mail.mailer.ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(MailUnavailable):
            smtp_mailer(port).send(MAIL)
    with pytest.raises(MailUnavailable, match="ConnectionRefusedError"):
        smtp_mailer(port).send(MAIL)


@pytest.mark.parametrize("tls", ["none", "tls"])
def test_a_server_that_drips_is_cut_off(tls: str, monkeypatch) -> None:
    """Every read succeeds in time, and the greeting never ends: the line is cut long before the server
    tires.
    """
    monkeypatch.setattr("custody.server.mail.mailer.MAIL_SECONDS", 0.5)
    cut = threading.Event()

    def drip(listener: socket.socket) -> None:
        line, _ = listener.accept()
        with line:
            # A TLS record of 8 KiB is announced, and comes byte by byte.
            line.sendall(b"" if tls == "none" else b"\x16\x03\x03\x20\x00")
            for _ in range(200):
                try:
                    line.sendall(b"2")
                except OSError:
                    cut.set()
                    return
                cut.wait(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        with pytest.raises(MailUnavailable):
            smtp_mailer(listener.getsockname()[1], tls).send(MAIL)
        thread.join()
    assert cut.is_set()


@pytest.mark.parametrize(
    "to",
    [
        "a@example.org\r\nBcc: everybody@example.org",
        "a\nRCPT TO:<b@example.org>@example.org",
        "a@example.org\r\nDATA",
        "a\x00b@example.org",
        "a>,<b@example.org",
        '"@example.org',
        "=?utf-8?q?x?=@example.org",
        "ä@example.org",
        "<a@b",
        "a,c@b",
        "a@b>,c@d",
        "a:;@b",
        # Of these the library makes an IndexError or an AttributeError.
        "a@%|,<",
        "a@[f\xad.&\\(",
    ],
)
def test_an_address_is_never_a_header_or_a_command(to: str) -> None:
    """P50: it is refused, or arrives in its one place."""
    with mail_server() as box:
        try:
            smtp_mailer(box.port).send(Mail(to, "Subject", "Text\n"))
        except (MailRefused, MailUnavailable):
            assert box.arrived == []
            return
    (message,), (envelope,) = box.arrived, box.envelopes
    assert len(envelope.rcpt_tos) == 1
    assert sorted(set(message.keys()) - {"X-Peer", "X-MailFrom", "X-RcptTo"}) == sorted([
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Content-Type",
        "Content-Transfer-Encoding", "MIME-Version",
    ])  # fmt: skip
    assert message.get_content() == "Text\r\n"


def test_nothing_is_sent_in_the_clear_to_another_machine() -> None:
    for host in ("mail.example.org", "192.0.2.1", "localhost.example.org"):
        with pytest.raises(CannotMail, match="unencrypted"):
            SmtpServer(host, "none")
        assert SmtpServer(host, "starttls").host == host
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        assert SmtpServer(host, "none").host == host


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(CannotMail, match="needs both a user name and a password"):
        SmtpServer("mail.example.org", username="custody")
    for sender in ("", "nobody", "@example.org", "a@", "a@example.org\r\nBcc: b@example.org"):
        with pytest.raises(CannotMail, match="not a mail address"):
            MessageBuilder(sender, Clock(), bytes)
