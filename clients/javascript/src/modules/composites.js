/**
 * Mechanisms that combine others. A union reveals the block; inside a block, there is any context and any mechanism. A
 * product answers about the block and about the symbol.
 */
export default (core) => {
  const { classesOf, contextFields, contextOf, expect, requireFields, list, mechanismOf, ranksWithin, sizesOf } = core;
  const { codeOf, frame, withinOdds } = core;
  const MAX_UNION_DEPTH = 8;

  const contexts = {
    union(record, nesting) {
      expect(nesting < MAX_UNION_DEPTH, "fewer nested unions");
      const [fields, domain] = contextFields(record, "parts", "block_of");
      const groupOf = classesOf(fields.block_of, domain.size);
      const sizes = sizesOf(groupOf);
      const parts = list(fields.parts, sizes.length).map((part) => contextOf(part, nesting + 1));
      // A part numbers the symbols of its block 0, 1, …; labels belong to the union.
      const isNumbered = (part, j) =>
        core.sameRecord(part.record.domain, { kind: "range", size: sizes[j], start: 0 });
      expect(parts.every(isNumbered), "parts over ranges from 0");
      const rank = ranksWithin(groupOf);
      return {
        domain,
        groupOf,
        parts,
        epsilon: (x, x2) => (groupOf[x] === groupOf[x2] ? parts[groupOf[x]].epsilon(rank[x], rank[x2]) : Infinity),
        entries: [...parts.flatMap(({ entries }) => entries), ...(parts.length > 1 ? [Infinity] : [])],
        isOpen: (x) => parts[groupOf[x]].isOpen(rank[x]),
        // With several blocks, every symbol with a promise inside its block has open pairs across.
        partlyOpen: parts.length > 1 ? parts.some(({ entries }) => entries.some(({ p }) => p)) : parts[0].partlyOpen,
      };
    },
  };

  /**
   * Product response: one answer about the block, another about the symbol. Report `J · K2 + T` means the pair (J, T).
   *
   * It is the only mechanism that reads two words.
   */
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

  const mechanisms = {
    product: frame(productResponse, ["codes"], "blocks"),
    union(record, context) {
      const { parts } = requireFields(record, "kind", "parts");
      expect(context.kind === "union", "a union of contexts");
      const mechanisms = list(parts, context.parts.length).map((part, j) => mechanismOf(part, context.parts[j]));
      // A report reveals the block, so every part keeps its own promise.
      return { ...core.unionResponse(mechanisms, context.groupOf), proofs: mechanisms };
    },
  };

  return { contexts, mechanisms };
};
