"""The commands that edit a model by one step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from onnxsmith.base.options import argument, option
from onnxsmith.cli.commands._edit_options import Editing, selectors, step

if TYPE_CHECKING:
    from onnxsmith.editor.steps.base import Step

from onnxsmith.base.options import flag
from onnxsmith.cli.commands._edit_options import selector


@dataclass(frozen=True, kw_only=True)
class Cast(Editing):
    """Store weights in a narrower float dtype, with a Cast node after each weight."""

    name = "cast"
    usual_line = "onnxsmith cast net.onnx float16 -o half.onnx"
    examples = (("Some weights only", 'onnxsmith cast net.onnx float16 --tensor "fc.*" -o half.onnx'),)

    to: str = argument("bfloat16, float16, float8e4m3fn, …", metavar="DTYPE")
    tensor: tuple[str, ...] = option(
        "an initializer, or a name with *; repeatable; default: all float initializers with two dimensions or more",
        default=(),
        metavar="TENSOR",
    )

    def steps(self) -> Iterable[Step]:
        yield step("cast", to=self.to, tensor=selectors(self.tensor))


@dataclass(frozen=True, kw_only=True)
class Expose(Editing):
    """Make intermediate tensors outputs of the model, with their dtype and shape."""

    name = "expose"
    usual_line = "onnxsmith expose net.onnx relu -o more.onnx"
    examples = (
        (
            "Expose the result of a node, named by its node",
            "onnxsmith expose net.onnx '{ producer = \"node_relu\" }' -o more.onnx",
        ),
    )

    tensor: tuple[str, ...] = argument(
        "a tensor, a name with *, or a table: '{ producer = \"relu\" }'; repeatable", metavar="TENSOR"
    )
    called: str = option("the name of the output, for a single tensor", default="", metavar="NAME")

    def steps(self) -> Iterable[Step]:
        yield step("expose", tensor=selectors(self.tensor), name=self.called)


@dataclass(frozen=True, kw_only=True)
class Extract(Editing):
    """Extract the part of a model between tensors, and verify it on the tensors of the whole model."""

    name = "extract"
    usual_line = "onnxsmith extract net.onnx --to relu -o part.onnx"
    examples = (
        ("Extract the part between two tensors", "onnxsmith extract net.onnx --from relu --to output -o rest.onnx"),
    )

    start: tuple[str, ...] = option(
        "a tensor that the part reads, or a table: '{ producer = \"relu\" }'; repeatable; default: graph inputs",
        default=(),
        name="from_",
        metavar="TENSOR",
    )
    end: tuple[str, ...] = option(
        "a tensor that the part computes, or a table; repeatable; default: graph outputs",
        default=(),
        name="to",
        metavar="TENSOR",
    )

    def steps(self) -> Iterable[Step]:
        yield step("extract", **{"from": selectors(self.start), "to": selectors(self.end)})


@dataclass(frozen=True, kw_only=True)
class Inline(Editing):
    """Replace the calls of local functions by their bodies."""

    name = "inline"
    usual_line = "onnxsmith inline functions.onnx -o flat.onnx"

    function: str = option("only this function, domain::Name", default="", metavar="NAME")

    def steps(self) -> Iterable[Step]:
        yield step("inline", function=self.function)


@dataclass(frozen=True, kw_only=True)
class Layout(Editing):
    """Change the layout of inputs and outputs, from NCHW to NHWC or back, or to any order of the axes."""

    name = "layout"
    usual_line = "onnxsmith layout net.onnx x=NHWC -o nhwc.onnx"

    port: tuple[str, ...] = argument(
        "the new layout of a graph input or output, x=NHWC; repeatable", metavar="NAME=LAYOUT", default=()
    )
    input: tuple[str, ...] = option(
        "the new layout of a graph input, x=NHWC (from NCHW), x=NCHW (from NHWC), x=0,2,3,1 (axes); repeatable",
        default=(),
        metavar="NAME=LAYOUT",
    )
    graph_output: tuple[str, ...] = option(
        "the new layout of a graph output; repeatable", default=(), metavar="NAME=LAYOUT"
    )
    sample: tuple[str, ...] = option(
        "additional inputs to verify on, in the layout of MODEL: inputs.npz, x=array.npy; repeatable",
        default=(),
        metavar="SPEC",
        reads=True,
    )

    def samples(self) -> tuple[str, ...]:
        return self.sample

    def steps(self) -> Iterable[Step]:
        from onnxsmith.base.problem import problem

        asked = [("input", one) for one in self.input] + [("output", one) for one in self.graph_output]
        asked += [(self._kind(one), one) for one in self.port]
        if not asked:
            raise problem("edit/layout", "no layout was given", fix=f"add {' or '.join(self._layouts())}")
        for port, text in asked:
            name, _, layout = text.rpartition("=")
            if not name or not layout:
                fix = f"write {' or '.join(self._layouts(text.strip('=')))}"
                raise problem("edit/layout", f"{text!r} is not a layout of an input or output", fix=fix)
            yield step("layout", **{port: name, "to": layout})

    def _layouts(self, said: str = "") -> list[str]:
        """Returns examples of what can be asked: an input or output, and a layout; one of the two may be `said`."""
        from onnxsmith.graph.files.load import load

        graph = load(self.model).graph
        names = [
            one.name or "" for one in (*graph.inputs, *graph.outputs) if one.shape is not None and len(one.shape) == 4
        ]
        if said in names or not names:
            return [f"{said or 'x'}=NHWC"]
        return [f"{name}={said or 'NHWC'}" for name in names[:3]]

    def _kind(self, text: str) -> str:
        """Returns whether the port is an input or an output of the model; an input for a name that is neither."""
        from onnxsmith.graph.files.load import load

        name = text.rpartition("=")[0]
        graph = load(self.model).graph
        is_output = any(value.name == name for value in graph.outputs)
        return "output" if is_output and all(value.name != name for value in graph.inputs) else "input"


@dataclass(frozen=True, kw_only=True)
class Opset(Editing):
    """Convert a model to another opset, newer or older."""

    name = "opset"
    usual_line = "onnxsmith opset net.onnx 17 -o older.onnx"
    examples = (
        (
            "Also write an older IR version, for an older runtime",
            "onnxsmith opset net.onnx 17 --ir-version 8 -o older.onnx",
        ),
    )

    to: int = argument("the opset of the written file", metavar="OPSET")
    ir_version: int = option(
        "the IR version of the written file; default: the one released with the opset, or a newer one if the model "
        "needs it",
        default=0,
        metavar="N",
    )

    def steps(self) -> Iterable[Step]:
        yield step("opset", to=self.to, ir_version=self.ir_version or None)


@dataclass(frozen=True, kw_only=True)
class Outline(Editing):
    """Move nodes into a local function, and call it in their place; the inverse of `inline`."""

    name = "outline"
    usual_line = "onnxsmith outline net.onnx my.model::Head --node node_linear -o functions.onnx"
    step_fields = MappingProxyType({"to": "function"})

    function: str = argument("the name of the function, domain::Name", metavar="FUNCTION")
    node: tuple[str, ...] = option(
        "a node that becomes a part of the function, layer1/* for several, or a table: '{ op = \"If\" }'; repeatable",
        default=(),
        metavar="NODE",
    )
    find: str = option("a pattern; each match becomes a call", default="", metavar="PATTERN")
    module: str = option(
        "a torch module, or several modules of the same structure (layers.*); each becomes a call",
        default="",
        metavar="PATH",
    )

    def steps(self) -> Iterable[Step]:
        yield step("outline", to=self.function, node=selectors(self.node), find=self.find, module=self.module)


@dataclass(frozen=True, kw_only=True)
class Rename(Editing):
    """Rename a tensor, a graph input or output, a node, or a symbolic dimension."""

    name = "rename"
    usual_line = "onnxsmith rename net.onnx x image -o named.onnx"
    examples = (("A symbolic dimension", "onnxsmith rename net.onnx batch n --kind dim -o named.onnx"),)
    step_fields = MappingProxyType({"tensor": "old", "node": "old", "dim": "old", "to": "new"})

    old: str = argument(
        "the present name, or a table: '{ gives = \"y\" }' for a node, '{ producer = \"relu\" }' for a tensor",
        metavar="OLD",
    )
    new: str = argument("the new name", metavar="NEW")
    kind: str = option("what OLD is: tensor, node or dim (a symbolic dimension)", default="tensor", metavar="KIND")

    def steps(self) -> Iterable[Step]:
        old = selector(self.old) if self.kind != "dim" else self.old
        yield step("rename", **{self.kind: old}, to=self.new)


@dataclass(frozen=True, kw_only=True)
class Replace(Editing):
    """Replace every match of a pattern by other operators.

    A pattern is ONNX text with variables, "Mul(x, Sigmoid(x))", or a file with such text. Without BY, FIND is a TOML
    file with [[replace]] tables.
    """

    name = "replace"
    usual_line = "onnxsmith replace net.onnx 'Relu(x)' 'Clip(x, 0, 6)' --changes -o relu6.onnx"
    examples = (
        (
            "Replace operators by an equivalent one, and compare the outputs",
            "onnxsmith replace net.onnx 'Relu(x)' 'Max(x, 0)' -o max.onnx",
        ),
    )

    find: str = argument(
        "the pattern to find: text, or a file; or a TOML file of replacements", metavar="FIND", reads=True
    )
    by: str = argument("the operators that take its place: text, or a file", metavar="BY", default="", reads=True)
    count: int = option("the required number of matches; default: any number", default=0, metavar="N")
    changes: bool = flag("the outputs change on purpose, so do not compare them")

    def steps(self) -> Iterable[Step]:
        from onnxsmith.base.problem import problem
        from onnxsmith.editor import patch

        if self.by:
            count = self.count or "all"
            return [step("replace", find=_text(self.find), by=_text(self.by), count=count, changes=self.changes)]
        if not self.find.endswith(".toml"):
            raise problem(
                "edit/no-replacement",
                "no replacement was given",
                where=self.find,
                fix="add the operators that take the place of the pattern, or give a .toml file of [[replace]] tables",
            )
        if self.count or self.changes:
            raise problem(
                "edit/no-replacement",
                "--count and --changes go with one pattern and its replacement",
                where=self.find,
                fix="write them in the tables of the file: `count = 2`, `changes = true`",
            )
        return patch.read(self.find)


def _text(given: str) -> str:
    """Returns the text, or the content of the file of this name.

    Raises:
        OnnxsmithError: `edit/patch-file` if the file cannot be read, or is not UTF-8.
    """
    from pathlib import Path

    from onnxsmith.base import user_files
    from onnxsmith.base.problem import problem

    if "(" in given or not Path(given).is_file():
        return given
    try:
        return user_files.read_utf8(Path(given))
    except (OSError, ValueError) as error:
        raise problem(
            "edit/patch-file",
            "the file of a pattern cannot be read",
            where=given,
            why=getattr(error, "strerror", None) or str(error),
            fix="write the pattern into a text file in UTF-8, such as y = Relu(x)",
        ) from error


@dataclass(frozen=True, kw_only=True)
class SetDim(Editing):
    """Make dimensions of inputs symbolic, or fix them to a size."""

    name = "set-dim"
    usual_line = "onnxsmith set-dim net.onnx batch=1 -o one.onnx"
    examples = (("Make a fixed dimension symbolic", "onnxsmith set-dim one.onnx x:0=batch -o open.onnx"),)

    dims: tuple[str, ...] = argument(
        'the dimensions: "x:0=batch,2=height,h:1=batch" names them, x:0=1 or batch=1 gives a size', metavar="DIM"
    )

    def steps(self) -> Iterable[Step]:
        yield step("set_dim", dims=list(self.dims))


@dataclass(frozen=True, kw_only=True)
class Strip(Editing):
    """Remove doc strings, provenance, metadata or declared shapes."""

    name = "strip"
    usual_line = "onnxsmith strip net.onnx -o clean.onnx"
    examples = (("Remove doc strings only", "onnxsmith strip net.onnx --what docs -o clean.onnx"),)

    what: tuple[str, ...] = option(
        "docs, provenance, metadata or shapes; repeatable; default: docs and provenance", default=(), metavar="KIND"
    )

    def steps(self) -> Iterable[Step]:
        yield step("strip", what=list(self.what))
