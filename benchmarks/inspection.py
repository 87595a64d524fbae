"""Parsing and inspecting a 2-of-3 spend, compared with libraries that only parse it."""

import base64
import gc
import warnings
from dataclasses import replace
from functools import partial

import bdkpython
from embit.psbt import PSBT as EmbitPsbt  # noqa: N811 - a class named like a constant
from hwilib.psbt import PSBT as HwiPsbt  # noqa: N811 - a class named like a constant

from benchmarks.measure import best_ms
from multisig import ChangeTo, Psbt, PsbtLimits, TxOut, Vault, build_psbt, inspect, sats
from tests.support.wallets import fund, make_vault, pay

SIZES = ((1, 1), (10, 10), (100, 1), (100, 100), (1_000, 1), (1_000, 1_000), (2_000, 2_000))
INPUT_SATS = 100_000
# The last size is beyond what is ever accepted (1,000 inputs): only this benchmark lets it in,
# to see whether the cost stays linear.
LIMITS = PsbtLimits()
WIDER_LIMITS = PsbtLimits(max_bytes=8 * 1024 * 1024, max_inputs=2_000, max_outputs=LIMITS.max_outputs)


def spend(n_inputs: int, n_outputs: int) -> bytes:
    vault = make_vault()
    coins = [fund(vault, INPUT_SATS, index=index) for index in range(n_inputs)]
    share = n_inputs * INPUT_SATS // (n_outputs + 1) - 1_000
    shops = (pay(share, f"shop {index}") for index in range(n_outputs))
    outputs: list[TxOut | ChangeTo] = [*shops, ChangeTo(sats(share), 1, 7)]
    if n_inputs <= LIMITS.max_inputs:
        return build_psbt(vault, coins, outputs, 0).to_bytes()
    # The library builds nothing beyond the limit either: two halves are joined.
    half = n_inputs // 2
    whole = joined(
        build_psbt(vault, coins[:half], outputs[:half], 0), build_psbt(vault, coins[half:], outputs[half:], 0)
    )
    return whole.to_bytes()


def joined(one: Psbt, other: Psbt) -> Psbt:
    tx = replace(one.tx, inputs=one.tx.inputs + other.tx.inputs, outputs=one.tx.outputs + other.tx.outputs)
    return Psbt(tx, one.inputs + other.inputs, one.outputs + other.outputs, one.xpubs)


def inspect_bytes(data: bytes, vault: Vault, limits: PsbtLimits) -> None:
    inspection = inspect(Psbt.parse(data, limits), vault, network=vault.network)
    if not inspection.ok:
        raise RuntimeError(inspection.findings)


def _read_by_hwi(text: str) -> None:
    HwiPsbt().deserialize(text)


def main() -> None:
    print("inspection of a 2-of-3 spend, milliseconds (best of five); the peers only parse")
    print(f"{'inputs × outputs':>18} {'ours':>9} {'embit':>9} {'HWI':>9} {'bdk':>9} {'ours ÷ bdk':>11}")
    gc.disable()
    for n_inputs, n_outputs in SIZES:
        data = spend(n_inputs, n_outputs)
        text = base64.b64encode(data).decode()
        vault = make_vault()
        limits = WIDER_LIMITS if n_inputs > LIMITS.max_inputs else LIMITS

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine = best_ms(partial(inspect_bytes, data, vault, limits))
            embit = best_ms(partial(EmbitPsbt.parse, data))
            theirs = best_ms(partial(_read_by_hwi, text))
            bdk = best_ms(partial(bdkpython.Psbt, text))
        print(
            f"{f'{n_inputs} × {n_outputs}':>18} {mine:9.2f} {embit:9.2f} "
            f"{theirs:9.2f} {bdk:9.2f} {mine / bdk:11.2f}"
        )
    gc.enable()
