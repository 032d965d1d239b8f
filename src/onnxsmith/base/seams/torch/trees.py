"""Gives access to torch's functions for nested containers of tensors: `torch.utils._pytree`.

torch's exporters use them throughout; the functions have no public names yet. Compared with torch 2.11 to 2.14. If a
name is gone, importing this module raises a Problem.
"""

from __future__ import annotations

import torch  # noqa: F401 — if torch is missing, the error has to say so, not name a private function

from onnxsmith.base.seams.base import required

_NAMES = (
    "GetAttrKey", "MappingKey", "SequenceKey", "SUPPORTED_NODES", "_get_node_type", "register_pytree_node",
    "tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_structure", "tree_unflatten",
)  # fmt: skip
REACHES = tuple(f"torch.utils._pytree:{name}" for name in _NAMES)

(
    GetAttrKey, MappingKey, SequenceKey, SUPPORTED_NODES, node_type, register_pytree_node,
    tree_flatten, tree_leaves, tree_map, tree_map_only, tree_structure, tree_unflatten,
) = (required(path) for path in REACHES)  # fmt: skip
