/**
 * The block in the clear, something else inside it: any mechanism (a union) or a code (a block response).
 *
 * Report `offset_j + y` stands for report y of part j, blocks in order of first symbol.
 */
import { codeOf } from "./codes.js";
import { ranksWithin } from "./context.js";
import { expect, list, wholeNumber } from "./fields.js";
import { rangesKeep } from "./ranges.js";

/** `of` gives each symbol its block, or is null where there is one block. */
export function unionResponse(parts, of) {
  const [{ wordBits }] = parts;
  expect(
    parts.every((part) => part.wordBits === wordBits),
    "words of one length",
  );
  const words = parts.reduce((most, { words: own = 1 }) => Math.max(most, own), 1);
  const rank = of && ranksWithin(of);
  let outputs = 0;
  const offsets = parts.map((part) => (outputs += part.outputs) - part.outputs);
  const place = (x) => (of ? [of[x], rank[x]] : [0, x]);
  return {
    words,
    wordBits,
    outputs,
    respond(x, word, word2) {
      const [j, point] = place(x);
      return offsets[j] + parts[j].respond(point, word, word2);
    },
    row(x) {
      const [j, point] = place(x);
      const row = Array(outputs).fill(0n);
      // A part of fewer words ignores the others.
      const ignored = BigInt(wordBits * (words - (parts[j].words ?? 1)));
      parts[j].row(point).forEach((count, y) => (row[offsets[j] + y] = count << ignored));
      return row;
    },
  };
}

/** A code inside each block; with a single block, the plain response. */
export function blockResponse({ codes, code_of_block }, context) {
  const { of, sizes, inside, outward } = context;
  const made = list(codes).map(codeOf);
  const numbers = list(code_of_block, sizes.length);
  expect(new Set(numbers).size === made.length, "a block for every code");
  expect(sizes.length === 1 || outward[0] === Infinity, "no promise across blocks");
  const parts = numbers.map((number) => made[wholeNumber(number, 0, made.length - 1)]);
  parts.forEach((code, j) => requireFit(code, sizes[j], sizes[j] < 2 || inside[j] === Infinity));
  const ranges = parts.map(({ high, low }, group) => ({ group, high, low, cover: 0n }));
  return { ...unionResponse(parts, of), ranges, keepsByOdds: () => rangesKeep(ranges, context) };
}

/** A code must have a point for every symbol; it is the clear one exactly where there is nothing to hide. */
export function requireFit(code, size, inClear) {
  expect(code.points >= size && (code.kind === "clear") === inClear, "a code that fits its symbols");
}
