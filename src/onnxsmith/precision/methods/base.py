"""Defines the base of methods, which change a model layer by layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import onnx_ir as ir

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.quantisation import LeftAlone
from onnxsmith.graph.structure import walk
from onnxsmith.precision.calibration_data import NONE, Samples
from onnxsmith.precision.channel_equalisation import Equalised
from onnxsmith.precision.forms.base import PRODUCTS, RECURRENT, Form
from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.model_preparation import Prepared
from onnxsmith.precision.moments import Moments
from onnxsmith.precision.quantisation_process import ONNXRUNTIME, Arithmetic, Engine
from onnxsmith.precision.ranges import Ranges
from onnxsmith.precision.weight_storage import LEAST, Rounded
from onnxsmith.runtimes.base import Runtime

ASKED = "the layer is on the given keep-list"
"""The reason for a layer, or its activations, that the user keeps."""
NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@dataclass(frozen=True)
class Layer:
    """A node that the method can change. `nbytes` is the size of its constant operands. `weights_alone` says why only
    these can become narrow; "" if activations can too."""

    name: str
    op: str
    nbytes: int
    weights_alone: str = ""


@dataclass
class Work:
    """The model on which a method works, and what was measured on it. `ranges` are None without data."""

    prepared: Prepared
    arithmetic: Arithmetic
    form: Form
    ranges: Ranges | None = None
    runtime: Runtime | None = None
    calibration: Samples = NONE
    clipped: Ranges | None = None
    """Narrower ranges, if a method has measured them."""
    equalised: Equalised | None = None
    """The model with equalised channels, if a method has made it."""
    held: dict[str, int] | None = None
    """By node, the bytes of the constants that a method can store in 8 bits, if it has looked for them."""
    fixed: Mapping[str, str] | None = None
    """Layers that cannot be stored in blocks, with the reasons, if a method has looked for them."""
    moments: Moments | None = None
    """Second moments of the activations that products read, if a method has asked for them."""
    rounded: dict[str, dict[str, Rounded]] = field(default_factory=dict)
    """For each form of the model, the 8-bit weights by node, if a method has rounded them with data."""
    name: str = ""
    """The name of the method, as the user gave it."""
    scheme: str = ""
    """The current scheme of the method."""
    listed: list[Layer] | None = None
    """The layers of the method, once they are final."""
    alone: Keep = frozenset()
    """Layers of which the user wants only the weights to be narrow."""
    eight: Keep = frozenset()
    """Layers whose weights the user wants in 8 bits instead of 4."""
    asked_scheme: str = ""
    """The scheme that the user's keep-list names."""
    asked_way: str = ""
    """The way to keep layers that the user's keep-list names."""
    is_asked: bool = False
    """Whether `asked_scheme` and `asked_way` are in use."""
    always: Keep = frozenset()
    """Layers that always stay as they are."""
    kept_as: str = ""
    """How the other layers of a keep-list are written: one of the method's `ways_to_keep`."""
    notes: list[str] = field(default_factory=list)
    declared: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The least and the greatest value of integer inputs, as the user declared them."""

    @property
    def model(self) -> ir.Model:
        """Returns the float32 model."""
        return self.prepared.model


class Method(ABC):
    """Changes layers to a narrower precision. Methods are found by walking this folder; the name on the command line is
    their id."""

    title: ClassVar[str]
    changes: ClassVar[str]
    """The operators that it changes, in words."""
    where: ClassVar[str] = ""
    """The condition under which it changes them, in words that follow `changes`."""
    opset: ClassVar[int]
    """The oldest opset that can hold the result; the model is raised to it."""
    needs_ranges: ClassVar[bool] = False
    needs_data: ClassVar[bool] = False
    """Whether the method computes from activations on data, without ranges."""
    bounds_integers: ClassVar[bool] = False
    """Whether the method bounds whole numbers, so that a declared range of an input has an effect."""
    has_forms: ClassVar[bool] = False
    """Whether the result depends on the form that a target needs."""
    engine: ClassVar[Engine] = ONNXRUNTIME
    """The library that computes the quantised weights."""
    instead: ClassVar[str] = ""
    """What the user should give if the method leaves every layer as it is; "" for another method that changes some."""
    for_speed: ClassVar[bool] = True
    """Whether a result that is slower here is refused. Narrow floats are not, because they are meant for other hardware
    than a CPU."""

    def refusal(self, form: Form, target: str | None) -> Problem | None:
        """Returns the problem if the method cannot be used here: its library is missing, or `target` needs another
        form."""
        return None

    @abstractmethod
    def layers(self, work: Work) -> list[Layer]:
        """Returns the nodes that the method can change, in the order of the graph."""

    @abstractmethod
    def variant(self, work: Work, keep: Keep) -> ir.Model:
        """Returns the model with all layers changed except those in `keep`."""

    def measured(self, work: Work, keep: Keep, variant: ir.Model) -> ir.Model:
        """Returns the model that is scored for a variant during the search; by default the variant itself."""
        return variant

    def schemes(self, work: Work) -> tuple[str, ...]:
        """Returns variations of the method with different size, speed and accuracy. The first that meets the budget is
        used, else the one with the best score."""
        return ("",)

    def ways_to_keep(self, work: Work) -> tuple[str, ...]:
        """Returns the ways to write layers that the budget keeps, the smallest first. The first way that meets the
        budget if all layers are kept is used. The last, "", leaves layers as they are."""
        return ("",)

    def named_way(self, work: Work) -> str:
        """Returns the current way, if a keep-list has to name it so that the file can be made again; else ""."""
        return ""

    def last_scheme(self, work: Work) -> str:
        """Returns the scheme to try if no way to keep layers meets the budget; "" for none."""
        return ""

    def stored(self, work: Work, keep: Keep) -> Keep:
        """Returns the layers of which only the weights become narrow with this keep-list."""
        return frozenset()

    def has_eight(self, work: Work) -> bool:
        """Whether single layers can have 8 bits instead of 4."""
        return False

    def eight(self, work: Work, keep: Keep) -> Keep:
        """Returns the layers that get 8 bits instead of 4 with this keep-list."""
        return frozenset()

    def listed(self, work: Work) -> list[Layer]:
        """Returns the layers, which are listed once for all variants."""
        return self.layers(work) if work.listed is None else work.listed

    def offers(self, work: Work, scheme: str) -> bool:
        """Whether the scheme differs from the schemes before it for this model."""
        return True

    def said(self, work: Work) -> tuple[str, ...]:
        """Returns the report's notes on the current scheme."""
        return ()

    def left(self, work: Work) -> tuple[LeftAlone, ...]:
        """Returns what the method does not change: by default the other products and recurrent layers with constants,
        and the other nodes with large ones."""
        own = {layer.name for layer in self.listed(work)}
        counts: Counter[tuple[str, str]] = Counter()
        sizes: Counter[tuple[str, str]] = Counter()
        usual = f"{work.name} does not change this layer" if work.name else "the method does not change this layer"
        for node in walk.nodes(work.model.graph):
            least = 0 if is_product(node) or node.op_type in RECURRENT else LEAST
            held = float_bytes(node, least) if node.name not in own else 0
            if held:
                narrow = next((one.name.lower() for one in _dtypes(node) if one in NARROW), "")
                key = node.op_type, f"its weights are {narrow}; start from the float32 model" if narrow else usual
                counts[key] += 1
                sizes[key] += held
        return tuple(LeftAlone(op, count, sizes[op, why], why) for (op, why), count in counts.items())

    def reference(self, work: Work) -> ir.Model:
        """Returns the float32 model with whose tensors a variant's tensors are compared."""
        return work.model

    def oldest_opset(self, form: Form) -> int:
        """Returns the oldest opset that can hold the result in this form."""
        return self.opset

    def opset_why(self, form: Form) -> str:
        """Says why an older opset cannot hold the result, as the end of a sentence."""
        return f"{self.title} need opset {self.oldest_opset(form)}"

    def always(self, work: Work) -> Mapping[str, str]:
        """Returns the layers that must stay as they are, each with the reason."""
        return {}


def is_embedding(node: ir.Node) -> bool:
    """Whether the node looks up rows of a constant table of floats."""
    if node.op_type != "Gather" or node.domain or node.inputs[0] is None:
        return False
    return node.inputs[0].const_value is not None and node.inputs[0].dtype == ir.DataType.FLOAT


def is_product(node: ir.Node) -> bool:
    """Whether the node is a product."""
    return node.op_type in PRODUCTS and not node.domain


def float_bytes(node: ir.Node, least: int = LEAST) -> int:
    """Returns the bytes of a node's float constants of `least` elements or more: of those large enough for a narrower
    form."""
    if node.op_type == "Constant":
        return 0
    held = (value.const_value for value in node.inputs if value is not None and value.const_value is not None)
    return sum(one.nbytes for one in held if one.dtype in FLOATS and one.size >= least)


def _dtypes(node: ir.Node) -> list[ir.DataType]:
    """Returns the dtypes of a node's constants."""
    return [value.dtype for value in node.inputs if value is not None and value.const_value is not None and value.dtype]


def constant_bytes(node: ir.Node) -> int:
    """Returns the bytes of a node's constant operands."""
    held = [value.const_value for value in node.inputs if value is not None and value.const_value is not None]
    return sum(tensor.nbytes for tensor in held)
