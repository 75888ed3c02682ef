"""Random svmlight texts: ordinary ones, unusual but valid ones, and invalid ones."""

import struct
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np

from references.svmlight import Options

BLANKS = [b"\t", b"  ", b" \t ", b"\v", b"\f", b"\r", b" \r "]
WORDS = [b"spam", b"ham", b"a-very-long-label", b"caf\xc3\xa9", b"\xff", b"1_", b"0x1p3", b"e5"]
NAMES = [b"goal", b"caf\xc3\xa9", b"\xff", b"1.0", b"--3", b"qidx", b"a|b=c", b"x" * 40]
OVERLONG = b"1" * 4301
LIMITS = [2**63 - 1, 2**31 - 1, 10**9]
BROKEN = [
    b"3", b":", b"3:", b":3", b"a:1", b"1:a", b"1:2:3", b"-3:1", b"+-3:1", b"1.0:1", b"_1:1",
    b"1__0:1", b"1:1_", b"1:._1", b"1:1e", b"1:1e+", b"1:e5", b"1:.", b"1:--1", b"1:1e5.0",
    b"1:0x10", b"1:1,5", b"1:nan", b"1:-Inf", b"1:infinity", b"1:infinit", b"1:1e400",
    b"1:-1e99999999999999999999", b"1:1e39", b"1:1\0", b"\0", b"1\0:1", b"99999999999999999999:1",
    b"9223372036854775808:1", b"-99999999999999999999:1", b"qid:7", b"qid", b"1,2", b"1:\xb2",
    OVERLONG, OVERLONG + b":1", b"1:" + OVERLONG, b"7:" + b"0" * 4301,
]  # fmt: skip
BROKEN_LABELS = [
    b"nan", b"+inf", b"-INFINITY", b"1e999", b"1,", b",1", b"1,,2", b"1:1", b"\0", b"1\0", OVERLONG
]  # fmt: skip
QUERIES = [b"qid:1", b"qid:-12", b"qid:+1_0", b"qid:9223372036854775807"]
BROKEN_QUERIES = [b"qid:", b"qid:1.5", b"qid:9223372036854775808", b"qid", b"qidx:3", b"qi:3"]


def random_options(random):
    base, least = random.choice([(0, 0), (1, 1), (1, 0)])
    dtype, max_index = random.choice([np.float64, np.float32]), random.choice(LIMITS)
    multilabel = random.random() < 0.2
    hash_bits = random.choice([0, 0, 0, 3, 31])
    return Options(dtype, base, least, max_index, multilabel, hash_bits)


def plain_options(random):
    """Return options that scikit-learn supports."""
    options = random_options(random)
    return replace(options, base=options.least, hash_bits=0, max_index=LIMITS[0])


def random_double(random):
    """Return any finite double; small and large ones are as likely as those near 1."""
    value = np.nan
    while not np.isfinite(value):
        value = struct.unpack("d", random.getrandbits(64).to_bytes(8, "little"))[0]
    return value


def random_digits(random, most):
    return "".join(random.choice("0123456789") for _ in range(random.randint(1, most)))


def halfway_case(random):
    """Return the number exactly between two doubles, or one that is slightly smaller or larger."""
    low = abs(random_double(random))
    with localcontext(prec=800):
        middle = (Decimal(low) + Decimal(float(np.nextafter(low, 0.0)))) / 2
        step = Decimal(random.choice([-1, 0, 0, 1])).scaleb(middle.adjusted() - 780)
        return str(middle + step)


def random_number(random):
    """Return a decimal number as text, in any syntax of float()."""
    return random.choice(NUMBERS)(random)


NUMBERS = [
    *[lambda random: f"{random.uniform(-1, 1):.{random.randint(0, 17)}f}"] * 4,
    lambda random: f"{random.uniform(0, 1) ** 9:g}",
    lambda random: repr(random.uniform(-1000, 1000)),
    lambda random: repr(random_double(random)),
    lambda random: str(random.randint(-(10 ** random.randint(1, 22)), 10**9)),
    halfway_case,
    lambda random: f"{random_digits(random, 25)}.{random_digits(random, 25)}",
    lambda random: f"{random_digits(random, 20)}e{random.randint(-345, 285)}",
    lambda random: random.choice(ODD_NUMBERS),
]

ODD_NUMBERS = [
    *("0", "-0", "+1", "1.", ".5", "-.5", "+.5e-3", "5.e3", "1E5", "1e+05", "1e-05", "007", "-0.0"),
    *("1_0", "1_000.0_1e1_0", "4.9e-324", "2.5e-324", "2.4703282292062327e-324", "1e-400"),
    *("2.4703282292062328e-324", "1e-99999999999999999999", "0e99999999999999999999", "00.10"),
    *("2.2250738585072011e-308", "1.7976931348623157e308", "9007199254740993", "9007199254740992"),
    *("0.1e1", "123456789012345678901234567890", "1" + "0" * 400 + "e-400", "9999999.99999999"),
    *("0." + "0" * 400 + "1e401", "1.8446744073709551621"),  # 2**64 + 5
]


def random_entries(random, options, wild):
    """Return entries; with `wild`, unsorted and with duplicates."""
    count = random.choice([0, 1, 2, 3, 10, 40])
    largest = random.choice([5, 100, 10**7, 2**31 - 2])
    if wild and random.random() < 0.2:
        largest = random.choice([2**31 + 5, 10**12, 2**63 - 1])
    indices = [random.randint(1 if random.random() < 0.9 else 0, largest) for _ in range(count)]
    if not wild or random.random() < 0.7:
        indices = sorted(set(indices))
    usual = random.random() < (0.5 if options.dtype == np.float64 else 0.9)
    for index in indices:
        value = f"{random.uniform(0, 1):.6f}" if usual else random_number(random)
        odd = wild and random.random() < 0.1
        style = random.choice(["+{}", "{:07}", "{:_}", "{:020}", "+0_{}"]) if odd else "{}"
        name = style.format(index).encode()
        if wild and options.hash_bits and random.random() < 0.2:
            name = random.choice(NAMES)
        yield name + f":{value}".encode()


def random_label(random, wild):
    if random.random() < 0.6:
        return random.choice([b"1", b"-1", b"+1", b"2", b"1.0", b"-0", b"0"])
    if wild and random.random() < 0.5:
        return random.choice(WORDS)
    return random_number(random).encode()


def random_line(random, options, wild):
    if random.random() < 0.1:
        return random.choice([b"", b" ", b"\t \r", b"#", b"  # 1 1:1"])
    count = random.choice([0, 1, 2, 5]) if options.multilabel else 1
    tokens = [b",".join(random_label(random, wild) for _ in range(count))][:count]
    if random.random() < 0.2:
        tokens.append(random.choice(QUERIES))
    tokens += random_entries(random, options, wild)
    blanks = BLANKS if random.random() < 0.2 else [b" "]
    line = b"".join(token + random.choice(blanks) for token in tokens)
    if random.random() < 0.3:
        line = line.rstrip()
    if random.random() < 0.1:
        line += b"#" + random.choice([b"", b" 1:2 # 3", b"\xff\t"])
    return random.choice([b"", b"", b"", b" "]) + line


def broken(random, line):
    """Insert a token that is usually rejected into a line."""
    tokens = line.split(b" ")
    kind = random.randint(0, 4)
    if kind == 0:
        tokens[0] = random.choice(BROKEN_LABELS)
    elif kind == 1:
        tokens.insert(1, random.choice(BROKEN_QUERIES))
    elif kind == 2:
        tokens.append(random.choice([b"#\0", b"# 1:1 \0 2", b"1:1#\0"]))
    else:
        tokens.insert(random.randint(0, len(tokens)), random.choice(BROKEN))
    return b" ".join(tokens)


def random_text(random, options):
    """Return the bytes of a small file: ordinary, unusual or invalid."""
    wildness = random.randint(0, 2)
    lines = [random_line(random, options, wildness > 0) for _ in range(random.randint(0, 8))]
    if wildness == 2 and lines:
        at = random.randrange(len(lines))
        lines[at] = broken(random, lines[at])
    end = b"\r\n" if random.random() < 0.2 else b"\n"
    return end.join(lines) + (end if random.random() < 0.7 else b"")
