"""bfloat16."""

from __future__ import annotations

from onnxsmith.precision.methods._floats import NarrowFloat


class Bfloat16(NarrowFloat):
    """Half the size: 8 bits of precision, the range of float32."""

    title = "bfloat16"
    opset = 13
    to = "bfloat16"
