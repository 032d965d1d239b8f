"""Says from which node of a program a decomposition made a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def origins(before: Any, after: Any) -> Iterator[tuple[Any, Any]]:
    """Yields each call in the graph `after` a decomposition, with the node of the graph `before` that it came from.
    Leaves out nodes of which torch does not tell it."""
    named = {node.name: node for node in before.nodes}
    for node in after.nodes:
        if node.op != "call_function":
            continue
        sources = (one.name for one in node.meta.get("from_node") or ())
        source = next((named[name] for name in sources if name in named), None)
        if source is not None:
            yield node, source
