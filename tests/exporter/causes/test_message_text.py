"""Lines that a message names."""

from __future__ import annotations

from onnxsmith.exporter.causes._message_text import line_in


def test_a_line_of_the_exporter_itself_is_not_the_users() -> None:
    own = "Caused by: (r/wt/src/onnxsmith/exporter/translating/function_substitution.py:24 in __torch_function__)\n"
    assert line_in(own) == ""
    assert line_in(f'  File "/home/me/model.py", line 7, in forward\n    if x:\n{own}') == "/home/me/model.py:7"
    assert line_in(f"{own}Caused by: (model.py:7 in forward)\n") == "model.py:7"
