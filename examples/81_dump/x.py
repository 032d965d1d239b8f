"""Writes an input with one large number."""

import numpy as np

np.save("x.npy", np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 10.0, 3.0]], np.float32))
