"""Parts of torch.nn and of Python that a rewrite replaces while a module is traced.

Compared with torch 2.11 to 2.13. Where a name is gone, the rewrite does nothing, and the trace stops where it would
have stopped without it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from onnxsmith.seams.base import private, replaced, replaced_at

_PARSE = "torch._C:_nn._parse_to"
_CAUSAL = "torch.nn.modules.transformer:_detect_is_causal_mask"
_PACKED = ("torch._VF:_pack_padded_sequence", "torch._VF:_pad_packed_sequence")
REACHES = (_PARSE, _CAUSAL, *_PACKED)


def packing_by(pack: Callable[..., Any]) -> AbstractContextManager[None]:
    """Inside, `pack_padded_sequence` gives what `pack` gives."""
    return replaced(private("torch._VF:"), "_pack_padded_sequence", pack, create=True)


def padding_by(pad: Callable[..., Any]) -> AbstractContextManager[None]:
    """Inside, `pad_packed_sequence` gives what `pad` gives."""
    return replaced(private("torch._VF:"), "_pad_packed_sequence", pad, create=True)


def masks_by(is_causal: Callable[..., bool]) -> AbstractContextManager[None]:
    """Inside, nn.Transformer asks this function whether a mask is the causal one."""
    return replaced_at(_CAUSAL, is_causal)


def converting_by(function: Callable[..., Any]) -> AbstractContextManager[None]:
    """Inside, `module.to(...)` is this function of the module and the arguments."""
    return replaced(torch.nn.Module, "to", function)


def parsed_conversion(*args: Any, **kwargs: Any) -> tuple[Any, Any, Any, Any] | None:
    """Device, dtype, whether to wait, and layout that a call of `to` asks for; None where torch no longer says."""
    parse = private(_PARSE)
    return None if parse is None else parse(*args, **kwargs)
