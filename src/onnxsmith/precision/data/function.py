"""Reads data from a function of the user, or from a Python iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.exporter import factory
from onnxsmith.precision.data.base import Kind, Reading, Sample

_PAIR = 2
_KEY = "label"
"""The entry of a record that holds its label, unless the model has an input of that name."""


class Function(Kind):
    """`file.py:function`, a function, or an iterable. Each item is `(arrays by input name, label)`, or the arrays
    alone; these may have an entry `label`. With preprocessing, an item has the argument of the user's function in place
    of the arrays. A function is called again for each pass over the data. An iterable that can be used only once is
    read into a list."""

    rank = 4
    form = "file.py:function that yields (arrays by input name, label)"

    def reads(self, given: Any) -> bool:
        if isinstance(given, str):
            return factory.is_target(given)
        return callable(given) or (isinstance(given, Iterable) and not isinstance(given, bytes | Mapping))

    def samples(self, given: Any, reading: Reading) -> Iterator[Sample]:
        named = given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)
        made: Any = factory.function(given) if isinstance(given, str) else given
        for number, item in enumerate(_items(made, named)):
            arrays, label = item if isinstance(item, tuple) and len(item) == _PAIR else (item, None)
            name = f"{named}[{number}]"
            if label is None and reading.prepare is None and _is_labelled(arrays, reading):
                label = arrays[_KEY]
                arrays = {key: value for key, value in arrays.items() if key != _KEY}
            yield Sample(reading.feeds(arrays, name), label, name)


def _is_labelled(arrays: Any, reading: Reading) -> bool:
    inputs = {port.name for port in reading.interface.inputs}
    return isinstance(arrays, Mapping) and _KEY in arrays and _KEY not in inputs


def _items(given: Callable[[], Iterable[Any]] | Iterable[Any], named: str) -> Iterator[Any]:
    """Yields the items. An error in the user's code becomes a problem that names the line."""
    try:
        yield from given() if callable(given) else given
    except OnnxsmithError:
        raise
    except Exception as error:
        raise problem(
            "quantize/data",
            "the function that gives the data failed",
            where=factory.user_line(error) or named,
            why=f"{type(error).__name__}: {error}",
            fix="run the function in Python, and mend it",
        ) from error
