"""Lists the texts that an attribute may hold, if the specification names them. Schemas have them in prose only."""

from __future__ import annotations

_RNN = ("forward", "reverse", "bidirectional")

CHOICES: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "auto_pad"): ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    ("Pad", "mode"): ("constant", "reflect", "edge", "wrap"),
    ("Resize", "mode"): ("nearest", "linear", "cubic"),
    ("Resize", "coordinate_transformation_mode"): (
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        "tf_half_pixel_for_nn", "tf_crop_and_resize",
    ),
    ("Resize", "nearest_mode"): ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    ("Resize", "keep_aspect_ratio_policy"): ("stretch", "not_larger", "not_smaller"),
    ("GridSample", "mode"): ("linear", "nearest", "cubic", "bilinear", "bicubic"),
    ("GridSample", "padding_mode"): ("zeros", "border", "reflection"),
    ("ScatterElements", "reduction"): ("none", "add", "mul", "max", "min"),
    ("ScatterND", "reduction"): ("none", "add", "mul", "max", "min"),
    ("DepthToSpace", "mode"): ("DCR", "CRD"),
    ("Gelu", "approximate"): ("none", "tanh"),
    ("BitShift", "direction"): ("LEFT", "RIGHT"),
    ("LSTM", "direction"): _RNN,
    ("GRU", "direction"): _RNN,
    ("RNN", "direction"): _RNN,
    ("RoiAlign", "mode"): ("avg", "max"),
    ("StringNormalizer", "case_change_action"): ("NONE", "LOWER", "UPPER"),
}  # fmt: skip
"""The allowed texts by (operator, attribute). ("", attribute) stands for every operator."""
