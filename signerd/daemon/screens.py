"""The screens of the signer's device for a proposal, for comparison."""

from collections.abc import Mapping
from types import MappingProxyType

from firmware_bridge import Device
from firmware_bridge.screens import Output, Payment, Proof, Screen, payment_screens, proof_screens
from multisig import Inspection, Network
from multisig.inspection import ProofOfControl
from signerd.core.addresses import address_on_screen, on_screen
from signerd.core.text import plain
from signerd.core.titles import NO_PINNED, Pinned
from signerd.daemon.devices import screen_of
from signerd.shapes import FigureView, ScreenView

NO_WORDS: Mapping[str | None, str] = MappingProxyType({})


def device_screens(
    device: Device, inspection: Inspection, pinned: Pinned = NO_PINNED
) -> tuple[ScreenView, ...]:
    """Empty where the screens of the device's maker are not known."""
    if inspection.proof is not None:
        return tuple(_view(screen) for screen in _of_proof(device, inspection.network, inspection.proof))
    found = payment_screens(device.family, inspection.network, _as_told(device, inspection))
    words = {on_screen(script, inspection.network): place.words for script, place in pinned.items()}
    return tuple(_view(screen, words) for screen in found)


def _of_proof(device: Device, network: Network, proof: ProofOfControl) -> tuple[Screen, ...]:
    address = address_on_screen(proof.address, network)
    return proof_screens(device.family, network, Proof(proof.message, address, int(proof.total)))


def _view(screen: Screen, words: Mapping[str | None, str] = NO_WORDS) -> ScreenView:
    return ScreenView(
        figures=tuple(
            FigureView(label=one.label, value=plain(one.value), pinned=words.get(one.value)) for one in screen
        )
    )


def _as_told(device: Device, inspection: Inspection) -> Payment:
    network = inspection.network
    outputs = {
        paid.output_index: Output(
            int(paid.amount),
            "a script without an address"
            if paid.address is None
            else address_on_screen(paid.address, network),
        )
        for paid in inspection.payments
    }
    for data in inspection.op_returns:
        outputs[data.output_index] = Output(0, data=_data(device, data.data))
    back = [Output(int(one.amount), address_on_screen(one.address, network)) for one in inspection.change]
    return Payment([outputs[index] for index in sorted(outputs)], back, int(inspection.fee))


def _data(device: Device, data: bytes) -> str:
    """The data as shown, with dots where it is cut; in full where the screen is unknown."""
    screen = screen_of(device)
    size = len(data) if screen.whole is None else screen.shown(len(data))
    return data[:size].hex() + ("" if size == len(data) else "…")
