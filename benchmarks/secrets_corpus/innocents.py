"""Texts without a secret that look as if: ids, numbers, hashes, code, and talk about passwords."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import random
import string
import textwrap
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from secrets_corpus import makers
from secrets_corpus.makers import HEX, pick
from secrets_corpus.prose import CHINESE, CODE, ENGLISH, LINES


@dataclass(frozen=True)
class Innocent:
    kind: str
    text: str


def innocents(seed: int, count: int) -> Iterator[Innocent]:
    r = random.Random(seed)  # noqa: S311  # repeatable texts, no secrets
    kinds = list(_KINDS)
    for n in range(count):
        kind = kinds[n % len(kinds)]
        value = _KINDS[kind](r)
        frame = r.choice(_FRAMES.get(kind, ("{}",)))
        yield Innocent(kind, frame.replace("{}", value, 1))


def _digits(r: random.Random, n: int) -> str:
    return r.choice("123456789") + pick(r, string.digits, n - 1)


def _moment(r: random.Random) -> dt.datetime:
    return dt.datetime(2019, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(
        seconds=r.randrange(2**28), microseconds=r.randrange(10**6)
    )


def _order(r: random.Random) -> str:
    at = _moment(r)
    return r.choice((
        f"{at:%Y%m%d%H%M%S}" + _digits(r, r.randrange(2, 9)), f"{at:%Y%m%d}" + _digits(r, 8),
        f"{at:%y%m%d}-" + _digits(r, 15), _digits(r, r.choice((8, 9, 10, 11, 12))), _digits(r, r.randrange(20, 33)),
        "1" + _digits(r, 18), "E" + _digits(r, 16), f"ORD-{at:%Y}-" + _digits(r, 10),
        "4200" + f"{at:%Y%m%d}" + _digits(r, 16),
    ))  # fmt: skip


def _wrong_card(r: random.Random) -> str:
    digits = makers.card(r)
    last = str((int(digits[-1]) + r.randrange(1, 10)) % 10)
    body = digits[:-1] + last
    return r.choice((body, " ".join(textwrap.wrap(body, 4)), "-".join(textwrap.wrap(body, 4))))


def _wrong_identity(r: random.Random) -> str:
    number = makers.identity(r)
    if r.random() < 0.4:
        return number[:10] + r.choice(("0230", "1301", "0431", "0010")) + number[14:]
    return number[:17] + r.choice([c for c in "0123456789X" if c != number[17]])


def _longer_id(r: random.Random) -> str:
    inside = makers.card(r) if r.random() < 0.7 else makers.identity(r)
    return r.choice((
        _digits(r, 6) + inside, inside + _digits(r, 7), "SF" + inside, "ab" + inside + "cd",
        _digits(r, 4) + "-" + inside + "-" + _digits(r, 3), "INV_" + inside, inside + "f3a",
        _digits(r, 2) + inside + _digits(r, 2),
    ))  # fmt: skip


def _tracking(r: random.Random) -> str:
    return r.choice((
        "SF" + _digits(r, 13), "JD" + "00" + _digits(r, 11), "YT" + _digits(r, 13),
        "1Z" + pick(r, string.ascii_uppercase + string.digits, 16), "7" + _digits(r, 13), "RR" + _digits(r, 9) + "CN",
        "43" + _digits(r, 11), "9400" + "1" + _digits(r, 17),
    ))  # fmt: skip


def _stamp(r: random.Random) -> str:
    at = _moment(r)
    seconds = int(at.timestamp())
    return r.choice((
        str(seconds), str(seconds * 1000 + r.randrange(1000)), str(seconds * 10**6 + r.randrange(10**6)),
        str(seconds * 10**9 + r.randrange(10**9)), at.isoformat(), f"{at:%Y%m%d%H%M%S}", f"{at:%Y-%m-%d %H:%M:%S}",
        f"{at:%Y%m%dT%H%M%SZ}", f"{seconds}.{r.randrange(10**6):06d}", f"{at:%Y年%m月%d日 %H时%M分}",
        f"{at:%d/%m/%Y %H.%M}",
    ))  # fmt: skip


def _isbn(r: random.Random) -> str:
    body = r.choice(("978", "979")) + pick(r, string.digits, 9)
    digits = body + str(-sum(int(d) * (3 if at % 2 else 1) for at, d in enumerate(body)) % 10)
    return r.choice((digits, f"{digits[:3]}-{digits[3]}-{digits[4:8]}-{digits[8:12]}-{digits[12]}"))


def _ean(r: random.Random) -> str:
    body = r.choice(("69", "40", "45", "49", "50", "54", "30", "37")) + pick(r, string.digits, 10)
    return body + str(-sum(int(d) * (3 if at % 2 else 1) for at, d in enumerate(body)) % 10)


def _phone(r: random.Random) -> str:
    mobile = "1" + r.choice("3456789") + pick(r, string.digits, 9)
    return r.choice((
        mobile, f"{mobile[:3]} {mobile[3:7]} {mobile[7:]}", f"{mobile[:3]}-{mobile[3:7]}-{mobile[7:]}",
        "+86 " + mobile, "+62" + _digits(r, 11), f"0{_digits(r, 2)}-{_digits(r, 8)}",
        f"(415) {_digits(r, 3)}-{_digits(r, 4)}", f"+44 20 {_digits(r, 4)} {_digits(r, 4)}",
        "400-" + _digits(r, 3) + "-" + _digits(r, 4),
        f"{mobile} {'1' + r.choice('35789') + pick(r, string.digits, 9)}",
    ))  # fmt: skip


def _imei(r: random.Random) -> str:
    body = r.choice(("35", "86", "01", "99")) + pick(r, string.digits, 12)
    return body + makers.luhn_digit(body)


def _iccid(r: random.Random) -> str:
    body = "8986" + pick(r, string.digits, 14)
    return body + makers.luhn_digit(body)


def _table(r: random.Random) -> str:
    rows, columns, width = r.randrange(2, 6), r.randrange(3, 8), r.choice((2, 3, 4, 5))
    gap = r.choice((" ", "  ", "\t", ", ", ","))
    return "\n".join(gap.join(_digits(r, width) for _ in range(columns)) for _ in range(rows))


def _image(r: random.Random) -> str:
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + r.randbytes(r.randrange(60, 900))).decode()
    return r.choice(
        (
            f"data:image/png;base64,{png}",
            f"![]({'data:image/png;base64,' + png})",
            "\n".join(textwrap.wrap(png, r.choice((64, 76)))),
            png,
        )
    )


def _certificate(r: random.Random) -> str:
    body = base64.b64encode(b"\x30\x82\x03\x5d\x30\x82\x02\x45\xa0\x03\x02\x01\x02" + r.randbytes(850)).decode()
    lines = textwrap.wrap(body, 64)
    return r.choice((
        "\n".join(("-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----")), "\n".join(lines),
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ" + base64.b64encode(r.randbytes(260)).decode() + " anna@laptop",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + makers.mixed(r, 43),
        "-----BEGIN PUBLIC KEY-----\n" + "\n".join(lines[:5]) + "\n-----END PUBLIC KEY-----",
    ))  # fmt: skip


def _hash(r: random.Random) -> str:
    name = r.choice(("sha1", "sha256", "md5", "sha512"))
    data = hashlib.new(name, r.randbytes(8), usedforsecurity=False)
    whole = data.hexdigest()
    return r.choice((whole, whole, whole[:7], f"{name}:{whole}", f"{name}-{base64.b64encode(data.digest()).decode()}"))


def _version(r: random.Random) -> str:
    a, b, c = (r.randrange(40) for _ in range(3))
    build = _digits(r, 4)
    return r.choice(
        (f"v{a}.{b}.{c}", f"{a}.{b}.{c}-rc.{c}", f"numpy=={a}.{b}.{c}", f"{a}.{b}.{c}.{build}", f"node:{a}")
    )


_KINDS: dict[str, Callable[[random.Random], str]] = {
    "uuid": lambda r: str(uuid.UUID(int=r.getrandbits(128), version=4)),
    "hash": _hash,
    "order": _order,
    "tracking": _tracking,
    "timestamp": _stamp,
    "version": _version,
    "isbn": _isbn,
    "ean": _ean,
    "phone": _phone,
    "imei": _imei,
    "iccid": _iccid,
    "wrong card": _wrong_card,
    "wrong identity": _wrong_identity,
    "longer id": _longer_id,
    "table": _table,
    "image": _image,
    "certificate": _certificate,
    "decimal": lambda r: f"{r.randrange(1000)}.{_digits(r, r.randrange(10, 19))}",
    "mac": lambda r: ":".join(pick(r, HEX, 2) for _ in range(6)),
    "ip": lambda r: ".".join(str(r.randrange(256)) for _ in range(4)),
    "snowflake": lambda r: "1" + _digits(r, r.choice((17, 18))),
    "object id": lambda r: pick(r, HEX, 24),
    "path": lambda r: f"/srv/photos/{pick(r, HEX, 8)}/IMG_{_digits(r, 8)}_{_digits(r, 6)}.jpg",
    "url": lambda r: f"https://shop.example.org:8443/{_digits(r, 12)}?from=m@list#{pick(r, HEX, 8)}",
    "english": lambda r: r.choice(ENGLISH),
    "chinese": lambda r: r.choice(CHINESE),
    "code": lambda r: r.choice(CODE),
    "line": lambda r: r.choice(LINES).replace("#", _digits(r, 4)),
    "english talk": lambda r: " ".join(r.sample(ENGLISH, 3)),
    "chinese talk": lambda r: "".join(r.sample(CHINESE, 3)),
}  # fmt: skip

_FRAMES: dict[str, tuple[str, ...]] = {
    "uuid": ("{}", "request id {}", "会话 {} 已结束", '"sessionId": "{}"', "id={}&x=1", "file {}.log"),
    "hash": ("{}", "commit {}", "sha256: {}", 'etag: "{}"', "校验值 {}", "image@{}", "key={}", "integrity: {}"),
    "order": (
        "{}",
        "订单号{}",
        "订单编号：{}，明天到货",
        "order {}",
        "My order number is {}.",
        "order_id={}",
        "单号 {} 已签收",
        "退款单{}",
    ),
    "tracking": ("{}", "快递单号{}", "tracking number {}", "运单号：{}", "顺丰{}"),
    "timestamp": ("{}", "at {}", "时间 {}", "ts={}", "[{}] INFO started", "created_at: {}"),
    "isbn": ("{}", "ISBN {}", "书号{}"),
    "ean": ("{}", "条码{}", "barcode {}", "EAN {}"),
    "phone": ("{}", "电话{}", "call me at {}", "手机号：{}，微信同号", "客服热线 {}"),
    "imei": ("{}", "IMEI {}", "手机串号{}"),
    "iccid": ("{}", "ICCID {}", "SIM {}"),
    "wrong card": ("{}", "卡号{}", "card {}", "编号 {}"),
    "wrong identity": ("{}", "身份证{}", "id {}"),
    "longer id": ("{}", "流水号{}", "ref {}", "编号：{}"),
    "snowflake": ("{}", "tweet {}", '"id": {}', "用户ID {}"),
    "object id": ("{}", "_id: {}", "文档 {}"),
    "decimal": ("{}", "π≈{}", "lat {}", "ratio={}"),
}
