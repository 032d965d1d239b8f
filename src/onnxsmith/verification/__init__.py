"""Verifies one model against another: inputs, runs, differences, tolerances and the verdict."""
