"""Defines the result of one condition on one node."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outlook(StrEnum):
    """Lists the predictions of a profile for a node, the best first."""

    FITS = "fits"
    UNKNOWN = "unknown"
    REFUSED = "refused"


@dataclass(frozen=True)
class Finding:
    """Describes a condition that a node does not meet, or that cannot be judged. `source` is a link; "" stands for the
    profile's source."""

    outlook: Outlook
    reason: str
    source: str = ""


def refused(reason: str, source: str = "") -> Finding:
    """Returns the finding that the node does not meet a condition."""
    return Finding(Outlook.REFUSED, reason, source)


def unknown(reason: str, source: str = "") -> Finding:
    """Returns the finding that a condition cannot be judged."""
    return Finding(Outlook.UNKNOWN, reason, source)
