"""A QR code as an image that a page shows without asking for a file."""

import segno

# Black on white whatever the scheme. Scanners look for a quiet zone of four modules (ISO/IEC 18004).
_BORDER = 4


def qr_image(text: str) -> str:
    """As a ``data:`` address of an SVG. Raises ValueError for what no code holds."""
    return str(
        segno.make(text, error="m", micro=False).svg_data_uri(border=_BORDER, light="#fff", dark="#000")
    )
