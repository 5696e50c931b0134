"""Hostile bytes, made from valid files by changes of bytes, tokens, lines, parsed JSON and archives' members."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence

import numpy as np

#: Most inputs longer than the first are cut, as long files take time and say little more; a few may be much longer.
LONG, LONGEST = 8_000, 600_000
#: Bytes in which a token is looked for.
WINDOW = 600

NUMBERS = (
    "0", "-0", "-1", "1", "2", "7", "0.5", "1e-9", "3.0", "1e9", "1e15", "1e16", "1e308", "1e309", "-1e999",
    "1e-400", "4294967296", "-2147483649", "9223372036854775807", "9223372036854775808", "1e+", "0x10", "1_000",
    "NaN", "nan", "-nan", "inf", "-Infinity", "Infinity", "٣", "½", "²", "1,5", "+1", ".5", "5.", "--1",
    "1" + "0" * 400, "-" + "9" * 400, "9" * 5000, "0." + "0" * 400 + "1", "1e" + "9" * 400, "true", "null",
)  # fmt: skip
TEXTS = (
    "", " ", "'", '"', "''", '""', "\\", "\\u0000", "\\ud800", "\0", "\ufeff", "\r", "\n", "\r\n", "\x85", "\v",
    "\f", "\x1b[31m", "\u2028", "\u202e", "\xa0", "😀", "e\u0301", "İ", "ſ", "\x7f", "<a&b>", "]]>", "&lol;", "$(id)",
    "`id`", "; id", "| id", "../../x", "%s%n", "{0}", "A" * 9000, ",", ";", "\t", "->", "#", "=", "?", "NA", "NaN",
    "@data", "@attribute", "%", "{", "}", "[", "]", "class", "__class__", "*", "obj", "End", "<",
    "<!DOCTYPE a [<!ENTITY b 'cccc'><!ENTITY d '&b;&b;&b;'>]>", "<![CDATA[", "-->", "null", "True", "-inf",
)  # fmt: skip
JSON_VALUES = (
    "null", "true", "false", '""', "[]", "{}", '"x"', "[null]", "[[]]", '{"":""}', '"\\ud800"', '"\\u0000"', "0",
    "-1", "1.5", "1e999", "-1e999", "NaN", "Infinity", "1" + "0" * 400, "9" * 5000, "9223372036854775808", '"class"',
    '"a"', '["a","b"]', '{"a":["b"]}', '"' + "A" * 5000 + '"', "[1,2,3]", '[["a","b",1]]', "1e-320",
    "[" * 200 + "]" * 200, "[" * 100_000, "[" * 60_000 + "]" * 60_000, '{"a":' * 5000 + "1" + "}" * 5000,
)  # fmt: skip
_TOKEN = re.compile(rb"[A-Za-z_][\w.]*|[-+]?\d[\d.eE+-]*|[^\w\s]|\s+")
_NUMBER = re.compile(rb"[-+]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
_ENCODINGS = ("utf-16", "utf-32", "latin-1", "utf-8-sig", "utf-16-le", "cp1252", "utf-7")

Change = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def generate(draw: random.Random, pool: Sequence[bytes], form: str) -> bytes:
    """Return a hostile input.

    Parameters
    ----------
    draw : random.Random
        Where the choices come from.
    pool : sequence of bytes
        Valid inputs, and earlier ones that met with a new answer.
    form : {'text', 'json', 'npz', 'gzip', 'bytes'}
        What the inputs are made of: decides which changes keep enough of the form to get far.
    """
    data = draw.choice(pool)
    if form == "gzip":
        return _changed_gzip(draw, data, pool)
    if form == "npz" and draw.random() < 0.85:
        return changed_npz(draw, data)
    if form == "json" and draw.random() < 0.7:
        data = changed_json(draw, data)
        if draw.random() < 0.7:
            return data
    changes = BYTE_CHANGES if form in ("bytes", "npz") else TEXT_CHANGES
    for _ in range(min(8, int(draw.expovariate(1)) + 1)):
        data = draw.choice(changes)(draw, data, pool)[: LONG if draw.random() < 0.99 else LONGEST]
    return data


# -- bytes and text ---------------------------------------------------------------------------------------


def _span(draw: random.Random, data: bytes) -> tuple[int, int]:
    """Return the ends of a piece, mostly a short one."""
    start = draw.randrange(len(data) + 1)
    return start, min(len(data), start + int(draw.expovariate(1 / draw.choice((2, 30, 500)))))


def _flip(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    changed = bytearray(data or b"x")
    for _ in range(draw.choice((1, 1, 1, 4, 20))):
        changed[draw.randrange(len(changed))] = draw.choice((0, 255, 127, 128, draw.randrange(256)))
    return bytes(changed)


def _cut(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    start, end = _span(draw, data)
    return data[:start] + data[end:]


def _truncate(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _repeat(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    start, end = _span(draw, data)
    times = draw.choice((2, 2, 3, 100, 1000))
    longest = LONG if draw.random() < 0.98 else LONGEST
    return data[:start] + data[start:end] * min(times, 1 + longest // max(1, end - start)) + data[end:]


def _splice(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    other = draw.choice(pool)
    start, end = _span(draw, other)
    at, to = _span(draw, data)
    return data[:at] + other[start:end] + data[to if draw.random() < 0.5 else at :]


def _integer(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    """Overwrite some bytes by an integer or float of extreme size."""
    packed = struct.pack(
        draw.choice("<>") + draw.choice("hiq"), draw.choice((-1, 0, 1, 32767, -32768, draw.randrange(32768)))
    )
    if draw.random() < 0.3:
        packed = struct.pack("<d", draw.choice((float("nan"), float("inf"), -1.0, 1e308, 5e-324)))
    at = draw.randrange(len(data) + 1)
    return data[:at] + packed + data[at + len(packed) :]


def _insert(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    at, to = _span(draw, data)
    piece = draw.choice((*TEXTS, *NUMBERS)).encode()
    return data[:at] + piece + data[at if draw.random() < 0.7 else to :]


def _raw(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    at = draw.randrange(len(data) + 1)
    return (
        data[:at]
        + draw.choice((b"\xff", b"\x80", b"\xed\xa0\x80", b"\xc3", b"\0", b"\x1a", b"\r"))
        + data[at:]
    )


def _found(draw: random.Random, data: bytes, pattern: re.Pattern[bytes]) -> tuple[int, int] | None:
    """Return the ends of one match somewhere in the data, None if there is none near."""
    start = max(0, draw.randrange(len(data) + 1) - WINDOW // 2)
    matches = list(pattern.finditer(data, start, start + WINDOW))
    return draw.choice(matches).span() if matches else None


def _token(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    """Replace tokens by hostile ones, or by other tokens of some input."""
    others = _TOKEN.findall(draw.choice(pool), 0, WINDOW) or [b""]
    for _ in range(draw.choice((1, 1, 2, 5))):
        span = _found(draw, data, _TOKEN)
        if span is not None:
            piece = draw.choice(others) if draw.random() < 0.4 else draw.choice((*TEXTS, *NUMBERS)).encode()
            data = data[: span[0]] + piece + data[span[1] :]
    return data


def _number(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    """Replace a number."""
    span = _found(draw, data, _NUMBER)
    return data if span is None else data[: span[0]] + draw.choice(NUMBERS).encode() + data[span[1] :]


def _lines(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    """Delete, repeat, exchange or shuffle lines, or put in a line of another file."""
    lines = data.split(b"\n")
    i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
    what = draw.randrange(6)
    if what == 0:
        del lines[i]
    elif what == 1:
        lines[i:i] = [lines[j]] * draw.choice((1, 1, 2, 50))
    elif what == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif what == 3:
        lines[i:i] = [draw.choice(draw.choice(pool).split(b"\n"))]
    elif what == 4:
        draw.shuffle(lines)
    else:
        lines[i] = lines[i] * draw.choice((2, 500))
    return b"\n".join(lines)


def _line_ends(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    ends = draw.choice(((b"\r\n",), (b"\r",), (b"\n", b"\r", b"\r\n", b"\n\n"), (b"",), (b" \n",)))
    return b"".join(line + draw.choice(ends) for line in data.split(b"\n"))


def _encoded(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    return data.decode(errors="replace").encode(draw.choice(_ENCODINGS), errors="replace")


def _trivial(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    return draw.choice(
        (b"", b"\n", b"\0" * 9, b"{}", b"[]", b"\xef\xbb\xbf", b" ", b"\xff\xfe", b"<", b"#", b'"')
    )


BYTE_CHANGES: tuple[Change, ...] = (*[_flip] * 4, *[_integer] * 4, _cut, _truncate, _repeat, *[_splice] * 2)
TEXT_CHANGES: tuple[Change, ...] = (
    *[_flip, _cut, _truncate, _repeat, _splice, _raw, _line_ends, _encoded] * 2,
    *[_insert] * 6,
    *[_token] * 10,
    *[_number] * 10,
    *[_lines] * 6,
    _trivial,
)


# -- JSON -------------------------------------------------------------------------------------------------


def changed_json(draw: random.Random, data: bytes) -> bytes:
    """Return a JSON text with some values, keys or members changed; other text is returned unchanged."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return data
    raw: list[str] = []
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        document = _changed_value(draw, document, raw)
    try:
        text = json.dumps(document, ensure_ascii=draw.random() < 0.5)
    except RecursionError:
        return data
    for i, piece in enumerate(raw):
        text = text.replace(f'"@raw{i}@"', piece)
    members = list(re.finditer(r'"\w+": (?:[\d.]+|"\w*"|null), ', text))
    if members and draw.random() < 0.05:  # a key twice
        text = text.replace(draw.choice(members)[0], 2 * draw.choice(members)[0], 1)
    return text.encode(errors="surrogatepass")


def _changed_value(draw: random.Random, value: object, raw: list[str]) -> object:
    """Walk down to some value and change it."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        what = draw.random()
        if what < 0.75:
            return {**value, key: _changed_value(draw, value[key], raw)}
        if what < 0.83:
            return {k: v for k, v in value.items() if k != key}
        if what < 0.88:
            return {**value, draw.choice((*TEXTS, "zebra", "*")): value[key]}
        if what < 0.92:
            other = draw.choice(list(value))
            return {**value, key: value[other], other: value[key]}
        return {**value, draw.choice(TEXTS): key}
    if isinstance(value, list) and value and draw.random() < 0.9:
        i = draw.randrange(len(value))
        what = draw.random()
        if what < 0.75:
            return [*value[:i], _changed_value(draw, value[i], raw), *value[i + 1 :]]
        if what < 0.85:
            return value[:i] + value[i + 1 :]
        if what < 0.95:
            return [*value[:i], value[draw.randrange(len(value))], *value[i:]]
        return value * draw.choice((0, 2, 100))
    raw.append(draw.choice(JSON_VALUES))
    return f"@raw{len(raw) - 1}@"


# -- archives ---------------------------------------------------------------------------------------------


def _changed_gzip(draw: random.Random, data: bytes, pool: Sequence[bytes]) -> bytes:
    """Change what was packed, or the packed bytes."""
    if draw.random() < 0.5:
        try:
            inside = gzip.decompress(data)
        except (OSError, EOFError, ValueError, zlib.error):
            inside = data
        # Without the time of packing: the same seed gives the same bytes.
        return gzip.compress(generate(draw, [inside], "text"), compresslevel=1, mtime=0)
    for _ in range(draw.choice((1, 1, 3))):
        data = draw.choice(BYTE_CHANGES)(draw, data, pool)
    return data


def npz_members(data: bytes) -> dict[str, bytes]:
    """Return the members of an .npz archive, none of an unreadable one."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return {}


def pack_npz(members: dict[str, bytes], compressed: bool = True) -> bytes:
    """Return an archive of members."""
    out = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", method, compresslevel=1 if compressed else None) as archive:
        for name, content in members.items():
            # A ZipInfo has a fixed date where a name alone would get today's: the same seed gives the same bytes.
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return out.getvalue()


def npy(array: np.ndarray, shape: object = None, descr: object = None) -> bytes:
    """Return an array as a .npy file, whose header may be false."""
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)
    if shape is None and descr is None:
        return out.getvalue()
    header = f"{{'descr': {descr or array.dtype.str!r}, 'fortran_order': False, 'shape': {shape or array.shape}, }}"
    text = (header + " " * (-(len(header) + 11) % 64) + "\n").encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + array.tobytes()


_SHAPES = (
    "(0,)", "(1000000000000,)", "(-1,)", "(4294967296, 4294967296)", "()", "(2, 3)", "('a',)", "(1,) * 99", "9",
)  # fmt: skip
_DESCRS = (
    "'<f8'", "'|O'", "'<U1000000000'", "'|V16'", "[('a', '<f8')]", "'<M8[s]'", "'>i2'", "'?'", "'nope'",
)  # fmt: skip


def changed_npz(draw: random.Random, data: bytes) -> bytes:
    """Change a member's numbers, its header, its JSON, its name, or the set of members."""
    members = npz_members(data)
    if not members:
        return data
    for _ in range(draw.choice((1, 1, 2))):
        name = draw.choice(list(members))
        members[name] = _changed_member(draw, members[name])
        what = draw.random()
        if what < 0.05:
            del members[name]
        elif what < 0.1:
            members[draw.choice(("x.npy", "../y.npy", "arr", "header.npy"))] = members.pop(name)
        if not members:
            break
    return pack_npz(members, draw.random() < 0.5)


def _changed_member(draw: random.Random, member: bytes) -> bytes:
    try:
        array = np.load(io.BytesIO(member), allow_pickle=False)
    except Exception:
        return _flip(draw, member, [])
    what = draw.random()
    if what < 0.15:
        return draw.choice(BYTE_CHANGES)(draw, member, [member])
    if what < 0.3:
        return npy(array, draw.choice(_SHAPES) if draw.random() < 0.6 else None, draw.choice(_DESCRS))
    if what < 0.5 and array.dtype == np.uint8:
        return npy(np.frombuffer(changed_json(draw, array.tobytes()), dtype=np.uint8))
    if what < 0.5 and array.dtype.kind == "U":
        return npy(np.array(changed_json(draw, str(array).encode()).decode(errors="replace")))
    if what < 0.7 and array.size:
        flat = array.copy().reshape(-1)
        extreme = (0, 1, -1, 7) if flat.dtype.kind in "iu" else (0.0, -1.0, np.nan, np.inf, 1e308, 5e-324)
        if flat.dtype.kind in "iu":
            extreme = (*extreme, np.iinfo(flat.dtype).max, np.iinfo(flat.dtype).min)
        if flat.dtype.kind in "iuf":
            with np.errstate(all="ignore"):
                flat[draw.randrange(flat.size)] = np.array(draw.choice(extreme)).astype(flat.dtype)
        return npy(flat.reshape(array.shape))
    if what < 0.8:
        return npy(np.resize(array, draw.choice((0, 1, 3, array.size + 1, 1000))))
    if what < 0.9:
        with np.errstate(all="ignore"):
            kind = draw.choice(("<i2", "<f4", "<i8", "|b1", "<c16", "<U3", "|S3"))
            try:
                return npy(array.astype(kind))
            except (ValueError, TypeError):
                return member
    return npy(np.atleast_1d(array).reshape(1, -1))
