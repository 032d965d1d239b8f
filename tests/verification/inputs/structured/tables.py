"""Tables: tokens, positions, offsets, labels."""

from __future__ import annotations

from tests.verification.inputs.structured.base import HEAD, Structured, f, i, model, table

MODELS: dict[str, Structured] = {
    "tokens and positions that are given": model(
        f"""g (int64[batch,seq] tokens, int64[batch,seq] positions) => (float[batch,seq,4] y)
    <{table(11, 4)}, {table(6, 4, "places")}> {{
    a = Gather(table, tokens)
    b = Gather(places, positions)
    y = Add(a, b)
    }}""",
        tokens=i([[10, 3, 0]]),
        positions=i([[0, 1, 5]]),
    ),
    "a table of positions by length": model(
        f"""g (int64[batch,seq] tokens) => (float[batch,seq,4] y)
    <{table(11, 4)}, {table(16, 4, "places")}, int64[1] zero = {{0}}> {{
    a = Gather(table, tokens)
    s = Shape<start = 1, end = 2>(tokens)
    p = Slice(places, zero, s)
    y = Add(a, p)
    }}""",
        tokens=i([[10, 3, 0]]),
    ),
    "an embedding bag by offsets": model(
        f"""g (int64[n] tokens, int64[bags] offsets) => (float[bags,4] y)
    <{table(9, 4)}, int64[1] zero = {{0}}, int64[1] one = {{1}},
     int64[1] most = {{9223372036854775807}}, bool yes = {{1}}> {{
    rows = Gather(table, tokens)
    count = Shape<start = 0, end = 1>(tokens)
    rest = Slice(offsets, one, most)
    ends = Concat<axis = 0>(rest, count)
    bags = Shape<start = 0, end = 1>(offsets)
    m = Squeeze(bags, zero)
    y = Loop(m, yes) <body = b (int64 k, bool c) => (bool again, float[4] sum) {{
        again = Identity(c)
        at = Unsqueeze(k, zero)
        begin = Gather(offsets, at)
        end = Gather(ends, at)
        part = Slice(rows, begin, end)
        sum = ReduceSum<keepdims = 0>(part, zero)
    }}>
    }}""",
        tokens=i(1, 2, 8, 4),
        offsets=i(0, 2, 3),
    ),
    "row pointers of a sparse matrix": model(
        """g (float[stored] values, int64[stored] columns, int64[3] pointers, float[m] x)
    => (float[stored] y, int64[2] width)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}> {
    g = Gather(x, columns)
    y = Mul(values, g)
    a = Slice(pointers, one, three)
    b = Slice(pointers, zero, two)
    width = Sub(a, b)
    }""",
        values=f(4),
        columns=i(0, 1, 1, 2),
        pointers=i(0, 2, 4),
        x=f(3),
    ),
    "a label's probability": model(
        """g (float[batch,10] logits, int64[batch] label) => (float[batch,1] y) <int64[1] one = {1}> {
    p = Softmax<axis = 1>(logits)
    u = Unsqueeze(label, one)
    y = GatherElements<axis = 1>(p, u)
    }""",
        logits=f(2, 10),
        label=i(9, 0),
    ),
    "a loss by labels with weights": model(
        """g (float[batch,5] logits, int64[batch] label) => (float loss)
    <float[5] w = {1, 2, 1, 0.5, 1}> {
    loss = SoftmaxCrossEntropyLoss<reduction = "mean">(logits, label, w)
    }""",
        logits=f(3, 5),
        label=i(4, 0, 2),
    ),
    "tokens of a class inside a function": model(
        f"""g (int64[batch,seq] ids) => (float[batch,seq,4] y) <{table(7, 4)}> {{ y = local.Embed(table, ids) }}
    <domain: "local", opset_import: ["": 20]> Embed (t, k) => (r) {{ c = Cast<to = 6>(k)\n r = Gather(t, c) }}""",
        head=HEAD.replace('"com.microsoft": 1', '"local": 1'),
        ids=i([[6, 0]]),
    ),
    "an index inside a loop": model(
        f"""g (int64[n] ids)
    => (float[2] y) <{table(5, 2)}, bool yes = {{1}}, float[2] start = {{0, 0}}, int64[1] zero = {{0}}> {{
    s = Shape(ids)
    m = Squeeze(s, zero)
    y = Loop(m, yes, start) <body = b (int64 k, bool c, float[2] state) => (bool again, float[2] next) {{
        again = Identity(c)
        one = Gather(ids, k)
        row = Gather(table, one)
        next = Add(state, row)
    }}>
    }}""",
        ids=i(4, 1, 0),
    ),
    "tokens scanned one by one": model(
        f"""g (int64[n] ids) => (float[2] last, float[n,2] all) <{table(5, 2)}, float[2] start = {{0, 0}}> {{
    last, all = Scan<num_scan_inputs = 1, body = b (float[2] state, int64 one) => (float[2] next, float[2] row) {{
        row = Gather(table, one)
        next = Add(state, row)
    }}>(start, ids)
    }}""",
        ids=i(4, 1, 0),
    ),
}
