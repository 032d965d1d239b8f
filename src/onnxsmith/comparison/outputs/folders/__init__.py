"""Compares folders of graphs that other tools wrote: recognises the layout, pairs the parts, and generates texts.

These modules are in `outputs`, because a folder is one more kind of side of `compare`, and uses what compares sides.
"""
