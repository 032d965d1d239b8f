"""Splits the text of a pattern into tokens."""

from __future__ import annotations

import re

from onnxsmith.base.problem import OnnxsmithError, problem

_TOKEN = re.compile(
    r"""\s*(?:(?P<token>
        "(?:\\.|[^"\\])*"
      | => | \.\.\. | ::
      | -?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)? | -inf\b
      | [^\W\d]\w*(?:(?:\.|::)[^\W\d]\w*)*
      | [{}()\[\]<>=,?:@-]
    )|(?P<bad>\S))""",
    re.VERBOSE | re.DOTALL,
)
_OPEN, _CLOSE = {"(": ")", "[": "]", "{": "}", "<": ">"}, set(")]}>")


class Tokens:
    """The tokens of a text, and the current position."""

    def __init__(self, text: str, where: str) -> None:
        self._where, self._text = where, text
        self._found: list[tuple[str, int, int]] = []
        self._at = 0
        for found in _TOKEN.finditer(text):
            if found["bad"]:
                raise self.wrong(f"the character {found['bad']!r} has no meaning", found.start("bad"))
            self._found.append((found["token"], found.start("token"), found.end("token")))

    def peek(self, ahead: int = 0) -> str:
        """Returns the token at the position, or `ahead` tokens further; "" at the end."""
        return self._found[self._at + ahead][0] if self._at + ahead < len(self._found) else ""

    def next(self) -> str:
        """Takes a token."""
        token = self.peek()
        if not token:
            raise self.wrong("the text ends too early")
        self._at += 1
        return token

    def take(self, token: str) -> bool:
        """Takes the next token if it is the given one; returns whether it was."""
        if self.peek() != token:
            return False
        self._at += 1
        return True

    def expect(self, token: str) -> None:
        """Takes the next token; raises if it is not the given one."""
        if not self.take(token):
            raise self.wrong(f"{token!r} is expected" + (f", not {self.peek()!r}" if self.peek() else " at the end"))

    def name(self, what: str) -> str:
        """Takes a name."""
        token = self.peek()
        if not (token[:1].isalpha() or token[:1] == "_"):
            raise self.wrong(f"{what} is expected" + (f", not {token!r}" if token else " at the end"))
        return self.next()

    def until(self, stops: str) -> str:
        """Takes the text up to one of the characters outside of brackets, and returns it unchanged."""
        begin, depth, end = self._at, 0, self._at
        while depth or self.peek() not in stops or not self.peek():
            token = self.next()
            depth += (token in _OPEN) - (token in _CLOSE)
            if depth < 0:
                raise self.wrong(f"{token!r} closes nothing")
            end = self._at
        return self._text[self._found[begin][1] : self._found[end - 1][2]] if end > begin else ""

    def prefixed(self, prefix: str) -> OnnxsmithError:
        """Makes the error for a text with a prefix of Python in front of its operators: `op.Relu(x)`."""
        without = re.sub(rf"\b{re.escape(prefix)}\.(?=[A-Z])", "", " ".join(self._text.split()))
        return self.wrong(f"in a text operators are written without {prefix}.", fix=f"write {without}")

    def wrong(self, what: str, offset: int | None = None, *, fix: str = "") -> OnnxsmithError:
        """Makes the error for the text at the position."""
        if offset is None:
            offset = self._found[self._at][1] if self._at < len(self._found) else len(self._text)
        line = self._text.count("\n", 0, offset) + 1
        column = offset - (self._text.rfind("\n", 0, offset) + 1) + 1
        return problem(
            "pattern/text",
            f"the text of the pattern cannot be read: {what}",
            where=f"{self._where}, line {line}, column {column}",
            fix=fix
            or self._left_out()
            or self._closed()
            or self._in_brackets()
            or "write { a = Relu(x)  y = Mul(a, 0.5) }; docs/patterns.md has the notation",
        )

    def _in_brackets(self) -> str:
        """Returns the fix for attributes that stand among the operands, as Python has them: the operator with its
        attributes in angle brackets; "" for others."""
        called = re.search(r"\b([A-Za-z_.]+)\(([^()=]*?),?\s*(\w+\s*=\s*[^()]+)\)", self._text)
        if called is None or self._at >= len(self._found) or not called.start() <= self._found[self._at][1]:
            return ""
        return f"write attributes in angle brackets: {called[1]}<{called[3].strip()}>({called[2].strip()})"

    def _left_out(self) -> str:
        """Returns the fix for an operand that is left out as `''` or `None`: the text with an empty place; "" for
        others."""
        empty = re.sub(r"(?<=[(,])\s*(?:''|\"\"|None)(?=\s*[,)])", " ", self._text)
        return f"leave the place of the operand empty: {' '.join(empty.split())}" if empty != self._text else ""

    def _closed(self) -> str:
        """Returns the fix for a text whose brackets are not closed: the text with the missing ones; "" for others. A
        text that could not be read to its end says nothing about its brackets."""
        if not self._found or self._text[self._found[-1][2] :].strip():
            return ""
        missing: list[str] = []
        for token, *_ in self._found:
            if token in _OPEN:
                missing.append(_OPEN[token])
            elif token in _CLOSE and (not missing or missing.pop() != token):
                return ""
        return f"close the bracket: {' '.join(self._text.split())}{''.join(reversed(missing))}" if missing else ""
