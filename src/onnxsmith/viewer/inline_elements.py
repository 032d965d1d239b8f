"""Writes what stands inside a page: JSON in a `<script>` element, and the hash that lets an element in."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any


def as_json(data: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Writes data as ASCII text that is safe inside a `<script>` element. Whatever the names in the data are, no
    character can end the element or begin another. `default` turns objects into plain data."""
    text = json.dumps(data, default=default, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def policy_hash(text: str) -> str:
    """Returns the hash of an inline element, in the form of a content security policy."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
