/** Unions: a report reveals the block. Inside a block, there is any context and any mechanism. */
export default (core) => {
  const { classesOf, contextFields, contextOf, expect, requireFields, list, mechanismOf, ranksWithin, sizesOf } = core;
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

  const mechanisms = {
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
