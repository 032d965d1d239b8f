"""float16."""

from __future__ import annotations

from onnxsmith.precision.methods._floats import NarrowFloat


class Float16(NarrowFloat):
    """Half the size: 11 bits of precision, numbers up to 65,504."""

    title = "float16"
    opset = 13
    to = "float16"
    instead = "--to bfloat16, which has the range of float32"
