"""Nested containers of tensors, as torch takes them apart: `torch.utils._pytree`.

torch has no public name for it yet, and its exporters use it throughout. Compared with torch 2.11 to 2.13. Where a name
is gone, importing this raises a Problem.
"""

from __future__ import annotations

import torch  # noqa: F401 — where it is absent, that is said first

from onnxsmith.seams.base import required

_NAMES = (
    "GetAttrKey", "MappingKey", "SequenceKey", "SUPPORTED_NODES", "_get_node_type", "register_pytree_node",
    "tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_structure", "tree_unflatten",
)  # fmt: skip
REACHES = tuple(f"torch.utils._pytree:{name}" for name in _NAMES)

(
    GetAttrKey, MappingKey, SequenceKey, SUPPORTED_NODES, node_type, register_pytree_node,
    tree_flatten, tree_leaves, tree_map, tree_map_only, tree_structure, tree_unflatten,
) = (required(path) for path in REACHES)  # fmt: skip
