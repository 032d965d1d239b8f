"""Replaces parts of torch.nn by rewrites while a module is traced.

Compared with torch 2.11 to 2.14. If a name is gone, its rewrite does nothing, and the trace stops as it does without
the rewrite.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from onnxsmith.base.seams.base import private, replaced, replaced_at

_PARSE = "torch._C:_nn._parse_to"
_CAUSAL = "torch.nn.modules.transformer:_detect_is_causal_mask"
REACHES = (_PARSE, _CAUSAL, "torch._VF:_pack_padded_sequence")


def packing_by(pack: Callable[..., Any]) -> AbstractContextManager[None]:
    """Makes `pack_padded_sequence` return the result of `pack` while the block runs."""
    return replaced(private("torch._VF:"), "_pack_padded_sequence", pack, create=True)


def masks_by(is_causal: Callable[..., bool]) -> AbstractContextManager[None]:
    """Makes nn.Transformer call `is_causal` to decide whether a mask is causal."""
    return replaced_at(_CAUSAL, is_causal)


def converting_by(function: Callable[..., Any]) -> AbstractContextManager[None]:
    """Makes `module.to(...)` call `function` with the module and the arguments."""
    return replaced(torch.nn.Module, "to", function)


def parsed_conversion(*args: Any, **kwargs: Any) -> tuple[Any, Any, Any, Any] | None:
    """Returns device, dtype, `non_blocking` and memory format of a call of `to`; None if torch's parser is gone."""
    parse = private(_PARSE)
    return None if parse is None else parse(*args, **kwargs)
