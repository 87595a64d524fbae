"""A virtual Coldcard without a cable: it enrols, reviews and signs from files and QR codes."""

import base64
from itertools import count

from device_simulators.coldcard.flows import sign
from device_simulators.coldcard.replies import TransactionRefused
from device_simulators.coldcard.review import read, review, wallet_of
from device_simulators.coldcard.story import MESSAGE_HEADERS, Format
from device_simulators.coldcard.wallet import WalletStore
from device_simulators.coldcard.wallet_file import parse_wallet_file
from device_simulators.faults import Faults
from firmware_bridge.airgap import bbqr
from firmware_bridge.airgap.transfer import Content
from multisig import (
    RECEIVE,
    DerivationPath,
    Network,
    Vault,
    message_hash,
    multisig_account_path,
    profile_account_path,
)
from tests.support.virtual import NETWORK, holder, seed
from tests.support.wallets import BOB, CAROL

SEED = seed()
# Of the device's own key, Bob's and Carol's.
VAULT = Vault(NETWORK, 2, (holder(0).vault_key(), BOB.vault_key(), CAROL.vault_key()))


class CardDevice:
    """Approves everything that the device does not refuse by itself."""

    def __init__(self, seed=SEED, faults=None):
        self.seed = seed
        self._faults = faults or Faults()
        self._store = WalletStore(NETWORK)

    def export_generic(self):
        """`coldcard-export.json`, only the parts that the firmware writes for other programs."""
        paths = {"bip84": profile_account_path(NETWORK), "bip48_2": multisig_account_path(NETWORK)}
        accounts = {
            name: {"deriv": str(path).replace("h", "'"), "xpub": str(self.seed.xpub(path, NETWORK))}
            for name, path in paths.items()
        }
        return {"chain": "XRT", "xfp": self.seed.fingerprint.hex.upper(), "account": 0, **accounts}

    def enrol(self, content):
        """Enrols the vault and returns the first receive address on its screen, in testnet's form."""
        wallet = parse_wallet_file(content, self.seed, NETWORK)
        self._store.keep(wallet)
        return Vault(Network.TESTNET4, wallet.threshold, wallet.cosigners).address(RECEIVE, 0)

    def sign_text_file(self, content):
        """Advanced, File Management, Sign Text File: `challenge-signed.txt`."""
        text, path, kind = content.splitlines()
        assert kind == "p2wpkh"
        header = MESSAGE_HEADERS[Format.P2WPKH]
        signed = self.seed.sign_recoverable(DerivationPath.parse(path), message_hash(text), header=header)
        return "\n".join(
            (
                "-----BEGIN BITCOIN SIGNED MESSAGE-----",
                text,
                "-----BEGIN BITCOIN SIGNATURE-----",
                "tb1qthe-address-that-signed",
                base64.b64encode(signed).decode(),
                "-----END BITCOIN SIGNATURE-----",
                "",
            )
        )

    def sign_bytes(self, content):
        psbt = read(content)
        wallet, on_record = wallet_of(psbt, self.seed, self._store)
        if not on_record:
            raise TransactionRefused("Refused to import new wallet")
        return sign(review(psbt, self.seed, wallet), self.seed, self._faults).to_bytes()

    def sign_file(self, request, ending="part"):
        """Writes the answer beside the request, in its form, under the firmware's first free name."""
        content = request.read_bytes()
        is_text = content.startswith(b"cHNidP")
        signed = self.sign_bytes(base64.b64decode(content) if is_text else content)
        answer = _free_name(request, ending)
        answer.write_bytes(base64.b64encode(signed) if is_text else signed)
        return answer

    def sign_codes(self, texts):
        """The QR codes on its screen after it has read ``texts``."""
        assembler = bbqr.BbqrAssembler()
        for text in texts:
            assembler.add(text)
        return bbqr.split(self.sign_bytes(assembler.result.data), Content.PSBT, max_characters=400)


def slip132(xpub, form=None):
    """The same key with a prefix of SLIP-132, if no other then that for multisig P2WSH."""
    from multisig import encodings

    version = form or {"0488b21e": "02aa7ed3", "043587cf": "02575483"}[xpub.serialize()[:4].hex()]
    return encodings.encode_base58check(bytes.fromhex(version) + xpub.serialize()[4:])


def _free_name(request, ending):
    stem = request.stem.replace("-part", "") if ending == "part" else request.stem
    for number in count(1):
        mark = "" if number == 1 else f"-{number}"
        path = request.with_name(f"{stem}-{ending}{mark}.psbt")
        if not path.exists():
            return path
    raise AssertionError
