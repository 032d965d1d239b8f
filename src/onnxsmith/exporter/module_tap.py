"""A torch module that cannot be traced, as a side whose tensors can be looked at: what its submodules give, by
hooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree

from onnxsmith.comparison.rounding import Rounding
from onnxsmith.layers.outline import Outline, Step, Type, kind_of
from onnxsmith.layers.tap import Tap, Values
from onnxsmith.runtimes.base import Feeds, Value
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram, to_array


class ModuleTap(Tap):
    """What each call of a submodule gives, in the order in which the calls end. Which call reads what is not known, so
    nothing can be put in: it serves as a reference."""

    can_force = False

    def __init__(self, program: TorchProgram, label: str) -> None:
        self.label = label
        self.signature = program.signature
        self._program = program
        self._session = TorchEager().prepare(program)
        self.outline = Outline((), (), ())

    def listen(self, feeds: Feeds) -> None:
        """Runs once on `feeds` and learns which calls there are."""
        inputs = tuple(port.name for port in self.signature.inputs)
        heard = list(self._heard(feeds, None))
        steps = [Step(name, kind, inputs, (name,), module=path, kind=kind) for name, path, kind, _ in heard]
        types = {name: Type(kind_of(value.dtype.name), value.shape) for name, _, _, value in heard}
        outputs = tuple(port.name for port in self.signature.outputs)
        steps += [Step(name, "output", inputs, (name,)) for name in outputs if name not in types]
        self.outline = Outline(tuple(steps), inputs, outputs, types=types)

    def values(self, feeds: Feeds, names: Collection[str]) -> Values:
        wanted = set(names)
        found: Values = {name: value for name, _, _, value in self._heard(feeds, wanted)}
        return {name: found[name] for name in names}

    def _heard(self, feeds: Feeds, wanted: Collection[str] | None) -> Iterator[tuple[str, str, str, Any]]:
        heard: list[tuple[str, str, str, Any]] = []
        calls: Counter[str] = Counter()

        def hook(path: str, module: torch.nn.Module, result: Any) -> None:
            calls[path] += 1
            call = "" if calls[path] == 1 else f"#{calls[path]}"
            tensors = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
            for place, tensor in enumerate(tensors):
                name = f"{path}{call}" + (f".{place}" if len(tensors) > 1 else "")
                if wanted is None or name in wanted:
                    heard.append((name, path, type(module).__name__, to_array(tensor)))

        with _hooked(self._program.module, hook):
            outputs = self._session.run(feeds)
        yield from heard
        if wanted is not None:
            yield from ((name, "", "output", value) for name, value in outputs.items() if name in wanted)

    def forced(self, feeds: Feeds, given: Mapping[str, Value], names: Collection[str]) -> Values:
        return self.values(feeds, names)

    def exact(self, feeds: Feeds, given: Mapping[str, Value], name: str) -> Value:
        return None

    def roundings(self, cuts: Collection[str], names: Collection[str]) -> Mapping[str, Rounding]:
        return {}

    def close(self) -> None:
        self._session.close()


@contextmanager
def _hooked(module: torch.nn.Module, hook: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for path, inner in module.named_modules():
            if not path or isinstance(inner, torch.jit.ScriptModule):
                continue
            handle = inner.register_forward_hook(lambda m, _, result, path=path: hook(path, m, result))
            stack.callback(handle.remove)
        yield
