"""Calls a model of transformers through the tensors of a graph that others exported: tokens, masks, positions, caches.

A graph of a folder has its own choice of these tensors. A `CallOfPart` takes the tensors that the graph takes, calls
the model, and returns the tensors that the graph returns. So the graph can be compared with the model, tensor by
tensor.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.exporter.pretrained.pretrained_examples import CACHE, PAST_INPUT
from onnxsmith.exporter.pretrained.pretrained_folder import Pretrained, load
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes.torch_eager import TorchProgram

ENCODER, HIDDEN, LOGITS, TOKENS = "encoder", "encoder_hidden_states", "logits", "decoder_input_ids"
MASK, SEEN_MASK = "attention_mask", "encoder_attention_mask"
_CAUSAL = ("text-generation",)
_SEQ2SEQ = ("text2text-generation", "automatic-speech-recognition")
_WHOLE = ("auto", "feature-extraction")


class Original:
    """A model of transformers that generates text, with or without an encoder."""

    def __init__(self, made: Pretrained, *, has_encoder: bool) -> None:
        self.module: Any = made.model.module
        self.has_encoder = has_encoder
        self.example: dict[str, Any] = {
            name: value[:1].clone() for name, value in made.model.kwargs.items() if isinstance(value, torch.Tensor)
        }
        self.notes: tuple[str, ...] = made.model.notes[1:]
        config = self.module.config
        self.settings: Mapping[str, Any] = {**config.to_dict(), **config.get_text_config(decoder=True).to_dict()}
        self._sizes: dict[str, tuple[int, int]] | None = None

    @property
    def main_input(self) -> str:
        """Returns the name of the encoder's input; `input_ids` without an encoder."""
        return str(self.module.main_input_name)

    def takes(self, name: str) -> bool:
        """Whether the model's forward has this parameter."""
        return name in inspect.signature(self.module.forward).parameters

    def cache_sizes(self) -> dict[str, tuple[int, int]]:
        """Returns the number of heads and the size of each head of every cache, by its name in a graph.

        Raises:
            OnnxsmithError: `compare/folder-original` if the state is not one of keys and values.
        """
        if self._sizes is None:
            call = CallOfPart(self.module, (), (), has_encoder=self.has_encoder)
            names = (self.main_input, TOKENS) if self.has_encoder else (self.main_input,)
            given = {name: self.example[name][:, :2] if name == "input_ids" else self.example[name] for name in names}
            if self.has_encoder:
                encoded = call.encoded({self.main_input: given.pop(self.main_input)})
                given = {HIDDEN: encoded, TOKENS: given[TOKENS][:, :2]}
            with torch.no_grad():
                found = dict(call.results(given))
            self._sizes = {
                name: (value.shape[1], value.shape[3]) for name, value in found.items() if name.startswith("present.")
            }
        return self._sizes

    def program(self, interface: Signature, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> TorchProgram:
        """Returns the model as a program with the inputs and outputs of a graph. `inputs` and `outputs` map the graph's
        names to the names of this module."""
        names = tuple(port.name for port in interface.inputs)
        results = tuple((outputs[port.name], port.dtype, _is_last(port.shape)) for port in interface.outputs)
        call = CallOfPart(self.module, tuple(inputs[name] for name in names), results, has_encoder=self.has_encoder)
        return TorchProgram(call.eval(), interface, (None,) * len(names), names, lambda leaves: (tuple(leaves), {}))


def _is_last(shape: Any) -> bool:
    """Whether the logits are those of the last token only."""
    return shape is not None and len(shape) == 3 and shape[1] == 1


def generator(place: str, *, has_encoder: bool) -> Original:
    """Loads a model that generates text from the folder. Downloads nothing.

    Raises:
        OnnxsmithError: the errors of `load`.
    """
    return Original(_loaded(place, _SEQ2SEQ if has_encoder else _CAUSAL), has_encoder=has_encoder)


def whole(
    place: str, inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[torch.nn.Module, tuple[()], dict[str, Any]]:
    """Loads the model of a folder whose graph has these inputs and outputs, and returns it with example inputs: the
    model with the head that it was saved with, or without a head if the graph returns hidden states.

    Raises:
        OnnxsmithError: the errors of `load`; `compare/folder-part` if the model has no such inputs or outputs.
    """
    tasks = _WHOLE[::-1] if "last_hidden_state" in outputs else _WHOLE
    made = _loaded(place, tasks).model
    strange = sorted(set(inputs) - made.kwargs.keys())
    if strange:
        raise _other_ports(place, f"has no input {strange[0]}; its inputs are {', '.join(made.kwargs)}")
    given = {name: made.kwargs[name] for name in inputs}
    with torch.no_grad():
        result = made.module(**given)
    tensors = [name for name, value in result.items() if isinstance(value, torch.Tensor)]
    results = [name for name in outputs if name in tensors]
    if len(results) < len(outputs):  # graphs of other tools may number their outputs
        results = tensors
    if len(results) != len(outputs):
        raise _other_ports(place, f"returns {', '.join(tensors)}; the graph returns {', '.join(outputs)}")
    return CallOfWhole(made.module, dict(zip(outputs, results, strict=True))).eval(), (), given


def _other_ports(place: str, why: str) -> OnnxsmithError:
    return problem(
        "compare/folder-part",
        "the graph does not have the inputs and outputs of the original",
        where=place,
        why=f"the model in this folder {why}",
        fix="give the folder of the model from which the graph was exported as REFERENCE",
    )


class CallOfWhole(torch.nn.Module):
    """Calls a model, and returns the results that a graph returns, by the graph's names."""

    def __init__(self, module: Any, results: Mapping[str, str]) -> None:
        super().__init__()
        self.module, self._results = module, dict(results)
        self.original_name = type(module).__name__  # reports name the model, not this class

    def forward(self, **given: torch.Tensor) -> dict[str, torch.Tensor]:
        result = self.module(**given)
        return {name: result[own] for name, own in self._results.items()}


def _loaded(place: str, tasks: Sequence[str]) -> Pretrained:
    errors: list[OnnxsmithError] = []
    for task in tasks:
        try:
            return load(place, task)
        except OnnxsmithError as error:
            if error.problem.id not in ("export/task", "export/no-inputs"):
                raise
            errors.append(error)
    raise errors[0]


class CallOfPart(torch.nn.Module):
    """Calls the encoder or the decoder of a model with the tensors of a graph. `inputs` are their names in order;
    `results` are the names of the results, with the dtype that the graph declares, and whether only the last token's
    row is returned."""

    def __init__(
        self, module: Any, inputs: Sequence[str], results: Sequence[tuple[str, str, bool]], *, has_encoder: bool
    ) -> None:
        super().__init__()
        self.module = module
        self._inputs, self._results, self._has_encoder = tuple(inputs), tuple(results), has_encoder

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = dict(zip(self._inputs, tensors, strict=True))
        if any(name == HIDDEN for name, _, _ in self._results):
            found: dict[str, torch.Tensor] = {HIDDEN: self.encoded(given)}
        else:
            found = dict(self.results(given))
        return tuple(_cast(found[name], dtype, last) for name, dtype, last in self._results)

    def encoded(self, given: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Returns the encoder's last hidden state."""
        value: torch.Tensor = self.module.get_encoder()(**self._floats(given)).last_hidden_state
        return value

    def results(self, given: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
        """Yields the logits and the caches after a call of the decoder, by name."""
        caches = {name: value for name, value in given.items() if name.startswith("past_key_values.")}
        rest = self._floats({name: value for name, value in given.items() if name not in caches})
        own, cross = (self._layers(caches, which) for which in (".decoder." if self._has_encoder else ".", ".encoder."))
        if self._has_encoder:
            result = self.module(**self._decoder(rest, cross), **self._state(_two(own, cross)))
            cache = self._after(result)
            held = [(cache.self_attention_cache, "decoder."), (cache.cross_attention_cache, "encoder.")]
        else:
            result = self.module(**rest, **self._state(_one(own)))
            held = [(self._after(result), "")]
        yield LOGITS, result.logits
        for cache, which in held:
            for at, layer in enumerate(getattr(cache, "layers", ())):
                keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
                if keys is None or values is None:
                    raise _other_state(self.module, "a recurrent state has no standard names in other tools")
                yield f"present.{at}.{which}key", keys
                yield f"present.{at}.{which}value", values

    def _decoder(self, rest: dict[str, torch.Tensor], cross: Sequence[Any]) -> dict[str, Any]:
        """Returns the arguments of a call of the decoder. A call with caches needs no hidden state, but the model reads
        its length."""
        from transformers.modeling_outputs import BaseModelOutput

        hidden = rest.pop(HIDDEN, None)
        if hidden is None:
            keys = cross[0][0]
            hidden = keys.new_zeros(keys.shape[0], keys.shape[2], self.module.config.hidden_size)
        seen = rest.pop(SEEN_MASK, None)
        masks = {} if seen is None else {MASK: seen}
        return {**rest, **masks, "encoder_outputs": BaseModelOutput(last_hidden_state=hidden)}

    def _state(self, cache: Any) -> dict[str, Any]:
        """Returns the arguments with the caches, under the name that this version of transformers uses."""
        name = CACHE if CACHE in inspect.signature(self.module.forward).parameters else PAST_INPUT
        return {name: cache, "use_cache": True}

    def _after(self, result: Any) -> Any:
        """Returns the caches after a call."""
        for name in (CACHE, PAST_INPUT):
            if result.get(name) is not None:
                return result[name]
        raise _other_state(self.module, "it returns no caches")

    def _layers(self, caches: Mapping[str, torch.Tensor], which: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Returns the keys and values of each layer that are not empty."""
        dtype = self._dtype()
        found: list[tuple[torch.Tensor, torch.Tensor]] = []
        while (name := f"past_key_values.{len(found)}{which}") + "key" in caches:
            found.append((caches[f"{name}key"].to(dtype), caches[f"{name}value"].to(dtype)))
        return [pair for pair in found if pair[0].shape[2]]

    def _floats(self, given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Returns the tensors with the module's dtype of floats."""
        dtype = self._dtype()
        return {name: value.to(dtype) if value.is_floating_point() else value for name, value in given.items()}

    def _dtype(self) -> torch.dtype:
        found: torch.dtype = next(one.dtype for one in self.module.parameters() if one.is_floating_point())
        return found


def _one(layers: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    """Returns a cache that grows, without windows: a graph of others keeps all tokens, and masks those it leaves
    out."""
    import transformers

    return transformers.DynamicCache(layers) if layers else transformers.DynamicCache()


def _two(own: Sequence[Any], cross: Sequence[Any]) -> Any:
    import transformers

    return transformers.EncoderDecoderCache(_one(own), _one(cross))


_FLOATS = {"float": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "double": torch.float64}


def _cast(value: torch.Tensor, dtype: str, last: bool) -> torch.Tensor:
    """Returns a result in the dtype that the graph declares. A module in float64 keeps its dtype."""
    wanted = _FLOATS.get(dtype)
    value = value[:, -1:] if last else value
    return value if wanted is None or value.dtype == torch.float64 else value.to(wanted)


def _other_state(module: Any, why: str) -> OnnxsmithError:
    return problem(
        "compare/folder-original",
        f"the state of {type(module).__name__} is not one of keys and values",
        why=why,
        fix="write a factory that makes the module, and compare one graph with it and --steps 8",
    )
