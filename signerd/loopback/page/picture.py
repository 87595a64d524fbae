"""The diagram of a proposal: what its transaction spends and pays, as this machine parsed it."""

from custody.pages.flow import Flow, Picture, address_lines, draw
from signerd.core.text import count, place_words
from signerd.shapes import MoneyView


def picture_of(money: MoneyView, *, whose: str) -> Picture:
    """``whose``: the owner of the change, in words."""
    coins = [Flow("coin", coin.amount_sats, f"Coin {n}") for n, coin in enumerate(money.coins, start=1)]
    return draw(coins, _outputs(money, whose))


def _outputs(money: MoneyView, whose: str) -> tuple[Flow, ...]:
    return (
        *(Flow("pay", p.amount_sats, "Pays", address_lines(p.on_screen)) for p in money.payments),
        *(
            Flow(
                "back",
                c.amount_sats,
                f"Back to {whose}",
                ((place_words(c.chain, c.index),), *address_lines(c.on_screen)),
            )
            for c in money.change
        ),
        *(Flow("data", 0, f"Data, {count(len(d.data) // 2, 'byte', 'bytes')}") for d in money.data),
        Flow("fee", money.fee_sats, "Network fee"),
    )
