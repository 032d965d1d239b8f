"""`metadata`: sets and removes the metadata of the model, of its graph, of nodes and of tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from onnxsmith.base import name_patterns
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import problem
from onnxsmith.base.words import first_few, several
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.steps.base import Step

_OWN = "onnxsmith."
"""Begins the keys that onnxsmith writes and reads itself: ranges of dimensions, arbitrary signs."""
_SHOWN = 5
"""Limits the keys that a line of the report names. A choice: one line."""
_OF_PARTS = 10
"""The first version of the IR in which graphs, nodes and tensors have metadata (onnx.proto, IR_VERSION_2024_3_25)."""
_Holder = ir.Model | ir.Graph | ir.Node | ir.Value


@dataclass(frozen=True)
class Metadata(Step):
    """Sets the metadata `set`, a table of keys and values, and removes the keys `remove`, in which `*` stands for any
    characters. A text is stored as it is. A number, `true`, a list or a table is stored as JSON, because ONNX stores
    texts only. The metadata belongs to the model; with `graph` to its graph, and with `node` or `tensor` to the
    selected nodes or tensors."""

    first = ("set",)

    set: Mapping[str, Any] = field(default_factory=dict)
    remove: str | list[str] | tuple[str, ...] = ()
    node: Any = None
    tensor: Any = None
    graph: bool = False

    def apply(self, work: Work) -> str:
        if not self.set and not self.remove:
            raise _argument(
                "metadata changes nothing", "both set and remove are empty", 'write set = { author = "me" }'
            )
        texts = {key: _text(key, value) for key, value in self.set.items()}
        holders, label = self._holders(work)
        before = [work.metadata(one) if isinstance(one, ir.Value) else dict(one.metadata_props) for one in holders]
        removed = self._removed(list(dict.fromkeys(key for held in before for key in held)), label)
        for one, held in zip(holders, before, strict=True):
            new = {key: text for key, text in held.items() if key not in removed} | texts
            if isinstance(one, ir.Value):
                work.set_metadata(one, new)
            else:
                one.metadata_props.clear()
                one.metadata_props.update(new)
        version = work.model.ir_version or 0
        if label != "the model" and version < _OF_PARTS:
            work.notes.append(
                f"in IR version {version} only the model has metadata; readers may ignore that of {label}"
            )
        said = [f"{key} = {text}" for key, text in texts.items()] + [f"{key} removed" for key in removed]
        return f"{label}: {first_few(said, _SHOWN)}"

    def _holders(self, work: Work) -> tuple[Sequence[_Holder], str]:
        """Returns what has the metadata, and its name in the report."""
        given = [name for name in ("node", "tensor") if getattr(self, name) is not None] + ["graph"] * self.graph
        if len(given) > 1:
            raise _argument("metadata has one place", f"the step has {' and '.join(given)}", f"leave {given[-1]} out")
        if self.node is not None:
            nodes = work.find.nodes(self.node)
            return nodes, several(len(nodes), "node")
        if self.tensor is not None:
            tensors = work.find.tensors(self.tensor)
            return tensors, several(len(tensors), "tensor")
        return ([work.model.graph], "the graph") if self.graph else ([work.model], "the model")

    def _removed(self, there: list[str], label: str) -> list[str]:
        """Returns the keys that `remove` selects among those that are there."""
        found: list[str] = []
        for pattern in [self.remove] if isinstance(self.remove, str) else self.remove:
            fitting = name_patterns.fitting(there, pattern)
            if not fitting:
                near = near_names(pattern, there, 1)
                raise problem(
                    "edit/no-match",
                    f"{label} has no metadata {pattern!r}",
                    why=f"the keys are {first_few(there, _SHOWN)}" if there else "it has no metadata",
                    fix=f"write remove = {json.dumps(near[0])}" if near else "leave the key out of remove",
                )
            found += fitting
        return [key for key in dict.fromkeys(found) if key not in self.set]


def _text(key: str, value: Any) -> str:
    """Returns the text that a file stores for a value."""
    if not key or key.startswith(_OWN):
        why = f"onnxsmith itself writes and reads the keys that begin with {_OWN}" if key else "the key is empty"
        raise _argument(
            f"metadata cannot have the key {key!r}", why, 'write another key, such as set = { author = "me" }'
        )
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:  # an encoding error is a ValueError
        raise _argument(
            f"the value of {key} cannot be metadata", f"{type(value).__name__}: {error}", "write it as a text"
        ) from error
    return text


def _argument(what: str, why: str, fix: str) -> Exception:
    return problem("edit/step-argument", what, why=why, fix=fix)
