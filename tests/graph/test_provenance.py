"""Where a node came from is read from the file, and outlives its rewriting."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxsmith.graph.structure import provenance
from onnxsmith.graph.structure.provenance import Provenance

TRACE = """File "/home/me/net.py", line 31, in forward
    return self.body(x)
  File "/home/me/net.py", line 12, in forward
    return self.conv(x)
  File "/opt/lib/python3.11/site-packages/torch/nn/modules/conv.py", line 55, in forward
    return self._conv_forward(input)"""


def node(**props: str) -> ir.Node:
    return ir.Node("", "Conv", [], metadata_props={f"pkg.torch.onnx.{key}": value for key, value in props.items()})


def at(scope: str) -> ir.Node:
    return node(name_scopes=repr(["", scope, "conv2d"]))


def merged(found: ir.Node) -> str | None:
    return found.metadata_props.get("onnxsmith.merged")


def test_what_the_exporter_wrote_is_read() -> None:
    found = provenance.of(
        node(
            name_scopes="['', 'body', 'body.conv', 'conv2d']",
            class_hierarchy="['net.Net', 'net.Body', 'torch.nn.Conv2d', 'aten.conv2d.default']",
            stack_trace=TRACE,
        )
    )
    assert found == Provenance("body.conv", "/home/me/net.py:12", "aten.conv2d.default")
    assert str(found) == "body.conv (/home/me/net.py:12)"


def test_a_node_that_says_nothing_has_no_origin() -> None:
    assert provenance.of(ir.Node("", "Conv", [])) == Provenance()
    assert str(Provenance()) == ""


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("/home/me/torch/net.py", "/home/me/torch/net.py:7"),
        ("C:\\work\\net.py", "C:\\work\\net.py:7"),
        ("/opt/site-packages/torch/nn/functional.py", ""),
        ("C:\\py\\site-packages\\torch\\nn\\functional.py", ""),
        ("/src/pytorch/torch/nn/functional.py", ""),
        ("torch/nn/modules/conv.py", ""),
        ("torch/_ops.py", ""),
        ("net.py", "net.py:7"),
    ],
)
def test_lines_of_torch_itself_are_not_the_users(file: str, source: str) -> None:
    trace = f'File "{file}", line 7, in forward\n    return x'
    assert provenance.of(node(stack_trace=trace)).source == source


def test_a_shortened_trace_names_the_same_line() -> None:
    here = f"{Path.cwd()}/pkg/net.py"
    packages = sysconfig.get_path("purelib")
    trace = TRACE.replace("/home/me/net.py", here).replace("/opt/lib/python3.11/site-packages", packages)
    found = node(stack_trace=trace)
    graph = ir.Graph([], [], nodes=[found], opset_imports={"": 20})
    assert provenance.of(found).source == f"{here}:12"
    provenance.shorten(ir.Model(graph, ir_version=10))
    assert provenance.of(found).source == "pkg/net.py:12"
    assert str(Path.cwd()) not in found.metadata_props["pkg.torch.onnx.stack_trace"]


@pytest.mark.parametrize("text", ["[", "{[]: 1}", "5", "'a'", "[1, 2]", "(" * 5000, "\0", "__import__('os')"])
def test_scopes_that_are_no_list_are_passed_over(text: str) -> None:
    assert provenance.of(node(name_scopes=text, class_hierarchy=text)).module in ("", "1")


@given(st.text())
def test_any_metadata_is_read(text: str) -> None:
    provenance.of(node(name_scopes=text, class_hierarchy=text, stack_trace=text))


def test_a_new_node_inherits_its_origin() -> None:
    new = ir.Node("", "Conv", [])
    provenance.inherit([new], [ir.Node("", "Pad", []), at("a.conv")])
    assert provenance.of(new).module == "a.conv"
    assert merged(new) is None


def test_further_origins_are_listed() -> None:
    new = ir.Node("", "Conv", [])
    provenance.inherit([new], [at("conv"), at("bn"), at("act")])
    assert (provenance.of(new).module, merged(new)) == ("conv", "['conv2d']")


def test_origins_are_not_lost_over_several_rewrites() -> None:
    first, second, last = (ir.Node("", "Conv", []) for _ in range(3))
    provenance.inherit([first], [node(name_scopes="['a']"), node(name_scopes="['b']")])
    provenance.inherit([second], [node(name_scopes="['c']"), node(name_scopes="['d']")])
    provenance.inherit([last], [first, second])
    assert merged(last) == "['b', 'c', 'd']"


def test_what_a_node_knows_of_itself_stays() -> None:
    new = node(name_scopes="['', 'mine', 'op']")
    provenance.inherit([new], [at("other")])
    assert provenance.of(new).module == "mine"


def test_without_any_origin_nothing_is_written() -> None:
    new = ir.Node("", "Conv", [])
    provenance.inherit([new], [ir.Node("", "Pad", [])])
    assert not new.metadata_props


def test_abridged_origins_are_read_as_before() -> None:
    one = node(
        name_scopes="['', 'body', 'body.conv', 'conv2d']",
        class_hierarchy="['net.Net', 'net.Body', 'torch.nn.Conv2d', 'aten.conv2d.default']",
        stack_trace=TRACE,
        fx_node="%conv2d : [num_users=1] = call_function[target=torch.ops.aten.conv2d]()",
    )
    one.metadata_props.update({"namespace": ": net.Net/body: net.Body", "owner": "me", "onnxsmith.merged": "['relu']"})
    one.metadata_props["namespaces"] = "of the user"
    one.outputs[0].metadata_props.update({"pkg.torch.onnx.original_node_name": "conv2d", "unit": "m"})
    model = ir.Model(ir.Graph([], [], nodes=[one], opset_imports={"": 20}), ir_version=10)
    origin, modules, names = provenance.of(one), provenance.modules_of([one]), provenance.names_of(one)
    gone = provenance.abridge(model)
    assert (provenance.of(one), provenance.modules_of([one]), provenance.names_of(one)) == (origin, modules, names)
    assert gone > 300
    assert {"owner", "namespaces"} <= one.metadata_props.keys(), "the user's own texts stay"
    assert one.outputs[0].metadata_props == {"unit": "m"}
    assert provenance.abridge(model) == 0


@given(st.lists(st.text(max_size=6) | st.sampled_from(["", "layers.0.conv", "aten.slice.Tensor", "a'b", "a, b"])))
def test_a_list_is_read_as_python_reads_it(items: list[str]) -> None:
    assert provenance._strings(repr(items)) == items


@pytest.mark.parametrize("text", ["['a', ]", "['a' 'b']", "['a',", "['a'] ", "'a'", "", "[1, 'a']", "['a''b']", "[,]"])
def test_other_texts_are_read_as_python_reads_them(text: str) -> None:
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = None
    assert provenance._strings(text) == ([str(item) for item in value] if isinstance(value, list) else [])


def test_a_text_tells_nothing_about_one_run() -> None:
    one = node()
    one.metadata_props["pkg.torch.onnx.fx_node"] = "f = <function sym_min at 0x7f2a>, <eval_with_key>.12 at 0xg"
    provenance.shorten(ir.Model(ir.Graph([], [], nodes=[one], name="g"), ir_version=8))
    assert one.metadata_props["pkg.torch.onnx.fx_node"] == "f = <function sym_min>, <eval_with_key> at 0xg"
