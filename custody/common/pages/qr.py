"""A QR code as an inline image of a page."""

import segno

# Black on white whatever the scheme. Scanners look for a quiet zone of four modules (ISO/IEC 18004).
_BORDER = 4


def qr_image(text: str) -> str:
    """A ``data:`` URL of an SVG. Raises ValueError for a text too long for a QR code."""
    return str(
        segno.make(text, error="m", micro=False).svg_data_uri(border=_BORDER, light="#fff", dark="#000")
    )
