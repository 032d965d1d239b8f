"""The installed packages, and their capabilities on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table, facts


@dataclass(frozen=True)
class Package:
    """A distribution. `version` is None when it is not installed; `install` is the command that installs it."""

    name: str
    version: str | None
    purpose: str
    install: str


@dataclass(frozen=True)
class Provider:
    """An execution provider of the installed onnxruntime. `starts` is None if starting it was not tried."""

    name: str
    starts: bool | None


@dataclass(frozen=True)
class Environment(Part):
    """The environment. `onnx_…` are the newest versions that the installed onnx knows. `runtime_…` are the newest
    versions that the installed onnxruntime loads; the search ends a few versions beyond onnx's. None: the package is
    missing or broken."""

    title = "Environment"

    python: str
    executable: str
    platform: str
    packages: tuple[Package, ...]
    onnx_ir: int | None
    onnx_opset: int | None
    runtime_ir: int | None
    runtime_opset: int | None
    providers: tuple[Provider, ...]

    def blocks(self) -> Iterator[Block]:
        yield facts(
            [
                ("python", self.python),
                ("executable", self.executable),
                ("platform", self.platform),
                ("onnx knows", _versions(self.onnx_ir, self.onnx_opset)),
                ("onnxruntime loads", _versions(self.runtime_ir, self.runtime_opset)),
            ]
        )
        rows = tuple(
            (
                package.name,
                package.version or "not installed",
                package.purpose,
                "" if package.version else package.install,
            )
            for package in self.packages
        )
        yield Table(("package", "version", "for", "install"), rows)
        if self.providers:
            yield Table(("execution provider", "starts here"), tuple((p.name, _started(p)) for p in self.providers))


def _versions(ir: int | None, opset: int | None) -> str | None:
    return None if ir is None else f"up to IR version {ir}, opset {opset}"


def _started(provider: Provider) -> str:
    return {True: "yes", False: "NO", None: "not tried"}[provider.starts]
