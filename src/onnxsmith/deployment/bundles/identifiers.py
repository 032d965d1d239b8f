"""Writes names of a model in generated code, as identifiers and as string literals.

A name in a model may be any text: `input.1`, `class`, `output:0`, or a text with quotes or line breaks. An identifier
is valid in Python, C++ and JavaScript at once, so that the documentation of one bundle applies to bundles of other
forms.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable

_CPP = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await
co_return co_yield compl concept const consteval constexpr constinit const_cast continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq NULL errno assert main std EOF
stdin stdout stderr unix linux
"""
"""Lists the keywords of C++20 (lex.key), and macros of its headers."""
_JAVASCRIPT = """
arguments await break case catch class const constructor continue debugger default delete do else enum eval export
extends false finally for function if implements import in instanceof interface let new null package private
protected prototype public return static super switch this throw true try typeof undefined var void while
with yield NaN Infinity
"""
"""Lists the reserved words of ECMAScript 2024 (12.7.2), and names that every module defines."""
_GENERATED = """
self cls run model Model Inputs Outputs inputs outputs Tensor mro dict list object match type
Array Bytes Dim Port Range Picture InputError detail input_ports output_ports ranges Ort
Any Shape Strings Bool BFloat16Bits Float16 Float32 Float64 Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64
np npt ort values names
"""
"""Lists the names that the generated code itself uses."""
RESERVED = frozenset([*_CPP.split(), *_JAVASCRIPT.split(), *_GENERATED.split(), *keyword.kwlist, *keyword.softkwlist])
_LONGEST = 60
"""Limits the characters of an identifier. A choice: MSVC and Python take longer identifiers, but lines become
unreadable."""


def identifiers(names: Iterable[str], *, taken: Iterable[str] = ()) -> dict[str, str]:
    """Returns an identifier for each name. No two identifiers are equal, and none is in `taken` or a reserved word."""
    used = {one.lower() for one in taken}
    found: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:_LONGEST] or "tensor"
        plain = f"t_{plain}" if plain[0].isdigit() else plain
        plain = f"{plain}_" if plain in RESERVED else plain
        free, number = plain, 2
        while free.lower() in used:
            free, number = f"{plain.rstrip('_')}_{number}", number + 1
        used.add(free.lower())
        found[name] = free
    return found


_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def file_name(name: str) -> str:
    """Returns the name as a folder, an npm package and a server's model may have it. Such a name has letters, digits,
    `_`, `-` and `.`, and begins with a letter or digit. It is no name of a device of Windows, such as `con`."""
    found = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).lstrip("_.-").rstrip("_.")[:_LONGEST].rstrip("_.") or "model"
    return f"model_{found}" if _DEVICE.fullmatch(found) else found


def plain(name: str) -> str:
    """Returns the name as the beginning of an identifier. The result may be a reserved word, because more characters
    follow."""
    found = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:_LONGEST] or "model"
    return f"t_{found}" if found[0].isdigit() else found


def python(text: str) -> str:
    """Returns a Python string literal in ASCII."""
    return ascii(text)


def javascript(text: object) -> str:
    """Returns a JavaScript literal in ASCII, safe also inside a `<script>` of a page."""
    return json.dumps(text, allow_nan=False).replace("<", "\\u003c")


def c(text: str) -> str:
    """Returns a string literal for C++ and for protobuf's text format: printable ASCII, all other bytes of UTF-8 in
    octal.

    An octal escape has three digits, so that a following digit does not become part of it. Question marks are escaped,
    too, because `??/` was a trigraph before C++17.
    """
    printable = range(0x20, 0x7F)
    bytes_ = text.encode("utf-8", "surrogatepass")
    plain = "".join(chr(b) if b in printable and chr(b) not in '"\\?' else f"\\{b:03o}" for b in bytes_)
    return f'"{plain}"'


def markdown(text: str) -> str:
    """Returns the name in a code span of Markdown. Control characters and vertical bars are escaped, so that the span
    also fits a table cell."""
    plain = "".join(ch if ch.isprintable() else ascii(ch)[1:-1] for ch in text).replace("|", "\\|")
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", plain)), default=0) + 1)
    space = " " if "`" in plain else ""
    return f"{ticks}{space}{plain}{space}{ticks}" if plain else "(no name)"
