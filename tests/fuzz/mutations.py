"""Mutations of whole files: flipped bits, cuts, splices, repetitions, and hostile pieces put in."""

import re
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

SHORT = b"\0 \xff \xef\xbb\xbf \r \n\n \t ' \" \\ \xed\xa0\x80 \xe2\x80\xae -1 1e999 NaN null true [] {} *a 0x_ 2020-13"
PIECES = [
    *SHORT.split(b" "),
    *(b"[" * 20_000, b'{"a":' * 5_000, b"- " * 500, b"9" * 5_000, b"18446744073709551616", b"&a [*a]", b"!!int x"),
    *(b"../../etc/passwd", b"</script>"),
]
"""What is put into a file: bytes with a meaning in some format, deep nesting, long numbers, paths, markup."""

POSITION = st.integers(0, 1 << 16)
OPERATION = st.tuples(
    st.sampled_from(["flip", "cut", "splice", "repeat", "insert", "number", "swap"]), POSITION, POSITION, POSITION
)
OPERATIONS = st.lists(OPERATION, min_size=1, max_size=4)
Operation = tuple[str, int, int, int]
LARGEST = 1 << 18
NUMBER = re.compile(rb"\d+")


def mutate(data: bytes, operations: Sequence[Operation], seeds: Sequence[bytes]) -> bytes:
    """The data after all operations; other parts of `seeds` are spliced in."""
    for name, first, second, third in operations:
        data = OPERATORS[name](data, first, second, third, seeds)[:LARGEST]
    return data


def _range(data: bytes, first: int, second: int) -> tuple[int, int]:
    start = first % (len(data) + 1)
    return start, min(len(data), start + 1 + second % 64)


def _flip(data: bytes, first: int, second: int, third: int, seeds: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = first % len(data)
    return data[:at] + bytes([data[at] ^ 1 << second % 8]) + data[at + 1 :]


def _cut(data: bytes, first: int, second: int, third: int, seeds: Sequence[bytes]) -> bytes:
    start, stop = _range(data, first, second)
    return data[:start] if third % 4 == 0 else data[:start] + data[stop:]


def _splice(data: bytes, first: int, second: int, third: int, seeds: Sequence[bytes]) -> bytes:
    other = seeds[third % len(seeds)]
    start, stop = _range(other, second, third)
    at = first % (len(data) + 1)
    return data[:at] + other[start:stop] + data[at:]


def _repeat(data: bytes, first: int, second: int, third: int, seeds: Sequence[bytes]) -> bytes:
    start, stop = _range(data, first, second)
    return data[:stop] + data[start:stop] * (1 + third % 50) + data[stop:]


def _insert(data: bytes, first: int, second: int, third: int, seeds: Sequence[bytes]) -> bytes:
    at = first % (len(data) + 1)
    return data[:at] + PIECES[second % len(PIECES)] + data[at + third % 3 :]


def _number(data: bytes, first: int, second: int, third: int, seeds: Sequence[bytes]) -> bytes:
    """Another number in the place of one of the data's."""
    found = list(NUMBER.finditer(data))
    if not found:
        return data
    at = found[first % len(found)]
    new = (b"0", b"-1", b"1", b"65536", b"4294967296", b"1" + b"0" * 30, b"1e308", b"9" * 5_000)[second % 8]
    return data[: at.start()] + new + data[at.end() :]


def _swap(data: bytes, first: int, second: int, third: int, seeds: Sequence[bytes]) -> bytes:
    """Two neighbouring lines exchanged."""
    lines = data.split(b"\n")
    at = first % len(lines)
    lines[at : at + 2] = lines[at : at + 2][::-1]
    return b"\n".join(lines)


OPERATORS: dict[str, Callable[[bytes, int, int, int, Sequence[bytes]], bytes]] = {
    "flip": _flip,
    "cut": _cut,
    "splice": _splice,
    "repeat": _repeat,
    "insert": _insert,
    "number": _number,
    "swap": _swap,
}
