/**
 * Contexts of kind high-low and tiers, and group response.
 *
 * In a group response, groups of symbols take cover in each other's reports, and some symbols owe nothing.
 *
 * A member of a group has `high` words on each output of its code that it favours and `low` on each other one;
 * everybody else has `cover` on each of them. What a member has more there is `clear`; a symbol that owes nothing has
 * that on a report of its own. Words 0, 1, … say cover, group after group; `clear` words follow; the rest are left
 * over and say report 0. Reports are those of the groups' codes, then one for each symbol that owes nothing.
 */
export default (core) => {
  const { codeOf, contextFields, count, expect, requireFit, fieldsOf, frame, list, positiveEpsilon } = core;
  const { rangesKeep, ranksWithin, twoLevelIndex } = core;


  // --- contexts -----------------------------------------------------------------------------------------------

  const contexts = {
    "high-low"(record) {
      const [{ epsilon, sensitive }, domain] = contextFields(record, "epsilon", "sensitive");
      const listed = core.unpackedU32(sensitive, domain.size);
      expect(
        listed.every((x, i) => !i || x > listed[i - 1]),
        "symbols in ascending order",
      );
      const isSensitive = new Uint8Array(domain.size);
      for (const x of listed) isSensitive[x] = 1;
      return { ...grouped(domain, isSensitive, [Infinity, positiveEpsilon(epsilon)]), isSensitive };
    },

    tiers(record) {
      const [{ epsilons, tier_of }, domain] = contextFields(record, "epsilons", "tier_of");
      const of = core.classesOf(tier_of, domain.size);
      const texts = list(epsilons, core.sizesOf(of).length);
      const distinct = [...new Set(texts)]; // tiers of equal ε are one group
      return grouped(
        domain,
        of.map((tier) => distinct.indexOf(texts[tier])),
        distinct.map(positiveEpsilon),
      );
    },
  };

  /** Classes of symbols that owe all others one ε, renumbered in the order of first symbols. */
  function grouped(domain, classOf, promised) {
    const order = [...new Set(classOf)];
    const places = new Map(order.map((number, place) => [number, place]));
    const owed = order.map((number) => promised[number]);
    return core.groupedContext(
      domain,
      classOf.map((number) => places.get(number)),
      owed,
      owed,
    );
  }

  // --- mechanisms ---------------------------------------------------------------------------------------------

  /** `ranges` are { group, code, high, low, cover } of groups that own one; `of[x]` is −1 for free symbols. */
  function coverResponse(of, ranges, clear, wordBits, context) {
    const rank = ranksWithin(of.map((g) => g + 1));
    let outputs = 0;
    let covered = 0n;
    for (const range of ranges) {
      Object.assign(range, { first: outputs, start: covered, own: BigInt(range.code.outputs) * range.cover });
      outputs += range.code.outputs;
      covered += range.own;
    }
    const leftover = core.wordsOf(wordBits) - covered - clear;
    expect(clear > 0n && leftover >= 0n && (ranges.length || !leftover), "words of groups that add up");
    const ownReport = of.map((g) => (g < 0 ? outputs++ : 0));
    return {
      wordBits,
      outputs,
      keepsByOdds: () => rangesKeep(ranges, context),
      respond(x, word) {
        const g = of[x];
        if (word >= covered + clear) return 0;
        const j = word < covered ? ranges.findLastIndex(({ start }) => start <= word) : g;
        if (j < 0) return ownReport[x];
        const { first, start, cover, own, code } = ranges[j];
        if (j !== g) return first + Number((word - start) / cover);
        // A member counts the words of its own group's cover, then the clear ones.
        const position = word < covered ? word - start : word - covered + own;
        return first + code.place(rank[x], twoLevelIndex(position, code.raised, ranges[j]));
      },
      row(x) {
        const row = Array(outputs).fill(0n);
        ranges.forEach(({ first, code, high, low, cover }, j) => {
          for (let y = 0; y < code.outputs; y++)
            row[first + y] = j !== of[x] ? cover : code.contains(rank[x], y) ? high : low;
        });
        if (of[x] < 0) row[ownReport[x]] = clear;
        row[0] += leftover;
        return row;
      },
    };
  }

  /** Any context of groups: tiers, blocks with a promise across, high-low. */
  function groupResponse(fields, context) {
    const { of, sizes, inside, outward } = context;
    expect(of, "a context of groups");
    const codes = list(fields.codes).map(codeOf);
    const clear = count(fields.clear);
    const levels = list(fields.levels, codes.length).map((record, i) => levelsOf(record, codes[i], clear));
    const owing = [...sizes.keys()].filter((g) => outward[g] !== Infinity);
    let number = 0;
    const numberOf = sizes.map((_, g) => (outward[g] === Infinity ? -1 : number++));
    const hidden = inside.every((epsilon, g) => numberOf[g] >= 0 || epsilon === Infinity || sizes[g] < 2);
    expect(hidden, "hidden groups");
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
      new Int32Array(of).map((g) => numberOf[g]),
      ranges,
      clear,
      fields.word_bits,
      context,
    );
  }

  function levelsOf(record, { outputs, raised }, clear) {
    fieldsOf(record, "high", "low", "cover");
    const [high, low, cover] = [record.high, record.low, record.cover].map(count);
    const own = BigInt(raised) * high + BigInt(outputs - raised) * low;
    expect(own === clear + BigInt(outputs) * cover && low < high, "`clear` words above the cover");
    return { high, low, cover };
  }

  /** Sensitive symbols answer through a code; the others in the clear, or vanish in its range. */
  function highLowResponse({ codes }, context) {
    const { isSensitive, of, inside } = context;
    const code = codeOf(list(codes, 1)[0]);
    const { high, low, raised, wordBits } = code;
    const size = isSensitive.reduce((sum, flag) => sum + flag, 0);
    requireFit(code, size, !size || inside.every((epsilon) => epsilon === Infinity));
    // The code's other outputs are exactly as likely as the cover that everybody else takes.
    const ranges = size ? [{ group: of[isSensitive.indexOf(1)], code, high, low, cover: low }] : [];
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
