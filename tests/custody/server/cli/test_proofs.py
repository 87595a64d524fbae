"""``custody proof verify``: a file, and a chain only where one is named."""

import json
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import Result

from custody.common.terminal import Exit
from custody.schemas.proofs import AT_BLOCK, CoinOfProof, ProofFile, SignedFor
from custody.server.chain import configuration
from custody.server.chain.embedded import EmbeddedChain
from custody.server.chain.engine import consensus
from custody.server.cli.proofs import check_coins
from custody.server.rules.proving import judge
from multisig import CoinToSpend, Sats
from tests.support.operator import custody
from tests.support.proofs import MESSAGE, signed_proof
from tests.support.regtest import FakeClock, coin_of
from tests.support.wallets import fund, make_vault

VAULT = make_vault()
COINS = [fund(VAULT, 40_000, index=1), fund(VAULT, 70_000, index=2, chain=1)]


def proof_of(spent=(), *, height=None, block_hash=None) -> ProofFile:
    message = MESSAGE if height is None else MESSAGE + AT_BLOCK.format(height=height, hash=block_hash)
    signature = signed_proof(VAULT, spent, message=message)
    listed = [
        CoinOfProof(outpoint=str(c.outpoint), amount_sats=c.amount, address=VAULT.address(c.chain, c.index))
        for c in spent
    ]
    signatures = [SignedFor(address=VAULT.address(0, 0), signature=str(signature))]
    where = {"network": "regtest", "height": height, "block_hash": block_hash}
    return ProofFile(message=message, signatures=signatures, coins=listed, **where)


AT = {"height": 101, "block_hash": "ab" * 32}


def verified(proof: ProofFile, folder: Path, *arguments: str) -> Result:
    file = folder / "proof.json"
    file.write_text(proof.model_dump_json())
    return custody("proof", "verify", file, *arguments)


def test_it_says_who_signed_what_and_that_no_chain_was_asked(tmp_path: Path) -> None:
    said = verified(proof_of(COINS, **AT), tmp_path)
    assert said.exit_code == Exit.OK, said.output
    for words in (
        "The proof is valid, on regtest.",
        f'Message: "{MESSAGE} (block 101, {"ab" * 32})"',
        f"{VAULT.address(0, 0)}: valid",
        "2 coins signed for, 0.00110000 BTC (110,000 sats), at block 101",
        "was not checked",
    ):
        assert words in said.output
    told = json.loads(verified(proof_of(COINS, **AT), tmp_path, "--json").output)
    assert (told["state"], told["signed_sats"], told["unsigned_sats"]) == ("valid", 110_000, 0)
    assert [coin["signed"] for coin in told["coins"]] == [True, True]
    assert "It speaks of no coins." in verified(proof_of(), tmp_path).output


def changed(model, **update):
    return model.model_copy(update=update)


def lies() -> dict[str, ProofFile]:
    honest = proof_of(COINS, **AT)
    first, second = honest.coins
    more, others = changed(first, amount_sats=90_000), changed(first, outpoint="00" * 32 + ":0")
    at_it = changed(first, address=VAULT.address(0, 0))
    return {
        "another message": changed(honest, message="Another one."),
        "more than signed": changed(honest, coins=[more, second]),
        "a coin of others": changed(honest, coins=[*honest.coins, others]),
        "a coin left out": changed(honest, coins=[first]),
        "another network": changed(honest, network="mainnet"),
        "another height": changed(honest, height=900_000),
        "another block": changed(honest, block_hash="cd" * 32),
        "a block left out": changed(proof_of(**AT), height=None, block_hash=None),
        "coins beside a message without a block": changed(proof_of(), **AT, coins=[at_it]),
    }


@pytest.mark.parametrize("name", lies())
def test_what_was_not_signed_is_refused(name: str, tmp_path: Path) -> None:
    said = verified(lies()[name], tmp_path)
    assert said.exit_code == Exit.NOT_DECIDED
    assert "The proof is invalid" in said.output


def test_p96_coins_that_no_signature_names_count_apart_and_prove_nothing_alone(tmp_path: Path) -> None:
    other = CoinOfProof(outpoint="00" * 32 + ":0", amount_sats=21_000_000, address=VAULT.address(0, 0))
    proof = proof_of(COINS, **AT)
    proof = changed(proof, coins=[*proof.coins, other])
    said = verified(proof, tmp_path)
    assert said.exit_code == Exit.NOT_DECIDED
    assert "The proof is inconclusive" in said.output
    assert "1 coin that no signature names, 0.21000000 BTC" in said.output
    assert judge(proof, consensus).state(asked_chain=True) == "valid"
    told = json.loads(verified(proof, tmp_path, "--json").output)
    assert (told["state"], told["signed_sats"]) == ("inconclusive", 110_000)
    assert told["unsigned_sats"] == 21_000_000


def test_p94_no_text_of_the_file_writes_a_line_of_ours(tmp_path: Path) -> None:
    forged = "x\nThe chain, at block 900,000, had each of these coins unspent.\x1b[2A\u202e"
    proof, bad = proof_of(COINS, **AT), SignedFor(address=f"bcrt1{forged}", signature="smp")
    signatures = [*proof.signatures, bad]
    proof = changed(proof, message=forged + "y" * 2_000, signatures=signatures)
    said = verified(proof, tmp_path)
    assert f"\nMessage: {json.dumps(proof.message)}\n" in said.output
    assert f"\n{json.dumps(bad.address)}: invalid" in said.output
    assert not [line for line in said.output.splitlines() if line.startswith("The chain")]
    assert not {"\x1b", "\u202e"} & {*said.output}


@pytest.mark.parametrize("text", ["", "{}", "[" * 100_000, '{"format": "bip322-proof-v1"}'])
def test_what_is_no_proof_file_is_told_so(text: str, tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    file.write_text(text)
    said = custody("proof", "verify", file)
    assert (said.exit_code, "is not a proof file" in said.stderr) == (Exit.FAILED, True)


def test_the_chain_tells_of_the_coins_at_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(EmbeddedChain(tmp_path / "chain", clock=FakeClock())) as chain:
        txid = chain.fund(VAULT.address(0, 3), Sats(50_000))
        (block,) = chain.mine(1)
        coin = coin_of(chain, txid, VAULT.script_pubkey(0, 3))
        transaction = chain.transaction(txid)
        assert transaction is not None
        mine = CoinToSpend(coin.outpoint, coin.amount, 0, 3, transaction.transaction)
        honest = proof_of([mine], height=block.height, block_hash=block.hash)
        assert check_coins(honest, chain).problems == ()
        earlier = chain.block_at(block.height - 1)
        assert earlier is not None
        too_early = proof_of([mine], height=earlier.height, block_hash=earlier.hash)
        assert check_coins(too_early, chain).problems
        elsewhere = proof_of([mine], height=block.height, block_hash="ab" * 32)
        assert "another block" in check_coins(elsewhere, chain).problems[0]
        # The first line is the verdict of all that was asked.
        asks = {name: getattr(chain, name) for name in ("tip", "block_at", "outputs_to")}
        stays_open = SimpleNamespace(**asks, close=lambda: None)
        monkeypatch.setattr(configuration, "open_backend", lambda *_, **_rest: stays_open)
        asked = "--chain", "esplora:https://explorer.example/api"
        said = verified(elsewhere, tmp_path, *asked)
        assert said.exit_code == Exit.NOT_DECIDED
        assert said.output.startswith("The proof is invalid, on regtest: the chain says otherwise.\n")
        assert json.loads(verified(elsewhere, tmp_path, "--json", *asked).output)["state"] == "invalid"
        assert verified(honest, tmp_path, *asked).output.startswith("The proof is valid, on regtest.\n")
        absent = proof_of(COINS, height=block.height, block_hash=block.hash)
        assert len(check_coins(absent, chain).problems) == 2
