"""Checks sizes of LSTM, GRU and RNN."""

from __future__ import annotations

from onnxsmith.graph.operators.sizes.size_rule_call import Call, clash, shown

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def gates(call: Call) -> None:
    """Checks the shapes: X [sequence, batch, input], W [directions, gates · hidden, input], R [directions, gates ·
    hidden, hidden]."""
    count = _GATES[call.node.op_type]
    directions = 2 if call.attribute("direction", "forward") == "bidirectional" else 1
    for index, wanted in ((0, "[sequence, batch, input]"), (1, "[directions, gates * hidden, input]"),
                          (2, "[directions, gates * hidden, hidden]")):  # fmt: skip
        if call.rank(index) not in (None, 3):
            raise call.refuse(index, wanted, "give it three axes; torch's weights lack the first: weight[None]")
    x, w, r = call.dims(0), call.dims(1), call.dims(2)
    held = call.attribute("hidden_size")
    if held is None:
        hidden = r[2] if r is not None and isinstance(r[2], int) else "…"
        raise call.refuse_value("hidden_size is missing", f"add hidden_size={hidden}", "runtimes refuse it without")
    hidden = int(held)
    width = x[2] if x is not None else None
    wanted_w, wanted_r = (directions, count * hidden, width), (directions, count * hidden, hidden)
    for index, found, wanted_dims in ((1, w, wanted_w), (2, r, wanted_r)):
        if found is not None and any(clash(a, b) for a, b in zip(found, wanted_dims, strict=True)):
            raise call.refuse(
                index,
                f"{shown(wanted_dims)}: directions, {count} gates of hidden_size={hidden}, and what it multiplies",
                "correct hidden_size, direction or the weight",
            )
    bias = call.dims(3)
    if bias is not None and (len(bias) != 2 or clash(bias[0], directions) or clash(bias[1], 2 * count * hidden)):
        fix = "join both biases of torch: np.concatenate([bias_ih, bias_hh])[None]"
        raise call.refuse(3, f"[{directions}, {2 * count * hidden}]", fix)
    turned = int(call.attribute("layout", 0))
    batch = x[1 - turned] if x is not None else None
    for index in (5, 6) if call.node.op_type == "LSTM" else (5,):
        start = call.dims(index)
        wanted_start = (batch, directions, hidden) if turned else (directions, batch, hidden)
        if start is not None and (
            len(start) != 3 or any(clash(a, b) for a, b in zip(start, wanted_start, strict=True))
        ):
            raise call.refuse(index, shown(wanted_start), "give one state for each direction and row of the batch")
