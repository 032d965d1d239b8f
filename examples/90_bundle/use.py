"""Classifies a picture that is mostly green, with the code in the bundle."""

import sys

import numpy as np

sys.path.insert(0, "bundle")

from model import Model
from processing import predict

picture = np.zeros((48, 64, 3), np.uint8)
picture[..., 1] = 200
for label, probability in predict(Model(), picture):
    print(f"{label}: {probability:.3f}")
