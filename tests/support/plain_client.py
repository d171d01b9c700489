"""An independent client, written from docs/client-spec.md alone.

It is slow and obvious, and uses neither NumPy nor the package. ``python plain_client.py [FAULT]``
runs the line protocol, optionally with a planted fault. It does not validate surveys: other tests
check what a client must refuse.
"""

import base64
import hashlib
import itertools
import json
import math
import struct
import sys
import unicodedata
from datetime import datetime
from fractions import Fraction

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

FAULTS = {
    "one bit": "the lowest bit of a count is flipped",
    "threshold": "a comparison is off by one",
    "endian": "the digest contains the symbol in big-endian order",
    "words": "the two words are swapped",
    "low bits": "a short word is taken from the low bits",
    "order": "keys are sorted by UTF-16",
    "rounding": "a half is rounded towards zero",
    "globe": "latitude 90 and longitude 180 are outside in every format",
    "week": "weeks are named by the calendar year",
    "no NFC": "text is not normalised",
    "rank": "the symbol is used instead of its rank in its block",
    "accounts": "only entries of the first format under one account are counted",
    "refilled": "entries of the first format are not counted",
    "in the clear": "open pairs need no permission",
    "smallest": "a survey costs its smallest entry",
    "no period": "a batch of format 2 does not say its period",
}


class Refused(Exception):
    pass


class PlainClient:
    def __init__(self, fault=None):
        assert fault is None or fault in FAULTS
        self.fault = fault
        self.surveys = {}

    def answer(self, request):
        try:
            return {"ok": getattr(self, "op_" + request["op"])(request)}
        except Refused as refusal:
            return {"error": str(refusal)}

    # --- surveys ----------------------------------------------------------------------------------

    def op_load(self, request):
        promise = json.loads(request["text"])["promise"]
        name = hashlib.sha256(self.canonical(promise).encode()).hexdigest()
        if name != request["fingerprint"]:
            raise Refused("WrongSurvey")
        if promise["format"] == 2:
            promise = {**promise, **promise["questions"][0], "name": promise["name"]}
        context = promise["mechanism_context"] or promise["context"]
        mechanism = Mechanism(promise["mechanism"], context, self.fault)
        self.surveys[name] = promise, mechanism
        return {
            "fingerprint": name,
            "inputs": size(promise["context"]["domain"]),
            "outputs": mechanism.outputs,
            "words": mechanism.words,
            "word_bits": mechanism.bits,
        }

    def op_canonical(self, request):
        try:
            text = self.canonical(
                json.loads(request["text"], parse_float=float, parse_constant=float)
            )
            raw = text.encode()
        except ValueError:
            raise Refused("InvalidSurvey") from None
        return {"text": text, "sha256": hashlib.sha256(raw).hexdigest()}

    def canonical(self, data):
        if isinstance(data, str):
            composed = data if self.fault == "no NFC" else unicodedata.normalize("NFC", data)
            return json.dumps(composed, ensure_ascii=False)
        if isinstance(data, list):
            return "[" + ",".join(map(self.canonical, data)) + "]"
        if isinstance(data, dict):
            pairs = {self.canonical(key): self.canonical(value) for key, value in data.items()}
            if len(pairs) < len(data):
                raise ValueError
            keys = sorted(pairs, key=self.key_order)
            return "{" + ",".join(f"{key}:{pairs[key]}" for key in keys) + "}"
        if isinstance(data, float) or (isinstance(data, int) and abs(data) >= 2**53):
            raise ValueError
        return json.dumps(data)

    def key_order(self, key):
        return json.loads(key).encode("utf-16-be") if self.fault == "order" else json.loads(key)

    # --- the ledger -------------------------------------------------------------------------------

    def op_charge(self, request):
        promise = self.survey(request)[0]
        needs_permission = is_open(promise["context"]) and self.fault != "in the clear"
        if needs_permission and not request["allow_clear"]:
            raise Refused("BudgetExceeded")
        ledger = {(entry["survey"], entry["secret"]): entry for entry in request["entries"]}
        if self.fault == "refilled":
            ledger = {key: entry for key, entry in ledger.items() if "account" not in entry}
        if self.fault == "accounts":
            ledger = {
                key: entry
                for key, entry in ledger.items()
                if entry.get("account", "subject health")[0] == "s"
            }
        key = request["survey"], request["secret"]
        is_new = key not in ledger
        times = 1 if promise["repeat"] == "once" else promise["repeat"]["distinct"]
        ledger.setdefault(key, {"times": times, "context": promise["context"]})
        total = sum((self.cost(entry) for entry in ledger.values()), start=Fraction(0))
        if is_new and request["budget"] is not None and total > Fraction(request["budget"]):
            raise Refused("BudgetExceeded")
        return {"spent": str(total), "entries": len(ledger)}

    def cost(self, entry):
        if "cost" in entry:
            return Fraction(entry["cost"])
        finite = [epsilon for epsilon in every_entry(entry["context"]) if epsilon is not None]
        choose = min if self.fault == "smallest" else max
        return entry["times"] * Fraction(choose(finite, default=0))

    # --- values -----------------------------------------------------------------------------------

    def op_symbol(self, request):
        promise = self.survey(request)[0]
        domain = promise["context"]["domain"]
        value = request["value"]
        if domain["kind"] == "grid":
            symbol = self.find_grid(domain, value, promise["format"])
        else:
            symbol = getattr(self, "find_" + domain["kind"])(domain, value)
        if symbol is None:
            raise Refused("UnknownValue")
        return {"symbol": symbol}

    def find_labels(self, domain, value):
        if isinstance(value, str) and self.fault != "no NFC":
            value = unicodedata.normalize("NFC", value)
        for x, label in enumerate(domain["labels"]):
            if type(label) is type(value) and label == value:
                return x
        return None if domain["other"] is None else domain["labels"].index(domain["other"])

    def find_h3(self, domain, value):
        labels = list(domain["cells"])
        if domain["other"]:
            labels.append(domain["other"])
        return self.find_labels({"labels": labels, "other": domain["other"]}, value)

    def find_range(self, domain, value):
        inside = type(value) is int and 0 <= value - domain["start"] < domain["size"]
        return value - domain["start"] if inside else None

    def find_grid(self, domain, value, survey_format):
        rows, columns = grid_shape(domain)
        south, north, west, east, step = (
            degrees(domain[name]) for name in ("south", "north", "west", "east", "step")
        )
        latitude, longitude = map(self.units, value)
        if survey_format == 2 and self.fault != "globe":
            if latitude == 900000000 == north:
                latitude = north - 1
            if longitude in (1800000000, -1800000000):
                if west == -1800000000:
                    longitude = west
                elif east == 1800000000:
                    longitude = east - 1
        if latitude is not None and longitude is not None:
            row = (latitude - south) // step
            column = (longitude - west) // step
            if 0 <= row < rows and 0 <= column < columns:
                return row * columns + column
        return None if domain["other"] is None else rows * columns

    def units(self, value):
        if value is None or not abs(value) <= 360:
            return None
        if self.fault == "rounding":
            return int(value * 1e7 + math.copysign(0.5, value))
        return math.floor(float(value) * 10000000.0 + 0.5)

    # --- reports ----------------------------------------------------------------------------------

    def op_reports(self, request):
        mechanism = self.survey(request)[1]
        pairs = [(int(text[:16], 16), int(text[16:], 16)) for text in request["words"]]
        reports = [
            self.report(mechanism, x, *pair)
            for x, pair in zip(request["symbols"], pairs, strict=True)
        ]
        return {"reports": reports}

    def report(self, mechanism, x, w0, w1):
        if self.fault == "words":
            w0, w1 = w1, w0
        if self.fault == "low bits":
            return mechanism.report(x, w0 % 2**mechanism.bits, w1 % 2**mechanism.bits)
        return mechanism.report(x, w0 >> (64 - mechanism.bits), w1 >> (64 - mechanism.bits))

    def op_enumerate(self, request):
        mechanism = self.survey(request)[1]
        x = request["symbol"]
        first_words = range(2**mechanism.bits)
        second_words = first_words if mechanism.words == 2 else range(1)
        reports = [
            mechanism.report(x, word0, word1) for word0 in first_words for word1 in second_words
        ]
        counts = [0] * mechanism.outputs
        for report in reports:
            counts[report] += 1
        return {
            "counts": counts,
            "sha256": hashlib.sha256(struct.pack(f"<{len(reports)}I", *reports)).hexdigest(),
        }

    # --- memory and uploads -----------------------------------------------------------------------

    def op_remembered(self, request):
        block = self.digest(
            b"sfumato/1/report", self.fingerprint(request), self.four_bytes(request["symbol"])
        )
        out = Cipher(AES(bytes.fromhex(request["secret"])), ECB()).encryptor().update(block)
        w0, w1 = struct.unpack("<2Q", out)
        report = self.report(self.survey(request)[1], request["symbol"], w0, w1)
        return {"words": f"{w0:016x}{w1:016x}", "report": report}

    def op_token(self, request):
        secret = bytes.fromhex(request["secret"])
        symbol = self.four_bytes(request["symbol"])
        token = self.digest(b"sfumato/1/value", secret, self.fingerprint(request), symbol)
        return {"token": token.hex()}

    def op_batch_id(self, request):
        repeat = self.survey(request)[0]["repeat"]
        secret = bytes.fromhex(request["secret"])
        if repeat == "once":
            batch = self.digest(b"sfumato/1/batch", secret, self.fingerprint(request))
            return {"batch": batch.hex(), "period": None}
        period = self.period(datetime.fromisoformat(request["time"]), repeat["every"])
        batch = self.digest(b"sfumato/1/batch", secret, self.fingerprint(request), period.encode())
        return {"batch": batch.hex(), "period": period}

    def period(self, time, every):
        if every == "week":
            year, week, _ = time.isocalendar()
            return f"{time.year if self.fault == 'week' else year}-W{week:02}"
        return {"day": "{0}-{1:02}-{2:02}", "month": "{0}-{1:02}", "year": "{0}"}[every].format(
            *time.timetuple()
        )

    def op_batch(self, request):
        reports = ",".join(map(str, request["reports"]))
        edition = self.survey(request)[0]["format"]
        key = ""
        survey = request["survey"]
        if edition == 2:
            survey = survey[:32]
            if request["period"] is not None and self.fault != "no period":
                key = f'"period":"{request["period"]}",'
        start = f'{{"batch":"{request["batch"]}","format":{edition},{key}"reports":[{reports}],'
        return {"body": start + f'"survey":"{survey}"}}'}

    def survey(self, request):
        return self.surveys[request["survey"]]

    def fingerprint(self, request):
        return bytes.fromhex(request["survey"])

    def digest(self, *parts):
        return hashlib.sha256(b"".join(parts)).digest()[:16]

    def four_bytes(self, symbol):
        return struct.pack(">I" if self.fault == "endian" else "<I", symbol)


# --- domains and contexts -------------------------------------------------------------------------


def degrees(text):
    sign = -1 if text[0] == "-" else 1
    whole, _, decimals = text.lstrip("-").partition(".")
    return sign * int(whole + decimals.ljust(7, "0"))


def grid_shape(domain):
    step = degrees(domain["step"])
    rows = (degrees(domain["north"]) - degrees(domain["south"])) // step
    return rows, (degrees(domain["east"]) - degrees(domain["west"])) // step


def size(domain):
    if domain["kind"] == "grid":
        rows, columns = grid_shape(domain)
        return rows * columns + (domain["other"] is not None)
    if domain["kind"] == "h3":
        return len(domain["cells"]) + (domain["other"] is not None)
    return domain["size"] if domain["kind"] == "range" else len(domain["labels"])


def unpack(text):
    raw = base64.b64decode(text)
    return list(struct.unpack(f"<{len(raw) // 4}I", raw))


def protected_groups(context):
    """Return each symbol's group among those with a promise, or None."""
    if context["kind"] == "blocks":
        return unpack(context["block_of"])
    if context["kind"] == "high-low":
        sensitive = set(unpack(context["sensitive"])) if context["epsilon"] != "inf" else set()
        epsilons = [
            context["epsilon"] if x in sensitive else "inf" for x in range(size(context["domain"]))
        ]
    else:
        epsilons = [context["epsilons"][tier] for tier in unpack(context["tier_of"])]
    numbers = {}
    groups = []
    for epsilon in epsilons:
        is_free = epsilon == "inf"
        groups.append(None if is_free else numbers.setdefault(epsilon, len(numbers)))
    return groups


# --- codes ----------------------------------------------------------------------------------------


class Code:
    def __init__(self, record, fault):
        self.kind = record["kind"]
        self.b = record["outputs"]
        self.total = 2 ** record["word_bits"]
        self.high = int(record["high"])
        self.low = int(record["low"])
        self.leftover = int(record["leftover"])
        if fault == "one bit" and self.kind != "clear":
            self.high ^= 2 if self.kind == "hadamard" else 1
        self.fault = fault
        self.r = self.b // 2 if self.kind == "hadamard" else 1
        if self.kind == "cyclic":
            self.K = record["points"]
            base = unpack(record["base"])
            w = len(base) // record["base_blocks"]
            blocks = [set(base[i : i + w]) for i in range(0, len(base), w)]
            steps = [(i, d) for i in range(len(blocks)) for d in range(self.K)]
            inside = [(i, d) for i, d in steps if d in blocks[i]]
            outside = [(i, d) for i, d in steps if d not in blocks[i]]
            self.r = len(inside)
            self.steps = inside + outside

    def encode(self, point, word):
        if self.kind == "clear":
            return point
        if self.kind == "hadamard":
            row = point + 1
            y = word % self.b
            coin = word // self.b
            threshold = self.high // 2
            wants_minus = coin > threshold if self.fault == "threshold" else coin >= threshold
            return y if wants_minus == is_odd(row & y) else y ^ (row & -row)
        if word >= self.total - self.leftover:
            return 0
        return self.place(point, self.index_of(word, self.high, self.low))

    def index_of(self, position, high, low):
        position += self.fault == "threshold"
        if position < self.r * high:
            return position // high
        # Only a planted fault can lead past the last place.
        return min(self.r + (position - self.r * high) // max(low, 1), self.b - 1)

    def place(self, point, index):
        if self.kind == "hadamard":
            row = point + 1
            half = self.b // 2
            low_bit = row & -row
            rank = index % half
            y = rank // low_bit * 2 * low_bit + rank % low_bit
            return y if is_odd(row & y) == (index >= half) else y ^ low_bit
        if self.kind == "randomized":
            return (point - index) % self.b
        if self.kind == "clear":
            return point
        i, d = self.steps[index]
        return i * self.K + (point - d) % self.K


def is_odd(number):
    return bool(number.bit_count() % 2)


# --- mechanisms -----------------------------------------------------------------------------------


class Mechanism:
    """Computes `report(x, word0, word1)` for words of `bits` bits."""

    def __init__(self, record, context, fault):
        self.record = record
        self.context = context
        self.fault = fault
        self.words = 1
        self.kind = record["kind"]
        self.codes = [Code(code, fault) for code in record.get("codes", [])]
        self.bits = record.get("word_bits")
        if self.bits is None and self.codes:
            self.bits = record["codes"][0]["word_bits"]
        {
            "table": self.set_up_table,
            "binary": self.set_up_table,
            "plain": self.set_up_blocks,
            "blocks": self.set_up_blocks,
            "high-low": self.set_up_high_low,
            "groups": self.set_up_groups,
            "product": self.set_up_product,
            "union": self.set_up_union,
        }[self.kind]()

    def report(self, x, word0, word1):
        return self.respond(x, word0, word1)

    def set_blocks(self):
        if self.context["kind"] == "uniform":
            self.block_of = [0] * size(self.context["domain"])
        else:
            self.block_of = unpack(self.context["block_of"])
        self.rank = self.ranks(self.block_of)

    def ranks(self, group_of):
        sizes = {}
        ranks = []
        for x, group in enumerate(group_of):
            ranks.append(x if self.fault == "rank" else sizes.get(group, 0))
            sizes[group] = sizes.get(group, 0) + 1
        return ranks

    def set_up_table(self):
        self.rows = [[int(count) for count in row] for row in self.record["rows"]]
        for x, row in enumerate(self.rows):
            row[1 - x if self.kind == "binary" else 0] ^= self.fault == "one bit"
        self.outputs = len(self.rows[0])
        self.respond = self.from_row if self.kind == "table" else self.from_two

    def from_row(self, x, word, _):
        for y, count in enumerate(self.rows[x]):
            word -= count
            if word < 0 or (word == 0 and self.fault == "threshold"):
                return y
        return self.outputs - 1

    def from_two(self, x, word, _):
        flips = self.rows[x][1 - x]
        return 1 - x if word < flips or (word == flips and self.fault == "threshold") else x

    def set_up_blocks(self):
        self.set_blocks()
        codes = [self.codes[number] for number in self.record["code_of_block"]]
        firsts = offsets([code.b for code in codes])
        self.outputs = firsts[-1]
        self.respond = lambda x, word, _: (
            firsts[self.block_of[x]] + codes[self.block_of[x]].encode(self.rank[x], word)
        )

    def set_up_high_low(self):
        code = self.codes[0]
        group_of = protected_groups(self.context)
        if self.context["epsilon"] == "inf":  # no promise, but the sensitive still form a group
            sensitive = set(unpack(self.context["sensitive"]))
            group_of = [0 if x in sensitive else None for x in range(size(self.context["domain"]))]
        self.set_up_frame(
            group_of,
            [code] * (code.b > 0),
            [(code.high, code.low, code.low)],
            code.r * (code.high - code.low),
        )

    def set_up_groups(self):
        numbers = self.record["code_of_group"]
        levels = [
            tuple(int(level[name]) for name in ("high", "low", "cover"))
            for level in self.record["levels"]
        ]
        codes = [self.codes[n] for n in numbers]
        levels = [levels[n] for n in numbers]
        levels = [(high ^ (self.fault == "one bit"), *others) for high, *others in levels]
        self.set_up_frame(protected_groups(self.context), codes, levels, int(self.record["clear"]))

    def set_up_frame(self, group_of, codes, levels, clear):
        ranks = self.ranks(group_of)
        firsts = offsets([code.b for code in codes])
        lengths = [code.b * level[2] for code, level in zip(codes, levels, strict=False)]
        starts = offsets(lengths)
        covered = starts[-1]
        free = [x for x, group in enumerate(group_of) if group is None]
        own = {x: firsts[-1] + i for i, x in enumerate(free)}
        self.outputs = firsts[-1] + len(free)

        def respond(x, word, _):
            g = group_of[x]
            if word >= covered + clear:
                return 0
            if word < covered:
                h = next(h for h in range(len(codes)) if word < starts[h + 1])
                if h != g:
                    return firsts[h] + (word - starts[h]) // levels[h][2]
                position = word - starts[g]
            elif g is None:
                return own[x]
            else:
                position = word - covered + lengths[g]
            high, low, _ = levels[g]
            return firsts[g] + codes[g].place(ranks[x], codes[g].index_of(position, high, low))

        self.respond = respond

    def set_up_product(self):
        self.set_blocks()
        self.words = 2
        outer, inner = self.codes
        self.outputs = outer.b * inner.b
        self.respond = lambda x, word0, word1: (
            outer.encode(self.block_of[x], word0) * inner.b + inner.encode(x, word1)
        )

    def set_up_union(self):
        self.set_blocks()
        parts = [
            Mechanism(part, inner, self.fault)
            for part, inner in zip(self.record["parts"], self.context["parts"], strict=True)
        ]
        firsts = offsets([part.outputs for part in parts])
        self.outputs = firsts[-1]
        self.bits = parts[0].bits
        self.words = max(part.words for part in parts)
        self.respond = lambda x, word0, word1: (
            firsts[self.block_of[x]] + parts[self.block_of[x]].report(self.rank[x], word0, word1)
        )


# --- what a context promises ----------------------------------------------------------------------


def promise(context):
    """Return E as a function of two different symbols; its value is None where E is infinite."""
    kind = context["kind"]
    if kind in ("matrix", "metric"):
        scale = number(context.get("epsilon", "1"))
        rows = context["matrix" if kind == "matrix" else "distances"]
        table = [[number(entry) for entry in row] for row in rows]
        return lambda x, x2: None if None in (scale, table[x][x2]) else scale * table[x][x2]
    classes = classes_of(context)
    if kind == "union":
        parts = [promise(part) for part in context["parts"]]
        blocks = unpack(context["block_of"])
        ranks = [blocks[:x].count(block) for x, block in enumerate(blocks)]
        return lambda x, x2: (
            parts[blocks[x]](ranks[x], ranks[x2]) if blocks[x] == blocks[x2] else None
        )
    inside = {group: number(epsilon_inside(context, group)) for group in set(classes)}
    outward = inside
    if kind == "blocks":
        across = number(context.get("across", "inf"))
        outward = dict.fromkeys(inside, across)
    return lambda x, x2: (inside if classes[x] == classes[x2] else outward)[classes[x]]


def epsilon_inside(context, group):
    if context["kind"] == "high-low":
        return context["epsilon"] if group else "inf"
    if context["kind"] == "tiers":
        return group  # tiers with the same ε are one class, and ε is its name
    return context["epsilons"][group] if "epsilons" in context else context["epsilon"]


def classes_of(context):
    """Return the class of each symbol."""
    kind = context["kind"]
    symbols = range(size(context["domain"]))
    if kind == "uniform":
        return [0 for _ in symbols]
    if kind == "high-low":
        sensitive = set(unpack(context["sensitive"]))
        return [x in sensitive for x in symbols]
    if kind == "blocks":
        return unpack(context["block_of"])
    if kind == "tiers":
        return [context["epsilons"][tier] for tier in unpack(context["tier_of"])]
    if kind == "union":
        blocks = unpack(context["block_of"])
        parts = [iter(classes_of(part)) for part in context["parts"]]
        return [(block, next(parts[block])) for block in blocks]
    return list(symbols)


def number(text):
    return None if text == "inf" else Fraction(text)


def is_open(context):
    return None in every_entry(context)


def every_entry(context):
    E = promise(context)
    symbols = range(size(context["domain"]))
    return [E(x, x2) for x, x2 in itertools.permutations(symbols, 2)]


def offsets(lengths):
    return list(itertools.accumulate(lengths, initial=0))


if __name__ == "__main__":
    client = PlainClient(*sys.argv[1:])
    for line in sys.stdin:
        print(json.dumps(client.answer(json.loads(line))), flush=True)
