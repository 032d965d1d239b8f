"""Which releases a lifetime includes, and which versions are newer than tested."""

from __future__ import annotations

import pytest

from onnxsmith.base.library_versions import Lifetime, is_newer, release


@pytest.mark.parametrize(
    ("lifetime", "version", "included"),
    [
        (Lifetime(), "0.1", True),
        (Lifetime(added="2.13"), "2.12.1", False),
        (Lifetime(added="2.13"), "2.13.0+cpu", True),
        (Lifetime(removed="2.14"), "2.13.9", True),
        (Lifetime(removed="2.14"), "2.14.0a0+git1234", False),
        (Lifetime(removed="2.14"), "2.14.1+cu130", False),
        (Lifetime(added="2.9", removed="2.10"), "2.9.1", True),
        (Lifetime(added="2.9", removed="2.10"), "2.10.0", False),
        (Lifetime(added="2.9", removed="2.10"), "2.8.0", False),
    ],
)
def test_the_releases_of_a_lifetime(lifetime: Lifetime, version: str, included: bool) -> None:
    assert lifetime.includes(version) is included


@pytest.mark.parametrize(
    ("version", "newer"),
    [("1.10.0", True), ("2.0", True), ("1.9.7", False), ("1.8.0", False), ("nightly", False)],
)
def test_a_patch_release_is_not_newer(version: str, newer: bool) -> None:
    assert is_newer(version, "1.9.2") is newer


def test_the_numbers_of_a_version() -> None:
    assert release("2.14.1+cu130") == (2, 14, 1)
    assert release("7rc1") == (7,)
    assert release("nightly") == ()
