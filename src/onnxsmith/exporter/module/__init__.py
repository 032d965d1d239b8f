"""Examines a module before it is traced: its source, one run, runs at other sizes, its code paths."""
