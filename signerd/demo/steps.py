"""What the demo tells: its steps, each a title and what happens there and why."""

from typing import Final

_TOLD = """
Everything starts
A custody platform, a Ledger, a Coldcard and a Trezor in software, and a signerd for each of them: seven
programs on this machine. One private network stands behind every name of a network that you will see
(signet, testnet). Its coins are worthless.

Three signers join
The treasurer of an organisation invites three people. Each signs their own signerd in at the platform. From
now on each signer checks alone: no signerd believes the platform or another signer.

The devices give their keys
A device never gives a private key away. It shows a message and signs it, which proves that the public key
is its own. Press the right-hand button of each device that asks.

A vault is made, and pinned
Two of the three keys are needed to spend from it. To pin a vault is to store its keys on the signer's
machine, once the signer has compared its code with the other signers, and its first address with the
device. Whatever the platform claims later, signerd goes by what is pinned.

Money comes in
Somebody pays 0.5 BTC to the vault. The platform sees it in a block.

A payment is proposed
The treasurer proposes a payment. The platform writes the transaction (a PSBT), and each signerd checks it
from its own bytes: whose coins, which payee, how much change and fee.

The first signer approves
signerd shows where the money goes. After your yes the device shows it again, on its own screen: with a real
device, no program of your computer can write there. Without the device's button nothing is signed.

The second signer approves
Another person, another machine, another maker's device: the same checks.

The payment is made
Two of three have signed. The platform puts both signatures into the transaction and broadcasts it, and a
miner takes it into a block.

A token lives
The vault makes a token, sends some of it, stops all transfers and destroys a part: five more proposals,
each signed by two.

That was the whole job
Everything goes on running until you stop it. Open the pages of the signers, or propose a payment of your
own in the console: two signers approve it, and a block takes it.

The demo ends here
You left out a step that the next ones need. What has started goes on running until you stop it.
"""

*STEPS, TOKEN, END, LEFT_OUT = (
    (title, " ".join(reason.split()))
    for title, _, reason in (one.partition("\n") for one in _TOLD.strip().split("\n\n"))
)
SECOND_APPROVAL: Final = 8
