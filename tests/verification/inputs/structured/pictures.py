"""Boxes, regions, grids and matrices."""

from __future__ import annotations

import numpy as np

from tests.verification.inputs.structured.base import Structured, f, i, model

_NMS = "int64[1] most = {5}, float[1] overlap = {0.5}, float[1] least = {0.1}"

MODELS: dict[str, Structured] = {
    "boxes suppressed": model(
        f"""g (float[batch,boxes,4] b, float[batch,classes,boxes] scores) => (int64[k,3] y) <{_NMS}> {{
    y = NonMaxSuppression(b, scores, most, overlap, least)
    }}""",
        b=np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]], np.float32),
        scores=np.array([[[0.9, 0.8, 0.7]]], np.float32),
    ),
    "boxes suppressed and taken": model(
        f"""g (float[boxes,4] b, float[boxes] scores) => (float[k,4] y)
    <{_NMS}, int64[1] zero = {{0}}, int64[2] front = {{0, 1}}, int64 last = {{2}}> {{
    bb = Unsqueeze(b, zero)
    ss = Unsqueeze(scores, front)
    k = NonMaxSuppression(bb, ss, most, overlap, least)
    at = Gather<axis = 1>(k, last)
    y = Gather(b, at)
    }}""",
        b=np.array([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]], np.float32),
        scores=np.array([0.9, 0.8, 0.7], np.float32),
    ),
    "regions of a feature map": model(
        """g (float[batch,3,h,w] x, float[regions,4] rois, int64[regions] picture) => (float[regions,3,2,2] y) {
    y = RoiAlign<output_height = 2, output_width = 2, spatial_scale = 0.5>(x, rois, picture)
    }""",
        x=f(2, 3, 8, 8),
        rois=np.array([[0, 0, 8, 8], [2, 2, 10, 12]], np.float32),
        picture=i(0, 1),
    ),
    "regions pooled by their maximum": model(
        """g (float[batch,3,h,w] x, float[regions,5] rois) => (float[regions,3,2,2] y) {
    y = MaxRoiPool<pooled_shape = [2, 2]>(x, rois)
    }""",
        x=f(2, 3, 8, 8),
        rois=np.array([[0, 0, 0, 5, 5], [1, 2, 2, 6, 7]], np.float32),
    ),
    "overlap of boxes by logarithm": model(
        """g (float[n,4] boxes) => (float[n,1] y) {
    x1, y1, x2, y2 = Split<axis = 1, num_outputs = 4>(boxes)
    w = Sub(x2, x1)
    h = Sub(y2, y1)
    area = Mul(w, h)
    lw = Log(w)
    lh = Log(h)
    y = Add(lw, lh)
    }""",
        boxes=np.array([[0, 0, 1, 2]], np.float32),
    ),
    "a grid sampled": model(
        """g (float[batch,2,h,w] x, float[batch,gh,gw,2] grid)
    => (float[batch,2,gh,gw] y) { y = GridSample(x, grid) }""",
        x=f(1, 2, 6, 6),
        grid=np.clip(f(1, 3, 3, 2), -1, 1),
    ),
    "a perspective warp": model(
        """g (float[batch,3,3] m, float[n,3] points) => (float[batch,n,2] y)
    <int64[1] zero = {0}, int64[1] two = {2}, int64[1] three = {3}, int64[1] axis = {2}> {
    inverse = com.microsoft.Inverse(m)
    t = Transpose<perm = [0, 2, 1]>(inverse)
    p = MatMul(points, t)
    xy = Slice(p, zero, two, axis)
    w = Slice(p, two, three, axis)
    y = Div(xy, w)
    }""",
        m=np.eye(3, dtype=np.float32)[None],
        points=np.array([[0.1, 0.2, 1]], np.float32),
    ),
    "a volume by determinant": model(
        """g (float[n,3,3] m) => (float[n] y) { d = Det(m)\n a = Abs(d)\n y = Log(a) }""",
        m=np.eye(3, dtype=np.float32)[None] * 2,
    ),
    "an affine grid": model(
        """g (float[batch,2,3] theta, float[batch,1,h,w] x) => (float[batch,1,6,5] y)
    <int64[2] hw = {6, 5}, int64[1] one = {1}> {
    n = Shape<start = 0, end = 1>(theta)
    size = Concat<axis = 0>(n, one, hw)
    g = AffineGrid(theta, size)
    y = GridSample(x, g)
    }""",
        theta=np.array([[[1, 0, 0.1], [0, 1, 0]]], np.float32),
        x=f(1, 1, 6, 6),
    ),
}
