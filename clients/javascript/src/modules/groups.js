/**
 * Contexts of kind high-low and tiers, and group response.
 *
 * In a group response, every group also sends the reports of the other groups, as cover. Some symbols owe nothing.
 *
 * A member of a group has `high` words on each output of its code that it favours, and `low` on each other output. All
 * other symbols have `cover` words on each of them. A member has `clear` words more there in total; a symbol that owes
 * nothing has them on a report of its own. Words 0, 1, … are cover, group after group; `clear` words follow; the rest
 * are leftover and give report 0. Reports are those of the groups' codes, then one for each symbol that owes nothing.
 */
/** The kinds of records that this module reads. */
export const kinds = ["groups", "high-low", "tiers"];

export default (core) => {
  const { codeOf, contextFields, parseCount, expect, requireFit, requireFields, frame, list, positiveEpsilon } = core;
  const { rangesKeep, ranksWithin, twoLevelIndex } = core;

  // --- contexts -----------------------------------------------------------------------------------------------

  const contexts = {
    "high-low"(record) {
      const [{ epsilon, sensitive }, domain] = contextFields(record, "epsilon", "sensitive");
      const symbols = core.unpackU32(sensitive, domain.size);
      expect(
        symbols.every((x, i) => !i || x > symbols[i - 1]),
        "symbols in ascending order",
      );
      const isSensitive = new Uint8Array(domain.size);
      for (const x of symbols) isSensitive[x] = 1;
      return { ...contextOfClasses(domain, isSensitive, [Infinity, positiveEpsilon(epsilon)]), isSensitive };
    },

    tiers(record) {
      const [{ epsilons, tier_of }, domain] = contextFields(record, "epsilons", "tier_of");
      const groupOf = core.classesOf(tier_of, domain.size);
      const texts = list(epsilons, core.sizesOf(groupOf).length);
      const distinct = [...new Set(texts)]; // tiers of equal ε are one group
      return contextOfClasses(
        domain,
        groupOf.map((tier) => distinct.indexOf(texts[tier])),
        distinct.map(positiveEpsilon),
      );
    },
  };

  /** Return the context of classes that owe all others one ε. Renumber them in the order of their first symbols. */
  function contextOfClasses(domain, classOf, epsilons) {
    const order = [...new Set(classOf)];
    const places = new Map(order.map((number, place) => [number, place]));
    const promises = order.map((number) => epsilons[number]);
    return core.groupedContext(
      domain,
      classOf.map((number) => places.get(number)),
      promises,
      promises,
    );
  }

  // --- mechanisms ---------------------------------------------------------------------------------------------

  /** `ranges` are the { group, code, high, low, cover } of groups that own one. `groupOf[x]` is −1 for free symbols. */
  function coverResponse(groupOf, ranges, clear, wordBits, context) {
    const rank = ranksWithin(groupOf.map((g) => g + 1));
    let outputs = 0;
    let covered = 0n;
    for (const range of ranges) {
      Object.assign(range, { first: outputs, start: covered, own: BigInt(range.code.outputs) * range.cover });
      outputs += range.code.outputs;
      covered += range.own;
    }
    const leftover = core.wordsOf(wordBits) - covered - clear;
    expect(clear > 0n && leftover >= 0n && (ranges.length || !leftover), "words of groups that add up");
    const ownReport = groupOf.map((g) => (g < 0 ? outputs++ : 0));
    return {
      wordBits,
      outputs,
      keepsByOdds: () => rangesKeep(ranges, context),
      respond(x, word) {
        const g = groupOf[x];
        if (word >= covered + clear) return 0;
        const j = word < covered ? ranges.findLastIndex(({ start }) => start <= word) : g;
        if (j < 0) return ownReport[x];
        const { first, start, cover, own, code } = ranges[j];
        if (j !== g) return first + Number((word - start) / cover);
        // A member uses the words of its own group's cover, then the clear ones.
        const position = word < covered ? word - start : word - covered + own;
        return first + code.place(rank[x], twoLevelIndex(position, code.raised, ranges[j]));
      },
      row(x) {
        const row = Array(outputs).fill(0n);
        ranges.forEach(({ first, code, high, low, cover }, j) => {
          for (let y = 0; y < code.outputs; y++)
            row[first + y] = j !== groupOf[x] ? cover : code.contains(rank[x], y) ? high : low;
        });
        if (groupOf[x] < 0) row[ownReport[x]] = clear;
        row[0] += leftover;
        return row;
      },
    };
  }

  /** The response for any context of groups: tiers, blocks with a promise across, high-low. */
  function groupResponse(fields, context) {
    const { groupOf, sizes, inside, outward } = context;
    expect(groupOf, "a context of groups");
    const codes = list(fields.codes).map(codeOf);
    const clear = parseCount(fields.clear);
    const levels = list(fields.levels, codes.length).map((record, i) => levelsOf(record, codes[i], clear));
    const owing = [...sizes.keys()].filter((g) => outward[g] !== Infinity);
    let number = 0;
    const numberOf = sizes.map((_, g) => (outward[g] === Infinity ? -1 : number++));
    const areHidden = inside.every((epsilon, g) => numberOf[g] >= 0 || epsilon === Infinity || sizes[g] < 2);
    expect(areHidden, "hidden groups");
    const kinds = list(fields.code_of_group, owing.length);
    const distinct = [...new Set(kinds)];
    expect(
      distinct.length === codes.length && distinct.every((kind, i) => kind === i),
      "codes in the order of the groups",
    );
    const ranges = owing.map((group, i) => ({ group, code: codes[kinds[i]], ...levels[kinds[i]] }));
    expect(
      ranges.every(({ code, group }) => code.points >= sizes[group]),
      "a point for every symbol",
    );
    return coverResponse(
      new Int32Array(groupOf).map((g) => numberOf[g]),
      ranges,
      clear,
      fields.word_bits,
      context,
    );
  }

  function levelsOf(record, { outputs, raised }, clear) {
    requireFields(record, "high", "low", "cover");
    const [high, low, cover] = [record.high, record.low, record.cover].map(parseCount);
    const own = BigInt(raised) * high + BigInt(outputs - raised) * low;
    expect(own === clear + BigInt(outputs) * cover && low < high, "`clear` words above the cover");
    return { high, low, cover };
  }

  /** Sensitive symbols respond through a code; the others are sent as they are, or as cover in its range. */
  function highLowResponse({ codes }, context) {
    const { isSensitive, groupOf, inside } = context;
    const code = codeOf(list(codes, 1)[0]);
    const { high, low, raised, wordBits } = code;
    const size = isSensitive.reduce((sum, flag) => sum + flag, 0);
    requireFit(code, size, !size || inside.every((epsilon) => epsilon === Infinity));
    // The code's other outputs are exactly as likely as the cover of all other symbols.
    const ranges = size ? [{ group: groupOf[isSensitive.indexOf(1)], code, high, low, cover: low }] : [];
    return coverResponse(
      new Int32Array(isSensitive).map((flag) => flag - 1),
      ranges,
      BigInt(raised) * (high - low),
      wordBits,
      context,
    );
  }

  return {
    contexts,
    mechanisms: {
      "high-low": frame(highLowResponse, ["codes"], "high-low"),
      groups: frame(groupResponse, ["codes", "levels", "code_of_group", "clear", "word_bits"]),
    },
  };
};
