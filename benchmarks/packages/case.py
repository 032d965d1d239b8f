"""A case: a model of a package, with the sizes at which its user runs it."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

BATCH = {"batch": (2, 1, 3)}
"""The example's size, then two others; a batch of 1 is what most users run."""

MODELS = (
    "torch_geometric",
    "transformers",
    "torchaudio",
    "diffusers",
    "kornia",
    "peft",
    "torchao",
    "monai",
    "segment_anything",
    "ultralytics",
    "torchvision",
    "timm",
)
"""The files of `models/`, in the order in which they are run: those of small models first."""


@dataclass(frozen=True)
class Case:
    """A model that a user of a package exports."""

    name: str
    build: Callable[[], torch.nn.Module]
    """Makes the model; called after `torch.manual_seed(0)`."""
    inputs: Callable[..., Any]
    """Sizes by name → a tuple of positional or a dictionary of keyword arguments of `forward`."""
    axes: Any
    """Nested as the inputs are: a mapping from axis to name for each tensor."""
    sizes: Mapping[str, tuple[int, ...]]
    """Each dynamic axis: the example's size, then others."""
    tolerance: float = 1e-3
    """Largest difference, relative to an output's largest value. Larger for quantised models: a rounding step."""

    def module(self) -> torch.nn.Module:
        """The model in evaluation mode, the same at each call."""
        torch.manual_seed(0)
        return awake(self.build()).eval()

    def example(self) -> Any:
        """The inputs that an exporter is given."""
        torch.manual_seed(1)
        return self.inputs(**{name: sizes[0] for name, sizes in self.sizes.items()})

    def trials(self) -> Iterator[tuple[str, Any]]:
        """The axis that is changed (`""`: none) and inputs with new values, at each size of each axis."""
        usual = {name: sizes[0] for name, sizes in self.sizes.items()}
        torch.manual_seed(2)
        yield "", self.inputs(**usual)
        for name, sizes in self.sizes.items():
            for size in sizes[1:]:
                yield f"{name}={size}", self.inputs(**{**usual, name: size})
        yield "all", self.inputs(**{name: sizes[-1] for name, sizes in self.sizes.items()})


def awake(module: torch.nn.Module) -> torch.nn.Module:
    """Redraws matrices whose elements are all equal, as zeros of an untrained head: what comes before such a matrix
    does not reach the outputs, and neither a judge nor a verification can tell whether a file is right."""
    with torch.no_grad():
        for parameter in module.parameters():
            plain = type(parameter) is torch.nn.Parameter and parameter.dim() > 1 and parameter.is_floating_point()
            if plain and parameter.numel() > 1 and bool((parameter == parameter.flatten()[0]).all()):
                parameter.normal_(std=parameter[0].numel() ** -0.5)
    return module


def lively(module: torch.nn.Module) -> torch.nn.Module:
    """Draws weights by He's rule. PyTorch's default lets the input vanish over ten layers without normalisation."""
    for part in module.modules():
        if isinstance(part, torch.nn.Conv1d | torch.nn.Conv2d | torch.nn.Linear):
            torch.nn.init.kaiming_normal_(part.weight)
    return module


def arguments(given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments."""
    return ((), dict(given)) if isinstance(given, dict) else (tuple(given), {})


def cases(package: str) -> dict[str, Case]:
    """The cases of a file of `models/`, by name."""
    found: list[Case] = importlib.import_module(f"packages.models.{package}").cases()
    return {f"{package}/{case.name}": case for case in found}


def image(
    name: str, build: Callable[[], torch.nn.Module], size: int = 64, step: int = 32, channels: int = 3, **more: Any
) -> Case:
    """A model of images, of which batch, height and width are dynamic: the usual case."""
    sizes = {**BATCH, "height": (size, size + step, size + 2 * step), "width": (size, size + step, size + 2 * step)}
    axes = ({0: "batch", 2: "height", 3: "width"},)
    return Case(
        name, build, lambda batch, height, width: (torch.rand(batch, channels, height, width),), axes, sizes, **more
    )


def fixed_image(
    name: str, build: Callable[[], torch.nn.Module], size: int = 64, channels: int = 3, **more: Any
) -> Case:
    """A model of images of one size."""
    return Case(name, build, lambda batch: (torch.rand(batch, channels, size, size),), ({0: "batch"},), BATCH, **more)
