/**
 * Mechanisms: symbol → report, by integers and one or two words.
 *
 * A mechanism has `inputs` symbols, `outputs` reports, reads `words` words of `wordBits` bits and answers:
 *
 *     respond(x, word, word2)   the report of symbol x for its words, which are BigInts: a pure function
 *     row(x)                    on how many of the 2^(wordBits · words) draws x sends each report, in BigInts
 *     keepsByOdds()             whether the odds of its codes prove that it keeps the context it was made for, if they can
 */
import { blockResponse } from "./blocks.js";
import { expect, fieldsOf, LARGEST, readerOf } from "./fields.js";

/** The mechanism that a record describes, with the integers that it holds. */
export function mechanismOf(record, context) {
  const made = readerOf(record, MECHANISMS)(record, context);
  expect(made.outputs <= LARGEST, "at most 2^31 reports");
  return { words: 1, ...made, context, inputs: context.size, cut: 64n - BigInt(made.wordBits) };
}

/** The report of symbol x for its two words of 64 bits: a mechanism reads the top bits, of one word or both. */
export function reportOf(mechanism, x, word, word2) {
  return mechanism.respond(x, word >> mechanism.cut, word2 >> mechanism.cut);
}

/** Readers by kind; modules add theirs. */
export const MECHANISMS = {
  plain: frame(blockResponse, ["codes", "code_of_block"], "uniform"),
  blocks: frame(blockResponse, ["codes", "code_of_block"], "blocks"),
};

/** A reader: which function, which fields, and the kind of context that it keeps, if it keeps one kind alone. */
export function frame(make, fields, kind) {
  return (record, context) => {
    fieldsOf(record, "kind", ...fields);
    expect(!kind || context.kind === kind, `a context of kind ${kind}`);
    return make(record, context);
  };
}
