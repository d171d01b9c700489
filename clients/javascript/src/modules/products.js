/**
 * Product response: one answer about the block, another about the symbol. Report `J · K2 + T` stands for the pair.
 *
 * It is the only mechanism that reads two words.
 */
export default ({ codeOf, expect, frame, list, withinOdds }) => {
  function productResponse({ codes }, { of, size, sizes, inside, outward }) {
    const [outer, inner] = list(codes, 2).map(codeOf);
    const fits = outer.points >= sizes.length && inner.points >= size && outer.wordBits === inner.wordBits;
    expect(fits && sizes.length > 1 && outward[0] !== Infinity, "codes that fit blocks and across");
    return {
      words: 2,
      wordBits: outer.wordBits,
      outputs: outer.outputs * inner.outputs,
      respond: (x, word, word2) => outer.respond(of[x], word) * inner.outputs + inner.respond(x, word2),
      row(x) {
        const row = inner.row(x);
        return outer.row(of[x]).flatMap((a) => row.map((b) => a * b));
      },
      /** Two answers: odds inside a block are those about the symbol, across blocks they multiply. */
      keepsByOdds() {
        const isKept = (epsilon, j) => sizes[j] < 2 || withinOdds(inner.high, inner.low, epsilon);
        const across = withinOdds(outer.high * inner.high, outer.low * inner.low, outward[0]);
        return across && inside.every(isKept);
      },
    };
  }

  return { mechanisms: { product: frame(productResponse, ["codes"], "blocks") } };
};
