"""The result of one condition on one node."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outlook(StrEnum):
    """What a profile foresees for a node, the best first."""

    FITS = "fits"
    UNKNOWN = "unknown"
    REFUSED = "refused"


@dataclass(frozen=True)
class Finding:
    """A condition that a node does not meet, or that cannot be judged. `source` is a link; "" is the profile's."""

    outlook: Outlook
    reason: str
    source: str = ""


def refused(reason: str, source: str = "") -> Finding:
    """A condition that the node does not meet."""
    return Finding(Outlook.REFUSED, reason, source)


def unknown(reason: str, source: str = "") -> Finding:
    """A condition that cannot be judged."""
    return Finding(Outlook.UNKNOWN, reason, source)
