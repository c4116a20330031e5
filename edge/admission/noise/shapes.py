"""Texts that are no sentence by their very shape: listings, encoded files, binary, bare marks."""

from __future__ import annotations

import re

from edge.admission.noise.names import BASE64, BINARY, TOO_SHORT, TOOL

Finding = tuple[str, str]

_LISTED = re.compile(r"\s*\d+→")
_DIFF = re.compile(r"diff --git |Index: |--- \S.*\n\+\+\+ \S|@@ -\d|\*\*\* Begin Patch\n")
_DIFF_LINE = re.compile(
    r"[ +\-\\@].*|diff --git .*|index [0-9a-f]+\.\..*|Index: .*|=+|(?:new|deleted|old) (?:file )?mode \d+"
    r"|(?:similarity|dissimilarity) index \d+%|(?:rename|copy) (?:from|to) .*|Binary files .* differ"
    r"|\*\*\* (?:Begin|End) Patch|\*\*\* (?:Add|Update|Delete) File: .*|\*\*\* (?:Move to: .*|End of File)"
)
_ERROR = r"[A-Za-z_][A-Za-z0-9_.$]*(?:Error|Exception|Interrupt|Warning)(?::.*)?"
_TRACE_HEAD = re.compile(
    rf"Traceback \(most recent call last\):\n|Exception in thread .*\n\s+at |(?:Uncaught )?{_ERROR}\n\s+at "
)
_TRACE_LINE = re.compile(
    rf"\s.*|Traceback \(most recent call last\):|Exception in thread .*|(?:Caused by: |Uncaught )?{_ERROR}"
    r"|During handling of the above exception, another exception occurred:"
    r"|The above exception was the direct cause of the following exception:"
)
_FEWEST_LINES = 3

# Below this a run of letters and digits may be a key, a hash or a link that someone wants to keep.
_ENCODED = 512
_TOKEN = re.compile(
    r"(?:!\[\w*\]\()?[\"'({\[]*(?:data:[\w.+-]+/[\w.+-]+(?:;[\w=.-]+)*,)?([A-Za-z0-9+/_-]{40,}={0,2})[\"')}\],]*"
)
_WORD = re.compile(r"[^\W_]")

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd]+")
_BINARY_SHARE = 0.3
_BINARY_LEAST = 8


def listing(text: str) -> Finding | None:
    """A diff, a stack trace or a numbered listing of a file, with not one line of anything else. Linear."""
    if _LISTED.match(text):
        shape, what = _LISTED, "the numbered lines of a file"
    elif _DIFF.match(text):
        shape, what = _DIFF_LINE, "a diff"
    elif _TRACE_HEAD.match(text):
        shape, what = _TRACE_LINE, "a stack trace"
    else:
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    whole = shape.match if shape is _LISTED else shape.fullmatch
    if len(lines) < _FEWEST_LINES or not all(whole(line) for line in lines):
        return None
    return TOOL, f"it is {what} and nothing else"


def encoded(text: str) -> Finding | None:
    """Base64 or hexadecimal of a file, with no word beside it. A letter that repeats a million times is neither."""
    if len(text) < _ENCODED:
        return None
    *tokens, last = text.split()
    runs: list[str] = []
    # Lines of base64 are equally long except for the last.
    for token in tokens:
        run = _TOKEN.fullmatch(token)
        if run is None:
            if _WORD.search(token):
                return None
        else:
            runs.append(run[1])
    run = _TOKEN.fullmatch(last)
    if run is not None:
        runs.append(run[1])
    elif _WORD.search(last) and not (runs and len(last) < 80 and last.isascii()):
        return None
    if sum(map(len, runs)) < _ENCODED:
        return None
    seen = set().union(*runs)
    digits = sum(c.isdigit() for c in seen)
    if digits >= 8 and (sum(c.isupper() for c in seen) >= 6 or sum(c.islower() for c in seen) >= 6):
        return BASE64, "it is an encoded file and no word beside it"
    return None


def binary(text: str) -> Finding | None:
    """What was no text: mostly control characters, or the marks that decoders leave for bytes that are no character."""
    if _CONTROL.search(text) is None:
        return None
    share = sum(map(len, _CONTROL.findall(text)))
    if share >= _BINARY_LEAST and share > _BINARY_SHARE * len(text):
        return BINARY, "it is mostly control characters, or bytes that are no text"
    return None


def wordless(text: str) -> Finding | None:
    """Not one letter or digit of any script."""
    return None if _WORD.search(text) else (TOO_SHORT, "it has no letter and no digit, only marks or emoji")
