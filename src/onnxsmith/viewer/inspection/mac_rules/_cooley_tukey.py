"""The multiply-accumulates of a fast Fourier transform."""

from __future__ import annotations


def transform(length: int) -> int:
    """Returns the real multiply-accumulates of one complex transform: 4 · N · (r₁ + … + rₘ), for N = r₁ · … · rₘ.

    Source: J. W. Cooley, J. W. Tukey, "An Algorithm for the Machine Calculation of Complex Fourier Series" (1965): N ·
    (r₁ + … + rₘ) operations, each a complex multiplication and addition, which are four real ones. A prime length has
    the N² operations of the definition. Real input is not counted as less.
    """
    rest, factor, total = length, 2, 0
    while factor * factor <= rest:
        while rest % factor == 0:
            rest, total = rest // factor, total + factor
        factor += 1
    return 4 * length * (total + (rest if rest > 1 else 0))
