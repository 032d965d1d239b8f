"""Where translations of polynomials end."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations.orthogonal_polynomials import ChebyshevPolynomialT


def test_there_is_no_result_beyond_the_last_degree() -> None:
    found = ChebyshevPolynomialT().decompose(torch.tensor(1.0), torch.tensor([3, 10_000, 10_001]))
    assert found[:2].tolist() == [1.0, 1.0]
    assert found[2].isnan()
