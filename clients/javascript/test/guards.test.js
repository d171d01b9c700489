/** Forged surveys, one for each guard: without the guard they would be accepted, or take the device's memory. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { contextOf } from "../src/context.js";
import { InvalidSurvey, PrivacyViolation, Survey } from "../src/index.js";
import { rangesKeep } from "../src/ranges.js";
import { clearCode, evenCode, packed, resolved, smallCode, uniform } from "./support/large.js";

const range = (size) => ({ kind: "range", size, start: 0 });

/** How a survey was proved, or the name of what was wrong with it. */
const verdictOf = (text) =>
  Survey.of(text).then(
    ({ checked }) => checked,
    ({ name }) => name,
  );

/** What a survey is refused with. */
async function refusal(text, error) {
  const problem = await Survey.of(text).catch((caught) => caught);
  assert.ok(problem instanceof error, String(problem));
  return problem.message;
}

// --- promises -----------------------------------------------------------------------------------------

test("a union that was made for a weaker promise is compared with the stronger one", async () => {
  const part = (epsilon) => uniform(2, epsilon);
  const union = (epsilon) => ({
    kind: "union",
    domain: range(4),
    parts: [part(epsilon), part(epsilon)],
    block_of: packed([0, 0, 1, 1]),
  });
  const plain = { kind: "plain", codes: [smallCode(240, 16)], code_of_block: [0] };
  const mechanism = { kind: "union", parts: [plain, plain] };
  assert.equal(await verdictOf(resolved(union("3"), mechanism)), "odds");
  assert.equal(await verdictOf(resolved(union("4"), mechanism, union("3"))), "whole");
  assert.equal(await verdictOf(resolved(union("0.1"), mechanism, union("3"))), "PrivacyViolation");
});

/** Blocks of two with nothing promised across, and a group response in which every symbol is sent as it is. */
const openGroups = { kind: "groups", codes: [], levels: [], code_of_group: [], clear: "256", word_bits: 8 };
const twoBlocks = (epsilon, of) => ({ kind: "blocks", domain: range(of.length), epsilon, block_of: packed(of) });

test("a group response that sends members of a block as they are is refused", async () => {
  const text = resolved(twoBlocks("0.1", [0, 0, 1, 1]), openGroups);
  assert.match(await refusal(text, InvalidSurvey), /hidden groups/);
  // The twin: blocks of one symbol, or without a promise, have nothing to hide.
  assert.equal(await verdictOf(resolved(twoBlocks("0.1", [0, 1, 2, 3]), openGroups)), "odds");
  assert.equal(await verdictOf(resolved(twoBlocks("inf", [0, 0, 1, 1]), openGroups)), "odds");
});

test("odds prove nothing about a group without a range, unless it owes nothing", () => {
  const keeps = (record) => rangesKeep([], contextOf(record));
  assert.equal(keeps(twoBlocks("0.1", [0, 0, 1, 1])), false);
  assert.equal(keeps({ ...twoBlocks("0.1", [0, 1]), across: "1" }), false);
  assert.equal(keeps(twoBlocks("0.1", [0, 1])), true);
  assert.equal(keeps(twoBlocks("inf", [0, 0, 1, 1])), true);
  assert.equal(keeps(uniform(2, "1")), false);
  assert.equal(keeps(uniform(1, "1")), true);
});

test("a group response must favour its own outputs", async () => {
  const context = { ...twoBlocks("0.1", [0, 0, 1, 1]), across: "1" };
  const mechanism = (levels, clear) => ({
    kind: "groups",
    codes: [smallCode(171, 85)],
    levels: [levels],
    code_of_group: [0, 0],
    clear,
    word_bits: 8,
  });
  const reversed = mechanism({ high: "1", low: "199", cover: "1" }, "198");
  assert.match(await refusal(resolved(context, reversed), InvalidSurvey), /above the cover/);
  // The twin breaks no rule of form: 45 + 41 = 2 · 42 + 2, and odds of 45/41 and 45/42 are small.
  assert.equal(await verdictOf(resolved(context, mechanism({ high: "45", low: "41", cover: "42" }, "2"))), "odds");
});

test("reports of a group are held to the strictest of the other groups", async () => {
  // Group 0 has cover/low = 2: within e^2 and e^3, which two tiers allow, and not within e^0.1.
  const one = { kind: "randomized", points: 1, outputs: 1, word_bits: 8, high: "256", low: "0", leftover: "0" };
  const two = { ...one, high: "255", leftover: "1" };
  const levels = (high, low, cover) => ({ high: String(high), low: String(low), cover: String(cover) });
  const mechanism = {
    kind: "groups",
    codes: [smallCode(171, 85), one, two],
    levels: [levels(22, 6, 12), levels(204, 200, 200), levels(6, 2, 2)],
    code_of_group: [0, 1, 2],
    clear: "4",
    word_bits: 8,
  };
  const tiers = (...epsilons) => ({ kind: "tiers", domain: range(4), epsilons, tier_of: packed([0, 0, 1, 2]) });
  assert.equal(await verdictOf(resolved(tiers("3", "0.1", "2"), mechanism)), "PrivacyViolation");
  assert.equal(await verdictOf(resolved(tiers("3", "1.5", "2"), mechanism)), "odds");
  // A group is not held to its own ε there: 22/12 is within e^0.65, and 12/6 is not.
  const alone = { ...tiers("0.65", "1.5", "2"), domain: range(3), tier_of: packed([0, 1, 2]) };
  assert.equal(await verdictOf(resolved(alone, mechanism)), "odds");
});

// --- sizes --------------------------------------------------------------------------------------------

const TOTAL = 2n ** 64n;

/** A table of different rows that are all near 1/outputs, and a union of pairs that it keeps. */
function distinctRows(size, outputs) {
  const each = TOTAL / BigInt(outputs);
  const rows = Array.from({ length: size }, (_, x) => {
    const row = Array(outputs).fill(each);
    row[0] += TOTAL - each * BigInt(outputs) + BigInt(x);
    row[1] -= BigInt(x);
    return row.map(String);
  });
  const parts = Array.from({ length: size / 2 }, () => uniform(2, "1"));
  const block_of = packed(Array.from({ length: size }, (_, x) => x >> 1));
  return resolved({ kind: "union", domain: range(size), parts, block_of }, { kind: "table", rows, word_bits: 64 });
}

test("a table that needs more than 2^28 comparisons is refused, and one that needs 2^28 is compared", async () => {
  assert.equal(await verdictOf(distinctRows(1024, 256)), "whole");
  assert.match(await refusal(distinctRows(1024, 257), PrivacyViolation), /too large to compare/);
});

test("a matrix has at most 4,096 symbols", async () => {
  const matrix = (size) => resolved({ kind: "matrix", domain: range(size), matrix: [] }, { kind: "x" });
  assert.match(await refusal(matrix(4097), InvalidSurvey), /at most 4096 symbols/);
  assert.match(await refusal(matrix(4096), InvalidSurvey), /a list of 4096/);
});

const plain = (code) => ({ kind: "plain", codes: [code], code_of_block: [0] });
const highLow = (size) => ({ ...uniform(size, "1"), kind: "high-low", sensitive: packed([1, 2]) });
const [LIMIT, UNIFORM_LIMIT] = [2 ** 24, 2 ** 26];

/** Contexts of a size, and the most symbols that they may have. */
const SIZED = {
  uniform: [(size) => uniform(size, "1"), UNIFORM_LIMIT],
  "high-low": [highLow, LIMIT],
  blocks: [(size) => ({ ...uniform(size, "1"), kind: "blocks", block_of: "" }), LIMIT],
  tiers: [(size) => ({ kind: "tiers", domain: range(size), epsilons: ["1"], tier_of: "" }), LIMIT],
  union: [(size) => ({ kind: "union", domain: range(size), parts: [], block_of: "" }), LIMIT],
};

for (const [kind, [record, most]] of Object.entries(SIZED)) {
  test(`a survey has at most ${most} symbols, and a part of a union, too: ${kind}`, async () => {
    const limit = new RegExp(`at most ${most} symbols`);
    assert.match(await refusal(resolved(record(most + 1), { kind: "x" }), InvalidSurvey), limit);
    assert.doesNotMatch(await refusal(resolved(record(most), { kind: "x" }), InvalidSurvey), limit);
    const nested = { kind: "union", domain: range(4), parts: [record(most + 1)], block_of: packed([0, 0, 0, 0]) };
    assert.match(await refusal(resolved(nested, { kind: "x" }), InvalidSurvey), limit);
  });
}

test("the context that a mechanism was made for has the same limits", async () => {
  const text = resolved(uniform(LIMIT + 1, "1"), { kind: "x" }, highLow(LIMIT + 1));
  assert.match(await refusal(text, InvalidSurvey), /at most 16777216 symbols/);
});

test("a code has at most 64 outputs for each symbol, and 2^16 more", async () => {
  const code = (outputs) => resolved(uniform(2, "1"), plain({ ...evenCode(outputs), outputs }));
  const most = 128 + 2 ** 16;
  assert.match(await refusal(code(most + 1), InvalidSurvey), /codes with fewer outputs/);
  assert.doesNotMatch(String(await Survey.of(code(most)).catch(({ message }) => message)), /fewer outputs/);
});

test("a circle has at most 2^24 outputs", async () => {
  const cyclic = (points) => ({ ...evenCode(points), kind: "cyclic", base: packed([0]), base_blocks: 1 });
  const symbols = 2 ** 20; // enough for a code of this size
  const text = resolved(uniform(symbols, "1"), plain(cyclic(LIMIT + 1)));
  assert.match(await refusal(text, InvalidSurvey), /at most 16777216/);
});

test("unions are nested at most eight deep", async () => {
  const wrap = (inner, times) => (times ? wrap({ kind: "union", parts: [inner] }, times - 1) : inner);
  const nested = (depth) => {
    const context = (left) => {
      if (!left) return uniform(1, "1");
      return { kind: "union", domain: range(1), parts: [context(left - 1)], block_of: packed([0]) };
    };
    return resolved(context(depth), wrap(plain(clearCode(1)), depth));
  };
  assert.equal(await verdictOf(nested(8)), "odds");
  assert.match(await refusal(nested(9), InvalidSurvey), /fewer nested unions/);
});
