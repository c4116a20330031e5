"""Chinese characters, one by one, from every way of writing to one."""

from __future__ import annotations

import functools
from typing import Any


def simplified(char: str) -> str:
    """The simplified form of one Han character: 裏, 裡 and 里 are 里, 臺 is 台, 衞 is 卫.

    One character at a time, and so what a character becomes does not depend on its neighbours: a part of a text is
    folded as it is inside the text. A converter of phrases (乾隆, but 干净) would not let a part be found. (OpenCC's
    `hk2s`: its table of traditional characters and the variants of Hong Kong.)
    """
    while (next := str(_converter().convert(char))) != char:
        # 薴 becomes 苧, which in simplified writing is 苎.
        char = next
    return char


@functools.cache
def _converter() -> Any:
    import opencc  # here, so that importing the room costs nothing: 12 ms and 5 MB

    return opencc.OpenCC("hk2s")
