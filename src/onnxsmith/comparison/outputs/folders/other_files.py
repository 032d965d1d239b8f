"""Compares the tokenizer and the configuration of a folder with those of the original."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onnxsmith.base import user_files
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.folders import FolderFile, FolderFiles
from onnxsmith.base.words import pasted, several
from onnxsmith.comparison.outputs.folders.layouts import CONFIG, GENAI, settings

_TOKENIZER = "tokenizer.json"
_JSON = (_TOKENIZER, "vocab.json", "added_tokens.json", "special_tokens_map.json")
_OTHERS = (
    "vocab.txt", "merges.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "source.spm", "target.spm",
    "chat_template.jinja",
)  # fmt: skip
_MADE_FOR_A_CALL = {"truncation", "padding", "version"}
"""Parts of tokenizer.json that programs set for a call, which change no token of a text."""
_ENDS = ("eos_token_id", "bos_token_id", "pad_token_id", "decoder_start_token_id", "vocab_size")
"""Settings that decide where a generated text begins and ends."""
_TEXT = "The quick brown fox jumps over 13 lazy dogs.\n  Äpfel, naïve café — 你好 🙂 def f(x): return x**2"
"""Is a text with capitals, digits, spaces, accents, other scripts and code, on which tokenizers tend to differ."""


def compared(original: Path, folder: Path, settings_of: Mapping[str, Any]) -> FolderFiles | None:
    """Returns the comparison of the files that both have; None if there is nothing to compare. `settings_of` is the
    configuration of the original.

    Raises:
        OnnxsmithError: `compare/folder-config` if a file is damaged.
    """
    found = (*_tokenizers(original, folder), *_settings(folder, settings_of))
    return FolderFiles(found) if found else None


def problems(part: FolderFiles | None, original: Path, folder: Path) -> tuple[Problem, ...]:
    """Returns the problem of the first file that differs."""
    wrong = next((one for one in part.files if one.verdict == "DIFFERENT"), None) if part is not None else None
    if wrong is None:
        return ()
    name = wrong.name.partition(",")[0]
    return (
        Problem(
            "compare/folder-files",
            f"{wrong.name} differs from the original's",
            where=str(folder / name),
            why=wrong.reason,
            fix=f"take the original's file: `cp {pasted(original / name)} {pasted(folder / name)}`"
            if (original / name).is_file() and name != CONFIG
            else f"set the value of the original in {folder / name}",
        ),
    )


def _tokenizers(original: Path, folder: Path) -> Iterator[FolderFile]:
    both = [name for name in (*_JSON, *_OTHERS) if (original / name).is_file() and (folder / name).is_file()]
    for name in both:
        reason = (
            _json_difference(original / name, folder / name)
            if name in _JSON
            else _bytes(original / name, folder / name)
        )
        yield FolderFile(name, "DIFFERENT" if reason else "equal", reason)
    if not {_TOKENIZER, "vocab.txt", "vocab.json"} & {*both}:
        theirs = [_vocabulary(one) for one in (original, folder)]
        if theirs[0] and theirs[1]:
            reason = _vocabularies(theirs[0], theirs[1])
            yield FolderFile("vocabulary", "DIFFERENT" if reason else "equal", reason)
        elif theirs[0]:
            yield FolderFile("tokenizer", "not compared", "the folder has no tokenizer")


def _bytes(one: Path, other: Path) -> str:
    left, right = (user_files.read_bytes(file) for file in (one, other))
    if left.replace(b"\r\n", b"\n").rstrip() == right.replace(b"\r\n", b"\n").rstrip():
        return ""
    if one.name == "vocab.txt":
        return _vocabularies(_lines(left), _lines(right)) or "the order of lines differs"
    return f"the contents differ ({len(left):,} and {len(right):,} bytes)"


def _json_difference(one: Path, other: Path) -> str:
    left, right = settings(one), settings(other)
    if one.name == "vocab.json":
        return _vocabularies(left, right)
    if one.name != _TOKENIZER:
        names = sorted(name for name in left.keys() | right.keys() if _plain(left.get(name)) != _plain(right.get(name)))
        return f"{names[0]} is {_plain(right.get(names[0]))!r} and not {_plain(left.get(names[0]))!r}" if names else ""
    reason = _vocabularies(_of_json(left), _of_json(right)) or _sections(left, right)
    tokens = _tokens(one, other)
    return "; ".join(filter(None, (reason, tokens)))


def _plain(token: Any) -> Any:
    """Returns a special token as its text: transformers writes it in two forms."""
    return token.get("content", token) if isinstance(token, dict) else token


def _sections(left: Mapping[str, Any], right: Mapping[str, Any]) -> str:
    for name in sorted((left.keys() | right.keys()) - _MADE_FOR_A_CALL):
        mine, theirs = left.get(name), right.get(name)
        if name == "model":
            mine, theirs = (_model(one) for one in (mine, theirs))
        if mine != theirs:
            return f"its part {name!r} differs"
    return ""


def _model(held: Any) -> Any:
    """Returns the model of a tokenizer without its vocabulary, with merges in one form: `a b` or [a, b]."""
    if not isinstance(held, dict):
        return held
    merges = [one if isinstance(one, str) else " ".join(map(str, one)) for one in held.get("merges") or ()]
    return {**held, "vocab": None, "merges": merges}


def _of_json(held: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the vocabulary of a tokenizer.json, with the added tokens."""
    model = held.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocab, list):  # unigram models list tokens with their scores
        vocab = {one[0] if isinstance(one, list) else str(one): at for at, one in enumerate(vocab)}
    added = {one["content"]: one["id"] for one in held.get("added_tokens") or () if {"content", "id"} <= {*one}}
    return {**(vocab if isinstance(vocab, dict) else {}), **added}


def _vocabulary(folder: Path) -> dict[str, Any]:
    if (folder / _TOKENIZER).is_file():
        return _of_json(settings(folder / _TOKENIZER))
    if (folder / "vocab.json").is_file():
        return settings(folder / "vocab.json")
    file = folder / "vocab.txt"
    return _lines(user_files.read_bytes(file)) if file.is_file() else {}


def _lines(content: bytes) -> dict[str, Any]:
    return {line: at for at, line in enumerate(content.decode("utf-8", "replace").splitlines())}


def _vocabularies(left: Mapping[str, Any], right: Mapping[str, Any]) -> str:
    apart = [name for name in left if left[name] != right.get(name)] + [name for name in right if name not in left]
    if not apart:
        return ""
    name = apart[0]
    said = f"the token {name!r} is {right.get(name, 'missing')} here, and {left.get(name, 'missing')} in the original"
    return f"{several(len(apart), 'entry', 'entries')} of the vocabulary differ{'s' if len(apart) == 1 else ''}: {said}"


def _tokens(one: Path, other: Path) -> str:
    """Returns how the tokens of a fixed text differ; "" if they do not, or the package tokenizers is missing."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return ""
    try:
        left, right = (Tokenizer.from_str(user_files.read_utf8(file)).encode(_TEXT).ids for file in (one, other))
    except Exception:  # noqa: BLE001 — the package raises a plain Exception for a file that it cannot read
        return ""
    at = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), None)
    if at is None:
        return "" if len(left) == len(right) else f"a text has {len(left)} tokens there, and {len(right)} here"
    return f"token {at + 1} of a fixed text is {right[at]} here, and {left[at]} in the original"


def _settings(folder: Path, original: Mapping[str, Any]) -> Iterator[FolderFile]:
    model = settings(folder / GENAI).get("model", {})
    for name, held in ((CONFIG, settings(folder / CONFIG)), (GENAI, model)):
        # Genai's configuration needs a value for each token, so only the end of a text has one meaning there.
        keys = _ENDS if name == CONFIG else ("eos_token_id", "vocab_size")
        both = [key for key in keys if held.get(key) is not None and original.get(key) is not None]
        apart = [key for key in both if _listed(held[key]) != _listed(original[key])]
        reason = f"{apart[0]} is {held[apart[0]]} here, and {original[apart[0]]} in the original" if apart else ""
        if both:
            yield FolderFile(name, "DIFFERENT" if apart else "equal", reason)


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]
