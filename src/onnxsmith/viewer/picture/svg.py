"""Writes a picture as SVG, without scripts or embedded fonts, and with every name escaped."""

from __future__ import annotations

from xml.sax.saxutils import escape

from onnxsmith.base.printable import printable
from onnxsmith.viewer.picture.picture_elements import Box, Line, Picture, Text

_STACK = 4.0
"""Sets the offset of the second box of a stack, in pixels."""
STEEP = 0.65
"""Says how far a curve stays near the vertical at both ends, as a share of its height."""
_ARROW = (
    '<defs><marker id="arrow" markerWidth="8" markerHeight="8" refX="6" refY="3" orient="auto">'
    '<path d="M0,0 L6,3 L0,6 z" fill="#6b7280"/></marker></defs>'
)
_FONT = "Helvetica, Arial, sans-serif"


def to_svg(picture: Picture) -> str:
    """Returns the text of an SVG file."""
    width, height = round(picture.width), round(picture.height)
    size = f'width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" font-family="{_FONT}">',
        f"<title>{_said(picture.title)}</title>",
        _ARROW,
        f'<rect {size} fill="#ffffff"/>',
        *map(_line, picture.lines),
        *map(_box, picture.boxes),
        *map(_text, picture.texts),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _line(line: Line) -> str:
    dashes = ' stroke-dasharray="4 3"' if line.dashed else ""
    marker = ' marker-end="url(#arrow)"' if line.arrow else ""
    return f'<path d="{way(line)}" fill="none" stroke="{line.colour}" stroke-width="1.2"{dashes}{marker}/>'


def way(line: Line) -> str:
    """Returns the SVG path of a line. Each piece leaves and reaches its points vertically."""
    (x, y), *rest = line.points
    found = [f"M{x:.1f},{y:.1f}"]
    for to_x, to_y in rest:
        reach = STEEP * (to_y - y)
        curve = f"C{x:.1f},{y + reach:.1f} {to_x:.1f},{to_y - reach:.1f} {to_x:.1f},{to_y:.1f}"
        found.append(f"V{to_y:.1f}" if abs(to_x - x) < 0.05 else curve)
        x, y = to_x, to_y
    return " ".join(found)


def _box(box: Box) -> str:
    shift = (_STACK, 0.0) if box.stacked else (0.0,)
    return "".join(
        f'<rect x="{box.x + by:.1f}" y="{box.y - by:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="{box.radius:g}" fill="{box.fill}" stroke="{box.line}" stroke-width="1.2"/>'
        for by in shift
    )


def _text(text: Text) -> str:
    weight = ' font-weight="600"' if text.bold else ""
    halo = ' stroke="#ffffff" stroke-width="3" paint-order="stroke"' if text.anchor == "start" else ""
    return (
        f'<text x="{text.x:.1f}" y="{text.y:.1f}" font-size="{text.size:g}" text-anchor="{text.anchor}" '
        f'fill="{text.colour}"{weight}{halo}>{_said(text.text)}</text>'
    )


def _said(text: str) -> str:
    """Escapes a text, its hidden characters too, and replaces the characters that XML does not allow."""
    return escape("".join(one if _allowed(one) else "\ufffd" for one in printable(text)))


def _allowed(one: str) -> bool:
    code = ord(one)
    return code in (9, 10, 13) or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or code > 0xFFFF
