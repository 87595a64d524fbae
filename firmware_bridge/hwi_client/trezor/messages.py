"""Addresses and transactions of a policy as Trezor's messages (messages-bitcoin.proto)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from firmware_bridge.hwi_client.base import cosigner_keys
from firmware_bridge.hwi_client.trezor.library import btc, messages
from firmware_bridge.operations import PolicyText
from multisig import ExtendedPublicKey, KeyOrigin, Network, Psbt, Transaction, encode_address, parse_op_return
from multisig.psbt import PsbtOutput
from multisig.transaction import SIGHASH_ALL, TxIn


def coin_of(network: Network) -> str:
    return "Bitcoin" if network is Network.MAINNET else "Testnet"


class PolicyMessages:
    """A policy for the device with this fingerprint.

    :raises BridgeError: the device has no key in it.
    """

    def __init__(self, policy: PolicyText, fingerprint: str, network: Network) -> None:
        self._policy = policy
        self._keys, self._own = cosigner_keys(policy, fingerprint, network)
        # A Trezor has one test network, whose addresses begin with tb1.
        self._network = network if network is Network.MAINNET else Network.TESTNET4

    def address(self, chain: int, index: int) -> dict[str, Any]:
        """The fields of a message that say which address of the policy it is about."""
        multisig = self._multisig(chain, index) if self._policy.is_vault else None
        return {"address_n": [*self._own.origin.path, chain, index], "multisig": multisig}

    def _multisig(self, chain: int, index: int) -> Any:
        # Firmware from T1 1.13.0 and core 2.8.7 shows change as a payment without the order, which is part of
        # the wallet. Older firmware does not know it, so that the keys are sorted here, too.
        def place(xpub: ExtendedPublicKey) -> bytes:
            return xpub.derive_public_key(chain, index)

        ordered = sorted((key.xpub for key in self._keys), key=place)
        return messages.MultisigRedeemScriptType(
            m=self._policy.threshold,
            pubkeys=[messages.HDNodePathType(node=_node(xpub), address_n=[chain, index]) for xpub in ordered],
            signatures=[b""] * len(ordered),
            pubkeys_order=messages.MultisigPubkeysOrder.LEXICOGRAPHIC,
        )

    def sign(self, connection: Any, psbt: Psbt) -> Psbt:
        """The PSBT with a signature of the device in each input. All are the policy's, with their previous
        transactions.
        """
        previous = {
            bytes.fromhex(item.non_witness_utxo.txid): _previous(item.non_witness_utxo)
            for item in psbt.inputs
            if item.non_witness_utxo is not None
        }
        places = [_place(item.derivations) for item in psbt.inputs]
        inputs = [
            messages.TxInputType(
                **_spent(item),
                **self.address(*place),
                amount=previous[bytes.fromhex(item.outpoint.txid)].bin_outputs[item.outpoint.vout].amount,
                script_type=messages.InputScriptType.SPENDWITNESS,
            )
            for item, place in zip(psbt.tx.inputs, places, strict=True)
        ]
        signatures, _nothing = btc.sign_tx(
            connection,
            coin_of(self._network),
            inputs,
            [self._output(item) for item in psbt.outputs],
            prev_txes=previous,
            version=psbt.tx.version,
            lock_time=psbt.tx.locktime,
            serialize=False,
        )
        keys = [self._own.xpub.derive_public_key(*place) for place in places]
        signed = (
            replace(item, partial_signatures={key: made + bytes([SIGHASH_ALL]), **item.partial_signatures})
            for item, key, made in zip(psbt.inputs, keys, signatures, strict=True)
        )
        return replace(psbt, inputs=tuple(signed))

    def _output(self, item: PsbtOutput) -> Any:
        kinds, data = messages.OutputScriptType, parse_op_return(item.script_pubkey)
        if item.derivations:
            fields = {"script_type": kinds.PAYTOWITNESS, **self.address(*_place(item.derivations))}
        elif data is not None:
            fields = {"script_type": kinds.PAYTOOPRETURN, "op_return_data": data}
        else:
            fields = {"address": encode_address(item.script_pubkey, self._network)}
        return messages.TxOutputType(amount=item.amount, **fields)


def _place(derivations: Mapping[bytes, KeyOrigin]) -> tuple[int, int]:
    """Chain and index, which all keys of a script share."""
    *_account, chain, index = next(iter(derivations.values())).path
    return chain, index


def _previous(tx: Transaction) -> Any:
    return messages.TransactionType(
        version=tx.version,
        lock_time=tx.locktime,
        inputs=[messages.TxInputType(**_spent(item), script_sig=item.script_sig) for item in tx.inputs],
        bin_outputs=[
            messages.TxOutputBinType(amount=item.amount, script_pubkey=item.script_pubkey)
            for item in tx.outputs
        ],
    )


def _spent(item: TxIn) -> dict[str, Any]:
    outpoint = item.outpoint
    return {
        "prev_hash": bytes.fromhex(outpoint.txid),
        "prev_index": outpoint.vout,
        "sequence": item.sequence,
    }


def _node(xpub: ExtendedPublicKey) -> Any:
    return messages.HDNodeType(
        depth=xpub.depth,
        fingerprint=int.from_bytes(bytes(xpub.parent_fingerprint), "big"),
        child_num=xpub.child_number,
        chain_code=xpub.chain_code,
        public_key=xpub.public_key,
    )
