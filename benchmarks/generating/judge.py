"""Generates with a file step by step, as a program does, and compares each step with PyTorch's.

Nothing of onnxsmith is used here: the file runs in onnxruntime, its `present…` outputs are its next `past…` inputs. The
reference is the model's own loop, in which one call hands its state to the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import torch

STEPS = 12
"""Steps of one token: three times the windows of the models here."""
TOLERANCE = 2e-3
"""Largest difference of a logit, absolute: tiny float32 models after twelve steps differ by 1e-5 at most."""


def steps(file: str, model: Any, batch: int, *, tokens: int = STEPS) -> float:
    """The largest difference of a logit over all steps; nan if a logit is not finite.

    Raises any error of onnxruntime, and ValueError if the file needs an input of which nothing is known.
    """
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    torch.manual_seed(batch)
    encoded = _encoded(model, batch)
    name = "decoder_input_ids" if encoded else "input_ids"
    text = torch.randint(3, 90, (batch, tokens))
    wanted = _loop(model, name, text, encoded)
    feeds = {port.name: _empty(port, batch) for port in session.get_inputs()}
    if feeds[name].shape[0] != batch:
        raise ValueError(f"the file takes a batch of {feeds[name].shape[0]} only")
    seen = {port.name: port.shape[1] for port in session.get_inputs() if len(port.shape) == 2 and _is_fixed(port)}
    first = 0
    if encoded:
        first = 1
        feeds |= _begun(model, text[:, :1], encoded, feeds)
    worst = 0.0
    for at in range(first, tokens):
        feeds[name] = text[:, at : at + 1].numpy()
        for other in [other for other in ("attention_mask", "position_ids") if other in feeds and not encoded]:
            feeds[other] = np.full((batch, 1), at) if other == "position_ids" else _mask(batch, seen.get(other, at + 1))
        found = dict(zip([port.name for port in session.get_outputs()], session.run(None, feeds), strict=True))
        worst = max(worst, float(np.abs(found["logits"][:, -1] - wanted[at]).max()))
        feeds |= {past: found[_present(past)] for past in feeds if _present(past) in found}
    return worst


def _loop(model: Any, name: str, text: torch.Tensor, encoded: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    """The logits of each step, by the model's own state."""
    options: dict[str, Any] = {"encoder_outputs": encoded["outputs"]} if encoded else {}
    found = []
    for at in range(text.shape[1]):
        with torch.no_grad():
            result = model(**{name: text[:, at : at + 1]}, use_cache=True, **options)
        found.append(result.logits[:, -1].numpy())
        options |= {state: result[state] for state in ("cache", "past_key_values", "state") if state in result}
    return found


def _is_fixed(port: Any) -> bool:
    return isinstance(port.shape[1], int)


def _mask(batch: int, length: int) -> np.ndarray[Any, Any]:
    return np.ones((batch, length), np.int64)


def _present(past: str) -> str:
    for one in ("past_key_values", "cache_params", "state", "mems"):
        if past == one or past.startswith(f"{one}."):
            return past.replace(one, "present", 1)
    return ""


def _empty(port: Any, batch: int) -> np.ndarray[Any, Any]:
    dtype = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}[port.type]
    shape = [size if isinstance(size, int) else batch if "batch" in str(size) else 0 for size in port.shape]
    return np.zeros(shape, dtype)


def _encoded(model: Any, batch: int) -> dict[str, Any]:
    if not model.config.is_encoder_decoder:
        return {}
    main = model.main_input_name
    if main == "input_ids":
        given = torch.randint(3, 90, (batch, 5))
    elif main == "input_features":
        given = torch.randn(batch, model.config.num_mel_bins, 2 * model.config.max_source_positions)
    else:
        given = torch.randn(batch, 4000)
    with torch.no_grad():
        found = model.get_encoder()(given)
        return {"hidden": found.last_hidden_state, "outputs": type(found)(last_hidden_state=found.last_hidden_state)}


def _begun(model: Any, token: Any, encoded: dict[str, Any], feeds: dict[str, Any]) -> dict[str, Any]:
    """The state after the first token, by PyTorch: a file with a state takes the encoder's part of it as given."""
    with torch.no_grad():
        result = model(decoder_input_ids=token, encoder_outputs=encoded["outputs"], use_cache=True)
    cache = result["cache"] if "cache" in result else result["past_key_values"]
    found = dict.fromkeys(("encoder_outputs.0", "encoder_outputs.last_hidden_state"), encoded["hidden"].numpy())
    if "attention_mask" in feeds:
        found["attention_mask"] = np.ones(encoded["hidden"].shape[:2], np.int64)
    for part in ("self_attention_cache", "cross_attention_cache"):
        for number, layer in enumerate(getattr(cache, part).layers):
            found[f"past_key_values.{part}.{number}.key"] = layer.keys.numpy()
            found[f"past_key_values.{part}.{number}.value"] = layer.values.numpy()
    return {name: value for name, value in found.items() if name in feeds}
