/**
 * Mechanisms whose reports reveal the block: any mechanism inside it (a union), or a code (a block response).
 *
 * Report `offset_j + y` means report y of part j. Blocks are in the order of their first symbols.
 */
import { codeOf } from "./codes.js";
import { ranksWithin } from "./context.js";
import { expect, list, requireInteger } from "./fields.js";
import { rangesKeep } from "./ranges.js";

/** `groupOf` has the block of each symbol, or is null if there is only one block. */
export function unionResponse(parts, groupOf) {
  const [{ wordBits }] = parts;
  expect(
    parts.every((part) => part.wordBits === wordBits),
    "words of one length",
  );
  const words = parts.reduce((max, { words: own = 1 }) => Math.max(max, own), 1);
  const rank = groupOf && ranksWithin(groupOf);
  let outputs = 0;
  const offsets = parts.map((part) => (outputs += part.outputs) - part.outputs);
  const place = (x) => (groupOf ? [groupOf[x], rank[x]] : [0, x]);
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
  const { groupOf, sizes, inside, outward } = context;
  const allCodes = list(codes).map(codeOf);
  const numbers = list(code_of_block, sizes.length);
  expect(new Set(numbers).size === allCodes.length, "a block for every code");
  expect(sizes.length === 1 || outward[0] === Infinity, "no promise across blocks");
  const parts = numbers.map((number) => allCodes[requireInteger(number, 0, allCodes.length - 1)]);
  parts.forEach((code, j) => requireFit(code, sizes[j], sizes[j] < 2 || inside[j] === Infinity));
  const ranges = parts.map(({ high, low }, group) => ({ group, high, low, cover: 0n }));
  return { ...unionResponse(parts, groupOf), ranges, keepsByOdds: () => rangesKeep(ranges, context) };
}

/** Require a point for every symbol, and the clear code exactly where there is nothing to hide. */
export function requireFit(code, size, isClear) {
  expect(code.points >= size && (code.kind === "clear") === isClear, "a code that fits its symbols");
}
