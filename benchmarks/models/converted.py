"""What comes from elsewhere than torch's exporters: skl2onnx's pipelines and trees, ONNX Runtime's quantization.

    python benchmarks/models/converted.py FOLDER

Writes FOLDER/converted. Everything is trained or quantized here, on generated numbers. The quantized networks are those
that FOLDER/default holds, so those have to be there first.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

RANDOM = np.random.default_rng(0)
NUMBERS = RANDOM.standard_normal((200, 6)).astype(np.float32)
CLASSES = (NUMBERS[:, 0] + NUMBERS[:, 1] > 0).astype(np.int64) + (NUMBERS[:, 2] > 1)
AMOUNTS = (NUMBERS @ np.arange(6, dtype=np.float32)).astype(np.float32)
WORDS = np.array(["red apple", "green pear", "blue plum", "red plum", "green apple"])[RANDOM.integers(0, 5, 200)]

OPSETS = {"": 18, "ai.onnx.ml": 3}
"""The trees of some estimators are not to be had in a newer one."""

ESTIMATORS: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestClassifier(20, max_depth=6, random_state=0).fit(NUMBERS, CLASSES),
    "boosting": lambda: GradientBoostingRegressor(n_estimators=30, random_state=0).fit(NUMBERS, AMOUNTS),
    "isolation_forest": lambda: IsolationForest(n_estimators=20, random_state=0).fit(NUMBERS),
    "svc": lambda: SVC(probability=True, random_state=0).fit(NUMBERS, CLASSES),
    "nearest": lambda: KNeighborsClassifier().fit(NUMBERS, CLASSES),
    "clusters": lambda: KMeans(4, random_state=0, n_init=1).fit(NUMBERS),
    "gaussian_process": lambda: GaussianProcessRegressor().fit(NUMBERS[:50], AMOUNTS[:50]),
    "bayes": lambda: GaussianNB().fit(NUMBERS, CLASSES),
    "perceptron": lambda: MLPClassifier((16, 16), max_iter=50, random_state=0).fit(NUMBERS, CLASSES),
    "pipeline": lambda: make_pipeline(
        SimpleImputer(),
        StandardScaler(),
        PolynomialFeatures(2),
        PCA(5, random_state=0),
        LogisticRegression(max_iter=500),
    ).fit(NUMBERS, CLASSES),
    "stacking": lambda: StackingClassifier(
        [("forest", RandomForestClassifier(5, random_state=0)), ("bayes", GaussianNB())], LogisticRegression()
    ).fit(NUMBERS, CLASSES),
}


def estimators(folder: Path) -> None:
    """Pipelines and trees on float32 rows of six numbers, and two on strings. What skl2onnx cannot do is printed."""
    words = WORDS.reshape(-1, 1)
    columns = ColumnTransformer([("kind", OneHotEncoder(handle_unknown="ignore"), [0])])
    texts = ColumnTransformer([("text", TfidfVectorizer(), 0)])
    numbers, strings = [("x", FloatTensorType([None, 6]))], [("words", StringTensorType([None, 1]))]
    trained = {name: (train(), numbers) for name, train in ESTIMATORS.items()}
    trained["one_hot"] = (make_pipeline(columns, LogisticRegression()).fit(words, CLASSES), strings)
    trained["tfidf"] = (make_pipeline(texts, LogisticRegression()).fit(words, CLASSES), strings)
    for name, (estimator, types) in trained.items():
        try:
            save(to_onnx(estimator, initial_types=types, options=_plain(name), target_opset=OPSETS), folder / name)
        except Exception as error:  # noqa: BLE001 — whatever stops a conversion is listed, and the others go on
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")


def _plain(name: str) -> dict[str, Any] | None:
    """Probabilities as a tensor, where the estimator has the choice."""
    classifiers = ("forest", "svc", "nearest", "bayes", "perceptron", "pipeline", "stacking")
    return {"zipmap": False} if name in classifiers else None


def save(model: onnx.ModelProto, path: Path) -> None:
    """Writes the model with `.onnx` at the end of its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path) + ".onnx")


class Pictures(CalibrationDataReader):  # type: ignore[misc]
    """A few random pictures to calibrate on."""

    def __init__(self) -> None:
        self._left: Iterator[dict[str, Any]] = iter(
            [{"pixel_values": RANDOM.standard_normal((2, 3, 64, 64)).astype(np.float32)} for _ in range(3)]
        )

    def get_next(self) -> dict[str, Any] | None:
        """One feed, or None when there are no more."""
        return next(self._left, None)


def quantized(folder: Path, source: Path) -> None:
    """Networks in int8: as QuantizeLinear pairs, as QLinear operators, and quantized while they run."""
    for name, form in (("qdq", QuantFormat.QDQ), ("qlinear", QuantFormat.QOperator)):
        for network in ("resnet", "mobilenet_v2"):
            target = folder / f"{network}_{name}.onnx"
            quantize_static(source / f"{network}_static.onnx", target, Pictures(), quant_format=form)
    for network in ("bert", "gpt2"):
        quantize_dynamic(source / f"{network}_dynamic.onnx", folder / f"{network}_int8.onnx")


def main() -> None:
    """Writes all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    warnings.simplefilter("ignore")
    estimators(folder / "converted")
    quantized(folder / "converted", folder / "default")


if __name__ == "__main__":
    main()
