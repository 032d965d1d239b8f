"""Engines that run cells: `concurrent.futures` executors, one file each."""
