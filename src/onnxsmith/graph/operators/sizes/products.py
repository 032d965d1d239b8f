"""Checks sizes of matrix products."""

from __future__ import annotations

from onnxsmith.graph.operators.sizes.size_rule_call import Call, Dim, clash, shown


def matmul(call: Call) -> None:
    """Checks that the last axis of A has the size of the last but one of B, and that the axes before them broadcast."""
    a, b = call.dims(0), call.dims(1)
    for index, dims in ((0, a), (1, b)):
        if dims == ():
            raise call.refuse(index, "a vector or a matrix", "use g.Mul for a scalar")
    if not a or not b:
        return
    inner = b[-2] if len(b) > 1 else b[0]
    if clash(a[-1], inner):
        turned = len(b) > 1 and not clash(a[-1], b[-1])
        last = [*range(len(b) - 2), len(b) - 1, len(b) - 2]
        fix = f"transpose B: g.Transpose(B, perm={last})" if turned else "correct the weight, or the tensor before"
        axis = "[…, K, N]" if len(b) > 1 else "[K]"
        raise call.refuse(1, f"{axis} with K={a[-1]}", fix, f"A has the shape {shown(a)}: its last axis is summed over")
    for x, y in zip(reversed(a[:-2]), reversed(b[:-2]), strict=False):
        if clash(x, y) and 1 not in (x, y):
            raise call.refuse(1, f"one whose first axes broadcast with {shown(a[:-2])}", "reshape one of the two")


def gemm(call: Call) -> None:
    """Checks the shapes: A [M, K] · B [K, N] + C, each matrix transposed if its attribute says so."""
    for index in (0, 1):
        if call.rank(index) not in (None, 2):
            raise call.refuse(index, "a matrix", "use g.MatMul for more axes, or g.Flatten before")
    a, b, c = call.dims(0), call.dims(1), call.dims(2)
    m, k = _turned(a, call.attribute("transA", 0))
    k_b, n = _turned(b, call.attribute("transB", 0))
    if clash(k, k_b):
        other = 1 - int(call.attribute("transB", 0))
        fix = f"add transB={other}" if not clash(k, n) else "correct the weight, or the tensor before"
        wanted = f"[N, {k}]" if call.attribute("transB", 0) else f"[{k}, N]"
        raise call.refuse(1, wanted, fix)
    for dim, size in zip(reversed(c or ()), (n, m), strict=False):
        if clash(dim, size) and dim != 1:
            raise call.refuse(2, f"one that broadcasts to {shown((m, n))}", f"give C the shape [{n}]")
    if c is not None and len(c) > 2:
        raise call.refuse(2, f"one that broadcasts to {shown((m, n))}", "give C at most two axes")


def _turned(dims: tuple[Dim, ...] | None, is_turned: int) -> tuple[Dim, Dim]:
    if dims is None:
        return None, None
    return (dims[1], dims[0]) if is_turned else (dims[0], dims[1])


def attention(call: Call) -> None:
    """Checks that Q, K and V have 3 or 4 axes, K and V the same length and, with 4 axes, Q and K the same width."""
    q, k, v = (call.dims(index) for index in range(3))
    for index in range(3):
        if call.rank(index) not in (None, 3, 4):
            raise call.refuse(index, "[batch, sequence, hidden] or [batch, heads, sequence, width]", "reshape it")
    if call.rank(0) == 3 and not (call.attribute("q_num_heads") and call.attribute("kv_num_heads")):
        raise call.refuse_value(
            "operands of 3 axes need the number of heads",
            "add q_num_heads=… and kv_num_heads=…",
            "the hidden axis is split into heads",
        )
    if k and v and clash(k[-2], v[-2]):
        raise call.refuse(2, f"one of length {k[-2]} like K", "keys and values come from one sequence")
    if q and k and len(q) == len(k) == 4 and clash(q[-1], k[-1]):
        raise call.refuse(1, f"one of width {q[-1]} like Q", "queries and keys are multiplied along their last axis")
    for other in (k, v):
        if q and other and clash(q[0], other[0]):
            raise call.refuse(0, f"one with the batch size {other[0]}", "all three have one batch size")
    if q and k and len(q) == len(k) == 4 and isinstance(q[1], int) and isinstance(k[1], int) and q[1] % max(k[1], 1):
        raise call.refuse(1, f"a number of heads that divides {q[1]}", "each head of K serves as many heads of Q")


def einsum(call: Call) -> None:
    """Checks that every letter stands for one size."""
    terms = str(call.attribute("equation", "")).replace(" ", "").partition("->")[0].split(",")
    if len(terms) != len(call.node.inputs):
        raise call.refuse_value(
            f"the equation has {len(terms)} terms, and there are {len(call.node.inputs)} operands",
            "write one term for each operand, between commas",
        )
    sizes: dict[str, tuple[int, Dim]] = {}
    for index, term in enumerate(terms):
        dims = call.dims(index)
        if dims is None or "." in term:
            continue
        if len(term) != len(dims):
            raise call.refuse(index, f"one with {len(term)} axes, for the term {term!r}", "correct the equation")
        for letter, dim in zip(term, dims, strict=True):
            first, size = sizes.setdefault(letter, (index, dim))
            if clash(size, dim) and 1 not in (size, dim):
                raise call.refuse(
                    index, f"one with {letter}={size}, as in {call.label(first)}", "correct the equation, or transpose"
                )
