/**
 * Product response: one answer about the block, another about the symbol. Report `J · K2 + T` stands for the pair.
 *
 * It is the one mechanism that reads two words.
 */
import { codeOf } from "./codes.js";
import { demand, list } from "./fields.js";

export function productResponse({ codes }, { of, size, outward }) {
  const [outer, inner] = list(codes, 2).map(codeOf);
  const fits = outer.points >= outward.length && inner.points >= size && outer.wordBits === inner.wordBits;
  demand(fits && outward.length > 1 && outward[0] !== Infinity, "codes that fit blocks and across");
  return {
    outer,
    inner,
    words: 2,
    wordBits: outer.wordBits,
    outputs: outer.outputs * inner.outputs,
    respond: (x, word, word2) => outer.respond(of[x], word) * inner.outputs + inner.respond(x, word2),
    row(x) {
      const row = inner.row(x);
      return outer.row(of[x]).flatMap((a) => row.map((b) => a * b));
    },
  };
}
