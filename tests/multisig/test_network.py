from multisig import Network, NetworkKind


def test_constants():
    seen = {
        network.value: (
            network.api_name, network.coin_type, network.hrp, network.xpub_version.hex(),
            network.p2pkh_prefix, network.p2sh_prefix,
        )
        for network in Network
    }  # fmt: skip
    testnet = ("043587cf", 111, 196)
    assert seen == {
        "mainnet": ("mainnet", 0, "bc", "0488b21e", 0, 5),
        "testnet4": ("testnet", 1, "tb", *testnet),
        "signet": ("testnet", 1, "tb", *testnet),
        "regtest": ("testnet", 1, "bcrt", *testnet),
    }


def test_kinds():
    assert {network.kind for network in Network if network is not Network.MAINNET} == {NetworkKind.TESTNET}
