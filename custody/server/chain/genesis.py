"""The first block of each network: what tells networks apart that look alike."""

from multisig.network import Network

# Bitcoin Core, kernel/chainparams.cpp; testnet4 also in BIP-94. Every signet has the same one, whatever its challenge.
GENESIS_HASH = {
    Network.MAINNET: "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f",
    Network.TESTNET4: "00000000da84f2bafbbc53dee25a72ae507ff4914b867c565be350b0da8bf043",
    Network.SIGNET: "00000008819873e925422c1ff0f99f7cc9bbb232af63a077a480a3633bee1ef6",
    Network.REGTEST: "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206",
}
