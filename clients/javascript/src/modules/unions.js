/**
 * Unions: the block in the clear, and any context and any mechanism inside it.
 */
export default (core) => {
  const { classesOf, contextFields, contextOf, expect, fieldsOf, list, mechanismOf, ranksWithin, sizesOf } = core;
  const DEEPEST_UNION = 8;

  const contexts = {
    union(record, nesting) {
      expect(nesting < DEEPEST_UNION, "fewer nested unions");
      const [fields, domain] = contextFields(record, "parts", "block_of");
      const of = classesOf(fields.block_of, domain.size);
      const sizes = sizesOf(of);
      const parts = list(fields.parts, sizes.length).map((part) => contextOf(part, nesting + 1));
      // A part speaks of the symbols 0, 1, … of its block; labels belong to the union.
      const isNumbered = (part, j) =>
        core.sameRecord(part.record.domain, { kind: "range", size: sizes[j], start: 0 });
      expect(parts.every(isNumbered), "parts over ranges from 0");
      const rank = ranksWithin(of);
      return {
        domain,
        of,
        parts,
        epsilon: (x, x2) => (of[x] === of[x2] ? parts[of[x]].epsilon(rank[x], rank[x2]) : Infinity),
        entries: [...parts.flatMap(({ entries }) => entries), ...(parts.length > 1 ? [Infinity] : [])],
        isOpen: (x) => parts[of[x]].isOpen(rank[x]),
        // With several blocks, every promise inside one stands next to an open pair across.
        partlyOpen: parts.length > 1 ? parts.some(({ entries }) => entries.some(({ p }) => p)) : parts[0].partlyOpen,
      };
    },
  };

  const mechanisms = {
    union(record, context) {
      const { parts } = fieldsOf(record, "kind", "parts");
      expect(context.kind === "union", "a union of contexts");
      const made = list(parts, context.parts.length).map((part, j) => mechanismOf(part, context.parts[j]));
      // A report shows the block, so every part keeps its own promise.
      return { ...core.unionResponse(made, context.of), proofs: made };
    },
  };

  return { contexts, mechanisms };
};
