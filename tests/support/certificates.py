"""Self-signed certificates for one test."""

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_OTHERS = ("crl_sign", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
_UNUSED = dict.fromkeys((*_OTHERS, "encipher_only", "decipher_only"), False)
_SIGNS = x509.KeyUsage(digital_signature=True, key_cert_sign=True, **_UNUSED)


def certificate_for(folder: Path, *names: str) -> tuple[Path, ssl.SSLContext]:
    """For these host names: the certificate's file, and a server's context."""
    return _certificate(folder, names[0], [x509.DNSName(name) for name in names])


def certificate_for_address(folder: Path, address: str = "127.0.0.1") -> tuple[Path, ssl.SSLContext]:
    """For an address: the certificate's file, and a server's context."""
    return _certificate(folder, "mail.example.org", [x509.IPAddress(ip_address(address))])


def _certificate(
    folder: Path, common: str, others: Sequence[x509.GeneralName]
) -> tuple[Path, ssl.SSLContext]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
    now = datetime.now(UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(others), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        # Required by RFC 5280, which Python 3.13 and later enforce.
        .add_extension(_SIGNS, critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    chain, keyfile = folder / f"{common}.pem", folder / f"{common}.key"
    chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem, kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    keyfile.write_bytes(key.private_bytes(pem, kind, serialization.NoEncryption()))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(chain, keyfile)
    return chain, context
