"""Words of courtesy and assent that, alone, tell nothing: 你好, 好的谢谢, ok thanks, 哈哈哈."""

from __future__ import annotations

import re
import unicodedata

# Said alone they are worth nothing later. What answers a question (是的, 不要, 可以, yes, no, sure) is not here, nor is
# what asks for something (继续, go on): a lost answer is worse than a greeting kept.
_HAN = """
你好 您好 你们好 大家好 你好吗 您好吗 哈喽 哈啰 哈罗 嗨 嘿 喂 在吗 在么 在不在 在嘛 你在吗 您在吗 有人吗
早安 早上好 上午好 中午好 下午好 晚上好 晚安 再见 拜 拜拜 回见 回头见
谢谢 谢谢你 谢谢您 谢谢你们 谢谢大家 谢了 多谢 感谢 非常感谢 十分感谢 辛苦 辛苦了 不客气 不谢 不用谢 别客气 客气了
好 好的 好哒 好滴 好嘞 嗯 嗯嗯 哦 噢 喔 啊 额 呃 唉 诶 欸 哇 收到 收到了 明白 明白了 知道了 了解 了解了 懂了
哈 嘻 呵 哈哈 嘻嘻 呵呵 嘿嘿
你們好 你好嗎 您好嗎 在嗎 你在嗎 您在嗎 有人嗎 再見 回見
謝謝 謝謝你 謝謝您 謝謝大家 謝了 多謝 感謝 非常感謝 不客氣 不謝 不用謝 瞭解
"""
_LATIN = """
hi, hello, hey, yo, hiya, hi there, hello there, hey there, good morning, good afternoon, good evening, good night,
how are you, how are you doing, how is it going, how's it going, what's up, whats up, sup,
bye, goodbye, bye bye, see you, see ya, see you later, thanks, thank you, thank you so much, thank you very much,
thanks a lot, thanks so much, many thanks, thx, tysm, cheers, you're welcome, you are welcome, no worries, np,
ok, okay, okey, okie, kk, alright, got it, i see, understood, oh, ah, hm, mm, hmm, uh, um, wow, lol, lmao,
ha, haha, hahaha, hahahaha, hehe, hehehe
"""
# Between and after them, of no weight.
_PARTICLES = frozenset("呀啊哦啦呢哈吧嘛哟噢喔哇")
_PHRASES = frozenset(tuple(word) for word in _HAN.split()) | frozenset(
    tuple(phrase.split()) for phrase in _LATIN.split(",")
)
_LONGEST = max(map(len, _PHRASES))
_MOST = 40
_HAN_CHARACTER = r"\u3400-\u9fff"
# A Han character, a word of other letters, or a digit by itself.
_UNITS = re.compile(rf"[{_HAN_CHARACTER}]|(?:[^\W\d_{_HAN_CHARACTER}]|(?<=[a-z])'(?=[a-z]))+|\w")
_REPEATED = re.compile(r"(.)\1{2,}")


def is_greeting(text: str) -> bool:
    """Whether the text is made of such words and nothing else but marks and emoji; of at most 40 characters."""
    if len(text) > _MOST:
        return False
    # 哈哈哈哈 is said like 哈, and okkkk like ok.
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    units = tuple(_UNITS.findall(_REPEATED.sub(r"\1", folded)))
    # The first i units are such words, one after another, for each i in `ends`.
    ends = {0}
    last = 0
    for start, unit in enumerate(units):
        if start > last:
            return False
        if start not in ends:
            continue
        sizes = [size for size in range(1, _LONGEST + 1) if units[start : start + size] in _PHRASES]
        if start and unit in _PARTICLES:
            sizes.append(1)
        ends.update(start + size for size in sizes)
        last = max(last, start + max(sizes, default=0))
    return bool(units) and len(units) in ends
