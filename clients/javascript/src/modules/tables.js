/**
 * Promises and channels that are written out: contexts of kind matrix and metric, mechanisms of kind table and binary,
 * and the proof by rows, for every mechanism that the odds of its codes do not prove.
 */
export default (core) => {
  const { atMost, contextFields, count, expect, exactNumber, list, lowest, oddsOf, positiveEpsilon, wordsOf } = core;
  const LARGEST_MATRIX = 4096;
  const MOST_ENTRIES = 2 ** 22; // of all rows together
  const MOST_COMPARISONS = 2 ** 28; // of ranks, pair by pair

  // --- contexts -----------------------------------------------------------------------------------------------

  /** E written out, by symbols; equal numbers are one object. */
  function matrixContext(domain, E) {
    const entries = new Set();
    E.forEach((row, x) => row.forEach((epsilon, x2) => x === x2 || entries.add(epsilon)));
    const isOpen = (x) => E[x].every((epsilon, x2) => x === x2 || epsilon === Infinity);
    const isMixed = (row, x) => new Set(row.filter((_, x2) => x2 !== x).map((epsilon) => epsilon === Infinity)).size > 1;
    return { domain, E, epsilon: (x, x2) => E[x][x2], entries: [...entries], isOpen, partlyOpen: E.some(isMixed) };
  }

  const contexts = {
    metric(record) {
      const [{ epsilon, distances }, domain] = contextFields(record, "epsilon", "distances");
      const rate = positiveEpsilon(epsilon);
      const E = squareOf(distances, domain.size, (text) => product(rate, exactNumber(text)));
      const symmetric = distances.every((row, x) => row.every((text, x2) => text === distances[x2][x]));
      expect(symmetric, "symmetric distances");
      return matrixContext(domain, E);
    },

    matrix(record) {
      const [{ matrix }, domain] = contextFields(record, "matrix");
      return matrixContext(domain, squareOf(matrix, domain.size, entryOf));
    },
  };

  function entryOf(text) {
    const epsilon = exactNumber(text);
    return epsilon.p === 0n ? epsilon : positiveEpsilon(text);
  }

  /** `a · b` for a above 0; infinity times nothing is nothing. */
  function product(a, b) {
    if (b.p === 0n) return b;
    return a === Infinity || b === Infinity ? Infinity : lowest(a.p * b.p, a.q * b.q);
  }

  /** Rows of numbers with zeros on the diagonal; each text is read once. */
  function squareOf(rows, size, read) {
    expect(size <= LARGEST_MATRIX, `at most ${LARGEST_MATRIX} symbols`);
    const known = new Map();
    const number = (text) => known.get(text) ?? known.set(text, read(text)).get(text);
    const square = list(rows, size).map((row) => list(row, size).map(number));
    expect(
      square.every((row, x) => row[x].p === 0n),
      "zeros on the diagonal",
    );
    return square;
  }

  // --- mechanisms ---------------------------------------------------------------------------------------------

  /** Any channel that is small enough to be written out: `rows[x][y]` of all words send report y for symbol x. */
  function tableResponse(fields, { size }) {
    const rows = list(fields.rows, size).map((row) => list(row).map(count));
    const outputs = rows[0].length;
    const words = wordsOf(fields.word_bits);
    const isWhole = (row) => row.length === outputs && row.reduce((sum, more) => sum + more) === words;
    expect(rows.every(isWhole), "equal rows of all words");
    if ("crowd" in fields) list(fields.crowd, size).map(count);
    /** The report in whose range the word lies. */
    const respond = (x, word) => rows[x].findIndex((range) => (word -= range) < 0n);
    return { rows, outputs, wordBits: fields.word_bits, respond, row: (x) => rows[x] };
  }

  const mechanisms = {
    table: (record, context) =>
      core.frame(tableResponse, ["word_bits", "rows", ...("crowd" in record ? ["crowd"] : [])])(record, context),

    /** The optimum for two symbols: the other one on the first words, the truth on the rest. */
    binary: core.frame((fields, context) => {
      const table = tableResponse(fields, context);
      const { rows, outputs } = table;
      const fits = rows.length === 2 && outputs === 2 && rows[0][1] < rows[1][1];
      expect(fits, "two symbols that flip less often than not");
      return { ...table, respond: (x, word) => (word < rows[x][1 - x] ? 1 - x : x) };
    }, ["word_bits", "rows"]),
  };

  // --- the proof by rows --------------------------------------------------------------------------------------

  /** Compare all rows; throws a `PrivacyViolation` that says where, or that they are too large to compare. */
  function checkRows(mechanism, context) {
    const { size, sizes } = context;
    requireAffordable(size * mechanism.outputs <= MOST_ENTRIES);
    const rows = Array.from({ length: size }, (_, x) => mechanism.row(x));
    (sizes ? checkGroups : checkPairs)(rows, context);
  }

  /**
   * Groups need no pairs. For every report, the most that a member sends must be within e^ε of the least that a member
   * sends (ε inside), and of the least that anybody outside sends (ε outward). Linear, and exact.
   */
  function checkGroups(rows, { classOf, sizes, inside, outward }) {
    const isWithin = inside.map(oddsOf);
    const isWithinOutside = outward.map(oddsOf);
    rows[0].forEach((_, y) => {
      const [most, least] = extremesOf(rows, y, classOf);
      const lowest = leastOf(rows, y, least);
      const lowestElsewhere = leastOf(rows, y, least, classOf(lowest));
      sizes.forEach((_, g) => {
        requireWithin(isWithin[g], rows, most[g], least[g], y);
        const outside = g === classOf(lowest) ? lowestElsewhere : lowest;
        if (outside >= 0) requireWithin(isWithinOutside[g], rows, most[g], outside, y);
      });
    });
  }

  /** By group, the symbols that send a report most often and least often. */
  function extremesOf(rows, y, classOf) {
    const most = [];
    const least = [];
    rows.forEach((row, x) => {
      const g = classOf(x);
      if (!(row[y] <= rows[most[g]]?.[y])) most[g] = x;
      if (!(row[y] >= rows[least[g]]?.[y])) least[g] = x;
    });
    return [most, least];
  }

  /** From one symbol per group, pick the one that sends a report least often, leaving one group out; −1 without any. */
  function leastOf(rows, y, symbols, leftOut) {
    return symbols.reduce((best, x, g) => {
      return g !== leftOut && !(rows[x][y] >= rows[best]?.[y]) ? x : best;
    }, -1);
  }

  function requireWithin(within, rows, x, x2, output) {
    if (!within(rows[x][output], rows[x2][output])) throw violationAt({ x, x2, output });
  }

  /**
   * Any context: pairs of distinct rows, each under the least ε between their symbols. Numbers are replaced by their
   * ranks, and pairs of one ε are looked at together, so that most comparisons are of small integers.
   */
  function checkPairs(rows, context) {
    const { size } = context;
    requireAffordable(size <= LARGEST_MATRIX);
    const { numbers, distinct, symbolsOf } = rankRows(rows);
    requireAffordable(distinct.length ** 2 * rows[0].length <= MOST_COMPARISONS);
    for (const [epsilon, pairs] of pairsByEpsilon(symbolsOf, context)) {
      const reach = reachOf(numbers, oddsOf(epsilon));
      for (const [i, j] of pairs) {
        const row = distinct[i];
        const row2 = distinct[j];
        const output = row.findIndex((rank, y) => rank > row2[y] && rank > reach(row2[y]));
        if (output >= 0) throw violationAt(placeOf(symbolsOf[i], symbolsOf[j], epsilon, context, output));
      }
    }
  }

  /** Sort all numbers, and rank the rows by them. Returns the numbers, the distinct rows, and the symbols of each row. */
  function rankRows(rows) {
    const numbers = [...new Set(rows.flatMap((row) => [...new Set(row)]))].sort((a, b) => (a < b ? -1 : 1));
    const rankOf = new Map(numbers.map((number, rank) => [number, rank]));
    const byName = new Map();
    rows.forEach((row, x) => {
      const ranks = Uint32Array.from(row, (number) => rankOf.get(number));
      const name = ranks.join();
      if (!byName.has(name)) byName.set(name, { ranks, symbols: [] });
      byName.get(name).symbols.push(x);
    });
    const all = [...byName.values()];
    return { numbers, distinct: all.map(({ ranks }) => ranks), symbolsOf: all.map(({ symbols }) => symbols) };
  }

  /** Pairs of distinct rows by the least ε that their symbols owe each other; equal rows owe nothing. */
  function pairsByEpsilon(symbolsOf, { epsilon }) {
    const byEpsilon = new Map();
    symbolsOf.forEach((symbols, i) => {
      symbolsOf.forEach((symbols2, j) => {
        if (i === j) return;
        let least = Infinity;
        for (const x of symbols) {
          for (const x2 of symbols2) {
            const promised = epsilon(x, x2);
            if (promised !== least && !atMost(least, promised)) least = promised;
          }
        }
        if (least === Infinity) return;
        if (!byEpsilon.has(least)) byEpsilon.set(least, []);
        byEpsilon.get(least).push([i, j]);
      });
    });
    return byEpsilon;
  }

  /** A function from a number's rank to that of the largest number within e^ε of it. */
  function reachOf(numbers, within) {
    const known = new Map();
    return (rank) => {
      if (!known.has(rank)) {
        let low = rank;
        let high = numbers.length - 1;
        while (low < high) {
          const middle = (low + high + 1) >> 1;
          if (within(numbers[middle], numbers[rank])) low = middle;
          else high = middle - 1;
        }
        known.set(rank, low);
      }
      return known.get(rank);
    };
  }

  function placeOf(symbols, symbols2, least, { epsilon }, output) {
    for (const x of symbols) for (const x2 of symbols2) if (epsilon(x, x2) === least) return { x, x2, output };
  }

  function requireAffordable(isAffordable) {
    if (!isAffordable)
      throw new core.PrivacyViolation(
        "the odds of codes do not prove the promise, and the rows are too large to compare; the survey is refused",
      );
  }

  function violationAt(where) {
    return new core.PrivacyViolation(
      "the survey breaks its promise: a report would say more than the context allows",
      where,
    );
  }

  return { contexts, mechanisms, checkRows };
};
