/** The proof by rows: forged tables are refused, honest ones accepted, and every verdict is that of brute force. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { contextOf } from "../src/context.js";
import { PrivacyViolation, Survey } from "../src/index.js";
import { withinOdds } from "../src/odds.js";
import { generator } from "./support/generator.js";
import { blocks, packed, resolved, uniform } from "./support/large.js";

const TOTAL = 2n ** 64n;

const table = (rows, word_bits = 64) => ({ kind: "table", rows: rows.map((row) => row.map(String)), word_bits });

/** How a survey was proved, or the name of what was wrong with it. */
const verdictOf = (text) =>
  Survey.of(text).then(
    ({ checked }) => checked,
    ({ name }) => name,
  );

// --- forged tables ------------------------------------------------------------------------------------

/** A block of 1,001 symbols and one of its own. */
const large = { kind: "blocks", domain: { kind: "range", size: 1002, start: 0 }, epsilon: "0.01" };
large.block_of = packed([...Array(1001).fill(0), 1]);

test("a large table that hides nothing is refused", async () => {
  const clear = (x) => Array.from({ length: 5 }, (_, y) => (y === (x < 2 ? 0 : 1 + (x % 3)) ? TOTAL : 0n));
  const rows = Array.from({ length: 1002 }, (_, x) => (x < 1001 ? clear(x) : [0n, 0n, 0n, 0n, TOTAL]));
  const problem = await Survey.of(resolved(large, table(rows))).catch((found) => found);
  assert.ok(problem instanceof PrivacyViolation);
  assert.ok(problem.x !== problem.x2 && problem.x < 1001 && problem.x2 < 1001);
});

test("its twin, which hides everything in its block, is accepted", async () => {
  const quarter = TOTAL / 4n;
  const rows = Array.from({ length: 1002 }, (_, x) => {
    return x < 1001 ? [quarter, quarter, quarter, quarter, 0n] : [0n, 0n, 0n, 0n, TOTAL];
  });
  assert.equal(await verdictOf(resolved(large, table(rows))), "whole");
});

/** Rows that are permutations of two numbers: odds of `high` to `low` between any two. */
function permuted(size, high, low) {
  const rest = TOTAL - high - low;
  return Array.from({ length: size }, (_, x) => (x % 2 ? [high, low, rest] : [low, high, rest]));
}

test("a large uniform table is held to ε, and not to 2ε", async () => {
  const low = 10n ** 18n;
  const [e1, e149] = [2718n * 10n ** 15n, 4437n * 10n ** 15n]; // just below e and e^1.49
  assert.equal(await verdictOf(resolved(uniform(1500, "1"), table(permuted(1500, e1, low)))), "whole");
  assert.equal(await verdictOf(resolved(uniform(1500, "1"), table(permuted(1500, e149, low)))), "PrivacyViolation");
});

test("one wrong row among 1,001 is found, wherever it is", async () => {
  const [low, high] = [10n ** 18n, 2718n * 10n ** 15n];
  for (const place of [0, 500, 1000]) {
    const rows = permuted(1001, high, low);
    rows[place] = [low - 10n ** 16n, high, TOTAL - high - low + 10n ** 16n];
    assert.equal(await verdictOf(resolved(uniform(1001, "1"), table(rows))), "PrivacyViolation");
  }
});

test("a table that is too large to compare is refused, though it may keep its promise", async () => {
  const row = [TOTAL / 2n, TOTAL / 2n];
  const size = 4097;
  const domain = { kind: "range", size, start: 0 };
  const half = { ...uniform(2048, "1") };
  const union = { kind: "union", domain, parts: [half, { ...uniform(2049, "1") }] };
  union.block_of = packed(Array.from({ length: size }, (_, x) => (x < 2048 ? 0 : 1)));
  const problem = await Survey.of(resolved(union, table(Array(size).fill(row)))).catch((found) => found);
  assert.ok(problem instanceof PrivacyViolation);
  assert.match(problem.message, /too large to compare/);
  // As a uniform context, which needs no pairs, it is compared.
  assert.equal(await verdictOf(resolved(uniform(size, "1"), table(Array(size).fill(row)))), "whole");
});

// --- against brute force ------------------------------------------------------------------------------

/** Rows over words of 8 bits, near each other, a few of them equal or permuted. */
function randomRows(draw, size, outputs) {
  const base = Array(outputs).fill(Math.floor(256 / outputs));
  const rows = [];
  for (let x = 0; x < size; x++) {
    const row = [...(draw(3) && x ? rows[draw(x)] : base)];
    for (let i = draw(3); i > 0; i--) {
      const [from, to] = [draw(outputs), draw(outputs)];
      const moved = Math.min(row[from], draw(40));
      row[from] -= moved;
      row[to] += moved;
    }
    row[0] += 256 - row.reduce((sum, n) => sum + n);
    rows.push(row);
  }
  return rows.map((row) => row.map(BigInt));
}

const EPSILONS = ["0.1", "0.3", "1", "2", "inf"];

/** A context of every kind that rows may have to keep. */
function randomContext(draw, size) {
  const domain = { kind: "range", size, start: 0 };
  const pick = () => EPSILONS[draw(EPSILONS.length)];
  const groups = Array.from({ length: size }, () => draw(3));
  const order = [...new Set(groups)];
  const of = packed(groups.map((g) => order.indexOf(g)));
  const epsilons = order.map(pick);
  const isMixed = new Set(epsilons).size > 1;
  const several = isMixed ? { epsilons } : { epsilon: epsilons[0] };
  const square = () => Array.from({ length: size }, (_, x) => groups.map((_, x2) => (x === x2 ? "0" : pick())));
  return [
    { kind: "uniform", domain, epsilon: pick() },
    { kind: "tiers", domain, epsilons, tier_of: of },
    { kind: "blocks", domain, ...several, across: EPSILONS[draw(4)], block_of: of },
    { kind: "matrix", domain, matrix: square() },
  ][draw(4)];
}

test("verdicts are those of brute force, for thousands of random tables", async () => {
  const draw = generator(7);
  const seen = { whole: 0, PrivacyViolation: 0 };
  for (let i = 0; i < 3000; i++) {
    const [size, outputs] = [2 + draw(7), 2 + draw(4)];
    const [record, rows] = [randomContext(draw, size), randomRows(draw, size, outputs)];
    const { epsilon } = contextOf(record);
    const isKept = rows.every((row, x) =>
      rows.every((row2, x2) => x === x2 || row.every((high, y) => withinOdds(high, row2[y], epsilon(x, x2)))),
    );
    const verdict = await verdictOf(resolved(record, table(rows, 8)));
    assert.equal(verdict, isKept ? "whole" : "PrivacyViolation", JSON.stringify(record));
    seen[verdict]++;
  }
  assert.ok(seen.whole > 300 && seen.PrivacyViolation > 300, JSON.stringify(seen));
});

test("a violation is where it is said to be", async () => {
  const draw = generator(11);
  let found = 0;
  for (let i = 0; i < 300; i++) {
    const [record, rows] = [randomContext(draw, 6), randomRows(draw, 6, 3)];
    const problem = await Survey.of(resolved(record, table(rows, 8))).catch((caught) => caught);
    if (problem instanceof Survey) continue;
    const { x, x2, output } = problem;
    assert.ok(!withinOdds(rows[x][output], rows[x2][output], contextOf(record).epsilon(x, x2)));
    found++;
  }
  assert.ok(found > 30);
});

test("many different ε and many different numbers are compared, and one wrong number is found", async () => {
  const draw = generator(3);
  const size = 512;
  const matrix = Array.from({ length: size }, (_, x) => {
    return Array.from({ length: size }, (_, x2) => (x === x2 ? "0" : `${1.5 + draw(1000) / 32}`));
  });
  const rows = Array.from({ length: size }, () => {
    const row = Array.from({ length: 64 }, () => 1000n + BigInt(draw(2000)));
    row[0] += 2n ** 20n - row.reduce((sum, n) => sum + n);
    return row;
  });
  const context = { kind: "matrix", domain: { kind: "range", size, start: 0 }, matrix };
  assert.equal(await verdictOf(resolved(context, table(rows, 20))), "whole");
  [rows[300][40], rows[300][0]] = [1n, rows[300][0] + rows[300][40] - 1n];
  assert.equal(await verdictOf(resolved(context, table(rows, 20))), "PrivacyViolation");
});
