/**
 * Product response: one answer about the block, another about the symbol. Report `J · K2 + T` means the pair (J, T).
 *
 * It is the only mechanism that reads two words.
 */
export default ({ codeOf, expect, frame, list, withinOdds }) => {
  function productResponse({ codes }, { groupOf, size, sizes, inside, outward }) {
    const [outer, inner] = list(codes, 2).map(codeOf);
    const fits = outer.points >= sizes.length && inner.points >= size && outer.wordBits === inner.wordBits;
    expect(fits && sizes.length > 1 && outward[0] !== Infinity, "codes that fit blocks and across");
    return {
      words: 2,
      wordBits: outer.wordBits,
      outputs: outer.outputs * inner.outputs,
      respond: (x, word, word2) => outer.respond(groupOf[x], word) * inner.outputs + inner.respond(x, word2),
      row(x) {
        const row = inner.row(x);
        return outer.row(groupOf[x]).flatMap((a) => row.map((b) => a * b));
      },
      /** Inside a block, only the answer about the symbol counts; across blocks, the odds multiply. */
      keepsByOdds() {
        const keepsInside = (epsilon, j) => sizes[j] < 2 || withinOdds(inner.high, inner.low, epsilon);
        const keepsAcross = withinOdds(outer.high * inner.high, outer.low * inner.low, outward[0]);
        return keepsAcross && inside.every(keepsInside);
      },
    };
  }

  return { mechanisms: { product: frame(productResponse, ["codes"], "blocks") } };
};
