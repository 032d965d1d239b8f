"""What `inspect` says of nodes that an execution provider has compiled (`EPContext`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

import onnxsmith
from onnxsmith.base.report.parts.compiled_nodes import CompiledNodes
from onnxsmith.base.report.parts.target_checks import TargetChecks
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.reading import compiled_nodes


def compiled(path: Path, *nodes: dict[str, Any], ports: tuple[str, str] = ("x", "y")) -> CompiledNodes:
    """Writes a model of compiled nodes in a row, and a Relu behind them. Returns what `inspect` says of it."""
    names = [ports[0], *(f"h{number}" for number in range(len(nodes)))]
    made = [
        helper.make_node("EPContext", [read], [gives], name=f"ctx_{gives}", domain="com.microsoft", **attributes)
        for attributes, read, gives in zip(nodes, names, names[1:], strict=False)
    ]
    made.append(helper.make_node("Relu", [names[-1]], [ports[1]], name="relu"))
    first, *inner, last = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3]) for name in (*names, ports[1])
    )
    graph = helper.make_graph(made, "g", [first], [last], value_info=inner)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return next(part for part in onnxsmith.inspect(path).parts if isinstance(part, CompiledNodes))


def test_code_in_the_node(tmp_path: Path) -> None:
    """The code is no text: it has bytes that are not UTF-8. A second node may refer to the code of the first one."""
    part = compiled(
        tmp_path / "m.onnx",
        {"ep_cache_context": b"\xff\x00" * 500, "source": "QNN", "ep_sdk_version": "2.31", "partition_name": "p0"},
        {"main_context": 0, "source": "QNN"},
    )
    first, second = part.nodes
    assert (first.provider, first.sdk, first.partition, first.file, first.bytes) == ("QNN", "2.31", "p0", "", 1000)
    assert (second.file, second.bytes, second.missing) == ("", None, "")
    assert part.left == {"Relu": 1}


@pytest.mark.parametrize(
    ("name", "nbytes", "missing"),
    [
        ("code.bin", 7, ""),
        ("parts/code.bin", 7, ""),
        ("gone.bin", None, "which is not there"),
        ("../outside.bin", None, "outside of the folder"),
        ("/etc/passwd", None, "outside of the folder"),
        ("link.bin", None, "outside of the folder"),
        ("C:\\code.bin", None, "outside of the folder"),
    ],
)
def test_code_in_a_file(tmp_path: Path, name: str, nbytes: int | None, missing: str) -> None:
    folder = tmp_path / "model"
    (folder / "parts").mkdir(parents=True)
    for path in (folder / "code.bin", folder / "parts" / "code.bin", tmp_path / "outside.bin"):
        path.write_bytes(bytes(7))
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    (node,) = compiled(folder / "m.onnx", {"embed_mode": 0, "ep_cache_context": name}).nodes
    assert (node.file, node.bytes) == (name, nbytes)
    assert missing in node.missing
    assert bool(missing) == bool(node.missing)


@pytest.mark.parametrize(
    ("other", "state"),
    [
        (("x", "y"), "beside the model, with the same inputs and outputs"),
        (("image", "y"), "beside the model, but it has other inputs or outputs"),
        (None, "not beside the model"),
    ],
)
def test_the_source_model(tmp_path: Path, other: tuple[str, str] | None, state: str) -> None:
    if other is not None:
        compiled(tmp_path / "net.onnx", {}, ports=other)
    part = compiled(tmp_path / "net_ctx.onnx", {"onnx_model_filename": "/home/build/net.onnx"})
    assert (part.source, part.source_state) == ("/home/build/net.onnx", state)


def test_a_source_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"\x08\x0a\xff\xff")
    part = compiled(tmp_path / "net_ctx.onnx", {"onnx_model_filename": "net.onnx"})
    assert part.source_state.startswith("beside the model, but it cannot be read: model/")


def test_a_model_without_compiled_nodes(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    )
    onnx.save(model, tmp_path / "m.onnx")
    assert not any(isinstance(part, CompiledNodes) for part in onnxsmith.inspect(tmp_path / "m.onnx").parts)


ENGINE = {
    "source": "TensorrtExecutionProvider",
    "ep_sdk_version": "10.9",
    "hardware_architecture": "sm86",
    "ep_cache_context": "c",
}


def test_check_knows_whose_code_it_is(tmp_path: Path) -> None:
    compiled(tmp_path / "net.onnx", {})  # the source
    compiled(tmp_path / "m.onnx", {**ENGINE, "onnx_model_filename": "C:\\work\\net.onnx"})
    report = onnxsmith.check(tmp_path / "m.onnx", ["tensorrt-10", "webgpu", "reference"]).report
    stages = {one.target: one.stage.value for one in report.part(TargetChecks).checks}
    assert stages == {"tensorrt-10": "not tried", "webgpu": "refused", "reference": "refused"}
    (found,) = report.problems
    assert found.id == "target/compiled"
    assert "TensorrtExecutionProvider (SDK 10.9, for hardware sm86)" in found.what
    assert "reference" in found.why
    assert "webgpu" in found.why
    assert f"`onnxsmith check {tmp_path / 'net.onnx'}`" in found.fix
    alone = onnxsmith.check(tmp_path / "m.onnx", ["tensorrt-10"]).report
    assert not alone.problems
    assert alone.verdict.exit_code == 1  # nothing was decided


def test_check_says_that_the_code_is_missing(tmp_path: Path) -> None:
    compiled(tmp_path / "m.onnx", {**ENGINE, "embed_mode": 0, "ep_cache_context": "gone.bin"})
    (found,) = onnxsmith.check(tmp_path / "m.onnx", ["tensorrt-10"]).report.problems
    assert "gone.bin, which is not there" in found.why
    assert "get the model that it was compiled from" in found.fix


@pytest.mark.parametrize(
    ("provider", "target", "same"),
    [
        ("QNN", "qnn", True),
        ("TensorrtExecutionProvider", "tensorrt-11", True),
        ("NvTensorRTRTXExecutionProvider", "tensorrt-rtx", True),
        ("NvTensorRTRTXExecutionProvider", "tensorrt-10", False),
        ("OpenVINOExecutionProvider", "qnn", False),
        ("", "qnn", False),
    ],
)
def test_the_target_of_a_provider(provider: str, target: str, same: bool) -> None:
    node = ir.node("EPContext", [], attributes={"source": provider}, domain="com.microsoft")
    assert compiled_nodes.is_for(node, target) == same


def test_doctor_asks_whether_the_provider_is_here(tmp_path: Path) -> None:
    compiled(tmp_path / "m.onnx", ENGINE)
    report = onnxsmith.doctor(tmp_path / "m.onnx")
    assert report.verdict is Verdict.DIFFERENT
    assert [one.id for one in report.problems if one.id.startswith("target/")] == ["target/compiled"]
    compiled(tmp_path / "cpu.onnx", {**ENGINE, "source": "CPUExecutionProvider"})
    report = onnxsmith.doctor(tmp_path / "cpu.onnx")
    assert report.verdict is Verdict.DONE
    assert "is here" in report.notes[-1]


def test_compiled_files_beside_a_model_are_named(tmp_path: Path) -> None:
    (tmp_path / "old.engine").write_bytes(bytes(3000))
    os.utime(tmp_path / "old.engine", (1, 1))
    compiled(tmp_path / "m.onnx", {})
    (tmp_path / "custom.so").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe.plan")  # looked at by name only
    (note,) = (one for one in onnxsmith.inspect(tmp_path / "m.onnx").notes if "beside" in one)
    assert "3 compiled files" in note
    assert "old.engine (TensorRT engine, 3 KB, older than the model)" in note
    assert "custom.so (library, 0 B)" in note


@pytest.mark.parametrize(
    ("source", "fits"), [(["N", 3], True), (["M", "K"], True), ([2, 3], True), (["N", 4], False), (["N", 3, 1], False)]
)
def test_a_source_of_other_sizes_does_not_fit(source: list[int | str], fits: bool, tmp_path: Path) -> None:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, source) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ports[:1], ports[1:])
    onnx.save(helper.make_model(graph, ir_version=10), tmp_path / "net.onnx")
    part = compiled(tmp_path / "m.onnx", {**ENGINE, "onnx_model_filename": "net.onnx"})
    assert (part.source_state == "beside the model, with the same inputs and outputs") is fits
    assert bool(part.source_path) is fits


def test_software_of_the_own_provider_is_not_asked(tmp_path: Path) -> None:
    """OpenVINO's own reader does not know the nodes that its execution provider loads."""
    compiled(tmp_path / "m.onnx", {**ENGINE, "source": "OpenVINOExecutionProvider"})
    (found,) = onnxsmith.check(tmp_path / "m.onnx", ["openvino"]).report.part(TargetChecks).checks
    assert found.stage.value == "not tried"


def test_the_own_code_is_no_file_of_another_program(tmp_path: Path) -> None:
    (tmp_path / "code.blob").write_bytes(b"code")
    compiled(tmp_path / "m.onnx", {**ENGINE, "embed_mode": 0, "ep_cache_context": "code.blob"})
    assert not any("beside" in one for one in onnxsmith.inspect(tmp_path / "m.onnx").notes)
