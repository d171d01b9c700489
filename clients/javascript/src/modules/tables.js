/**
 * Promises and channels that are written out: contexts of kind matrix and metric, mechanisms of kind table and binary,
 * and the proof by rows, for every mechanism without a proof by odds.
 */
/** The kinds of records that this module reads. */
export const kinds = ["binary", "matrix", "metric", "table"];

export default (core) => {
  const { atMost, contextFields, parseCount, expect, exactNumber, list } = core;
  const { reduceFraction, oddsOf, positiveEpsilon, wordsOf } = core;
  const MAX_MATRIX = 4096;
  const MAX_ENTRIES = 2 ** 22; // all rows together
  const MAX_COMPARISONS = 2 ** 28; // between ranks, pair by pair

  // --- contexts -----------------------------------------------------------------------------------------------

  /** A context with E written out. Equal numbers are one object. */
  function matrixContext(domain, E) {
    const entries = new Set();
    E.forEach((row, x) => row.forEach((epsilon, x2) => x === x2 || entries.add(epsilon)));
    const isOpen = (x) => E[x].every((epsilon, x2) => x === x2 || epsilon === Infinity);
    const isInfinite = (epsilon) => epsilon === Infinity;
    const isMixed = (row, x) => new Set(row.filter((_, x2) => x2 !== x).map(isInfinite)).size > 1;
    return { domain, E, epsilon: (x, x2) => E[x][x2], entries: [...entries], isOpen, partlyOpen: E.some(isMixed) };
  }

  const contexts = {
    metric(record) {
      const [{ epsilon, distances }, domain] = contextFields(record, "epsilon", "distances");
      const rate = positiveEpsilon(epsilon);
      const E = squareOf(distances, domain.size, (text) => product(rate, exactNumber(text)));
      const isSymmetric = distances.every((row, x) => row.every((text, x2) => text === distances[x2][x]));
      expect(isSymmetric, "symmetric distances");
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

  /** Return `a · b` for positive a; infinity times 0 is 0. */
  function product(a, b) {
    if (b.p === 0n) return b;
    return a === Infinity || b === Infinity ? Infinity : reduceFraction(a.p * b.p, a.q * b.q);
  }

  /** Read a square of numbers with zeros on the diagonal. Read each text once. */
  function squareOf(rows, size, read) {
    expect(size <= MAX_MATRIX, `at most ${MAX_MATRIX} symbols`);
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

  /** Any channel that is small enough to be written out: for symbol x, `rows[x][y]` of all words give report y. */
  function tableResponse(fields, { size }) {
    const rows = list(fields.rows, size).map((row) => list(row).map(parseCount));
    const outputs = rows[0].length;
    const words = wordsOf(fields.word_bits);
    const isComplete = (row) => row.length === outputs && row.reduce((sum, more) => sum + more) === words;
    expect(rows.every(isComplete), "rows of equal length that use all words");
    if ("crowd" in fields) list(fields.crowd, size).map(parseCount);
    /** Return the report whose range contains the word. */
    const respond = (x, word) => rows[x].findIndex((range) => (word -= range) < 0n);
    return { rows, outputs, wordBits: fields.word_bits, respond, row: (x) => rows[x] };
  }

  const mechanisms = {
    table: (record, context) =>
      core.frame(tableResponse, ["word_bits", "rows", ...("crowd" in record ? ["crowd"] : [])])(record, context),

    /** The optimum for two symbols: the first words give the other symbol, the rest the truth. */
    binary: core.frame((fields, context) => {
      const table = tableResponse(fields, context);
      const { rows, outputs } = table;
      const fits = rows.length === 2 && outputs === 2 && rows[0][1] < rows[1][1];
      expect(fits, "two symbols that flip less often than not");
      return { ...table, respond: (x, word) => (word < rows[x][1 - x] ? 1 - x : x) };
    }, ["word_bits", "rows"]),
  };

  // --- the proof by rows --------------------------------------------------------------------------------------

  /** Compare all rows; `PrivacyViolation` says where they differ too much, or that they are too large to compare. */
  function checkRows(mechanism, context) {
    const { size, sizes } = context;
    requireAffordable(size * mechanism.outputs <= MAX_ENTRIES);
    const rows = Array.from({ length: size }, (_, x) => mechanism.row(x));
    (sizes ? checkGroups : checkPairs)(rows, context);
  }

  /**
   * Check groups without comparing pairs. For every report, the most that a member sends must be within e^ε of the
   * least that a member sends (ε inside), and of the least that any symbol outside sends (ε outward). It is exact.
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

  /** Return, for each group, the symbols that send a report most often and least often. */
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

  /** From one symbol per group, pick the one that sends a report least often, except one group; −1 if there is none. */
  function leastOf(rows, y, symbols, exceptGroup) {
    return symbols.reduce((best, x, g) => {
      return g !== exceptGroup && !(rows[x][y] >= rows[best]?.[y]) ? x : best;
    }, -1);
  }

  function requireWithin(within, rows, x, x2, output) {
    if (!within(rows[x][output], rows[x2][output])) throw violationAt({ x, x2, output });
  }

  /**
   * Check any context: compare pairs of distinct rows, each under the least ε between their symbols. Replace numbers by
   * their ranks, and treat all pairs of one ε together, so that most comparisons are between small integers.
   */
  function checkPairs(rows, context) {
    const { size } = context;
    requireAffordable(size <= MAX_MATRIX);
    const { numbers, distinct, symbolsOf } = rankRows(rows);
    requireAffordable(distinct.length ** 2 * rows[0].length <= MAX_COMPARISONS);
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

  /** Sort all numbers, and rank the rows by them. Returns the numbers, distinct rows, and the symbols of each row. */
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

  /** Return the pairs of distinct rows by the least ε between their symbols. Equal rows need no check. */
  function pairsByEpsilon(symbolsOf, { epsilon }) {
    const byEpsilon = new Map();
    symbolsOf.forEach((symbols, i) => {
      symbolsOf.forEach((symbols2, j) => {
        if (i === j) return;
        let least = Infinity;
        for (const x of symbols) {
          for (const x2 of symbols2) {
            const entry = epsilon(x, x2);
            if (entry !== least && !atMost(least, entry)) least = entry;
          }
        }
        if (least === Infinity) return;
        if (!byEpsilon.has(least)) byEpsilon.set(least, []);
        byEpsilon.get(least).push([i, j]);
      });
    });
    return byEpsilon;
  }

  /** Return a function from a number's rank to the rank of the largest number within e^ε of it. */
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
