"""Phone numbers and addresses: off unless the owner asks, since a memory of a friend's number is worth keeping."""

from __future__ import annotations

import re
from collections.abc import Iterator

from edge.admission.redact.edges import opens, word
from edge.admission.redact.fold import View
from edge.admission.redact.kinds import Span

_PHONE = re.compile(
    r"(?:\+[0-9]{1,3}[ \-.]?(?:\([0-9]{1,4}\)[ \-.]?)?[0-9]{2,5}(?:[ \-.]?[0-9]{2,5}){1,4}"
    r"|(?:(?:0086|86)[ \-]?)?1[3-9][0-9](?:[ \-]?[0-9]{4}){2}"
    r"|\(?0[1-9][0-9]{1,2}\)?[ \-][0-9]{3,4}[ \-]?[0-9]{4}"
    r"|\(?[2-9][0-9]{2}\)?[ \-.][0-9]{3}[\-.][0-9]{4})"
)
_ZH_ADDRESS = re.compile(
    r"(?:[\u4e00-\u9fff]{2,8}(?:省|自治区))?(?:[\u4e00-\u9fff]{2,7}市)?(?:[\u4e00-\u9fff]{1,6}[区县])?[\u4e00-\u9fff]{1,8}"
    r"(?:路|街|道|巷|弄|胡同|大街|大道)[0-9一二三四五六七八九十百]{1,5}号(?:[\u4e00-\u9fff]{0,10}[0-9A-Za-z]{1,4}(?:栋|幢|座|号楼|单元|室|层))*"
    r"(?:[0-9]{2,5}室?)?"
)
# 或到北京市…: nothing but a list of places tells where a name begins, so what leads up to one is cut off.
_LEAD = re.compile(r"[\u4e00-\u9fff]{0,4}?[到在去住是于从往至](?=[\u4e00-\u9fff]{2})")
_EN_ADDRESS = re.compile(
    r"(?<![0-9A-Za-z])[0-9]{1,5}[A-Za-z]?\s(?:[NSEW]\.?\s)?(?:[A-Z][A-Za-z']+\s){1,3}"
    r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Place|Pl|Square|Way|Terrace)\b\.?"
    r"(?:,?\s(?:Apt|Unit|Suite|Flat|#)\.?\s?[0-9A-Za-z]{1,5})?"
)


def phones(view: View) -> Iterator[Span]:
    for match in _PHONE.finditer(view.text):
        after = view.text[match.end() : match.end() + 1]
        before = view.text[match.start() - 1 : match.start()] if match.start() else ""
        if opens(view.text, match.start()) and not word(after or " ") and before not in ("_", ".", "-", "/"):
            yield Span(*match.span(), "phone")


def addresses(view: View) -> Iterator[Span]:
    for form in (_ZH_ADDRESS, _EN_ADDRESS):
        for match in form.finditer(view.text):
            lead = _LEAD.match(match[0])
            yield Span(match.start() + (lead.end() if lead else 0), match.end(), "address")
