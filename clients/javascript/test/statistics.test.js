/** An exam with the platform's own randomness: the exact tail at 1e-6, and a twin each that must fail. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fit, upperTail } from "./support/chi_square.js";
import { surveyOf } from "./support/vectors.js";

const PEOPLE = 200_000;
const LEVEL = 1e-6;

test("the tail of chi-square is exact", () => {
  const close = (found, right) => assert.ok(Math.abs(found / right - 1) < 1e-9, `${found} ${right}`);
  for (const x of [0.1, 1, 5, 30, 60]) {
    close(upperTail(x, 2), Math.exp(-x / 2));
    close(upperTail(x, 4), Math.exp(-x / 2) * (1 + x / 2));
    close(upperTail(x, 6), Math.exp(-x / 2) * (1 + x / 2 + x ** 2 / 8));
  }
  // With one degree of freedom, twice the normal tail: 4.891638475699 standard deviations are 1e-6.
  close(upperTail(4.891638475699001 ** 2, 1), 1e-6);
  // With three, that of one and a term more.
  close(upperTail(20, 3), upperTail(20, 1) + Math.sqrt((2 * 20) / Math.PI) * Math.exp(-10));
});

for (const about of [
  "binary, uneven",
  "table",
  "plain, hadamard",
  "plain, cyclic, two base blocks",
  "blocks, best",
  "high-low, hadamard",
  "groups, two levels",
  "product, randomized",
  "union",
]) {
  test(`reports are distributed as the integers say: ${about}`, async () => {
    const survey = await surveyOf("samples.json", about);
    const x = survey.size - 1;
    const value = survey.label(x);
    const counts = Array(survey.outputs).fill(0);
    for (let i = 0; i < PEOPLE; i++) counts[survey.privatize(value)]++;
    const row = survey.probabilities(x);
    const chance = fit(counts, row);
    assert.ok(chance > LEVEL, `n = ${PEOPLE}, chance ${chance}, bound ${LEVEL}`);
    assert.ok(fit(counts, offByTenth(row)) < LEVEL, "a channel that is off by a tenth must be noticed");
  });
}

/** The likeliest report a tenth less likely, the others more so in proportion. */
function offByTenth(row) {
  const largest = Math.max(...row);
  const rest = (1 - 0.9 * largest) / (1 - largest);
  const likeliest = row.indexOf(largest);
  return row.map((p, y) => (y === likeliest ? 0.9 * p : rest * p));
}
