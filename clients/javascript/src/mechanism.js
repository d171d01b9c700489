/**
 * Mechanisms: symbol → report, by integers and one or two words.
 *
 * A mechanism has `inputs` symbols, `outputs` reports, reads `words` words of `wordBits` bits and answers two things:
 *
 *     respond(x, word, word2)   the report of symbol x for its words, which are BigInts: a pure function
 *     row(x)                    on how many of the 2^(wordBits · words) draws x sends each report, in BigInts
 */
import { demand, fieldsOf, LARGEST, list, readerOf } from "./fields.js";
import { groupResponse, highLowResponse } from "./groups.js";
import { productResponse } from "./product.js";
import { binaryResponse, tableResponse } from "./table.js";
import { blockResponse, unionResponse } from "./union.js";

/** The mechanism that a record describes, with the integers that it holds. */
export function mechanismOf(record, context) {
  const made = readerOf(record, READERS)(record, context);
  demand(made.outputs <= LARGEST, "at most 2^31 reports");
  return { words: 1, ...made, context, inputs: context.size, cut: 64n - BigInt(made.wordBits) };
}

/** The report of symbol x for its two words of 64 bits: a mechanism reads the top bits, of one word or both. */
export function reportOf(mechanism, x, word, word2) {
  return mechanism.respond(x, word >> mechanism.cut, word2 >> mechanism.cut);
}

/** Readers by kind: which function, which fields, and the kind of context that it keeps, if it keeps one kind alone. */
const READERS = {
  binary: reader(binaryResponse, ["word_bits", "rows"]),
  table: (record, context) => {
    return reader(tableResponse, ["word_bits", "rows", ...("crowd" in record ? ["crowd"] : [])])(record, context);
  },
  plain: reader(blockResponse, ["codes", "code_of_block"], "uniform"),
  blocks: reader(blockResponse, ["codes", "code_of_block"], "blocks"),
  "high-low": reader(highLowResponse, ["codes"], "high-low"),
  groups: reader(groupResponse, ["codes", "levels", "code_of_group", "clear", "word_bits"]),
  product: reader(productResponse, ["codes"], "blocks"),
  union(record, context) {
    const { parts } = fieldsOf(record, "kind", "parts");
    demand(context.kind === "union", "a union of contexts");
    const made = list(parts, context.parts.length).map((part, j) => mechanismOf(part, context.parts[j]));
    return unionResponse(made, context.of);
  },
};

function reader(make, fields, kind) {
  return (record, context) => {
    fieldsOf(record, "kind", ...fields);
    demand(!kind || context.kind === kind, `a context of kind ${kind}`);
    return make(record, context);
  };
}
