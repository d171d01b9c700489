/**
 * Mechanisms: symbol → report, by integers and one or two words.
 *
 * A mechanism has `inputs` symbols and `outputs` reports, reads `words` words of `wordBits` bits, and has:
 *
 *     respond(x, word, word2)   the report of symbol x for its words, which are BigInts: a pure function
 *     row(x)                    for each report, how many of the 2^(wordBits · words) draws of x give it, in BigInts
 *     keepsByOdds()             optional: whether the odds of its codes prove that it keeps its context
 */
import { blockResponse } from "./blocks.js";
import { expect, requireFields, MAX_SIZE, readerOf } from "./fields.js";

/** Read a mechanism from its record, with the integers in it. */
export function mechanismOf(record, context) {
  const mechanism = readerOf(record, MECHANISMS)(record, context);
  expect(mechanism.outputs <= MAX_SIZE, "at most 2^31 reports");
  const unusedBits = 64n - BigInt(mechanism.wordBits);
  return { words: 1, ...mechanism, context, inputs: context.size, unusedBits };
}

/** Return the report of symbol x for its two words of 64 bits. A mechanism reads the top bits of one word or both. */
export function reportOf(mechanism, x, word, word2) {
  return mechanism.respond(x, word >> mechanism.unusedBits, word2 >> mechanism.unusedBits);
}

/** The reader of each kind. Modules add theirs. */
export const MECHANISMS = {
  plain: frame(blockResponse, ["codes", "code_of_block"], "uniform"),
  blocks: frame(blockResponse, ["codes", "code_of_block"], "blocks"),
};

/** Return a reader that requires these fields and, if given, a kind of context. */
export function frame(make, fields, kind) {
  return (record, context) => {
    requireFields(record, "kind", ...fields);
    expect(!kind || context.kind === kind, `a context of kind ${kind}`);
    return make(record, context);
  };
}
