/** Channels that are written out: `rows[x][y]` of the 2^wordBits words send report y for symbol x. */
import { wordsOf } from "./codes.js";
import { count, demand, list } from "./fields.js";

/** Any channel that is small enough to be written out. */
export function tableResponse(fields, { size }) {
  const rows = list(fields.rows, size).map((row) => list(row).map(count));
  const outputs = rows[0].length;
  const words = wordsOf(fields.word_bits);
  const isWhole = (row) => row.length === outputs && row.reduce((sum, more) => sum + more) === words;
  demand(rows.every(isWhole), "equal rows of all words");
  if ("crowd" in fields) list(fields.crowd, size).map(count);
  /** The report in whose range the word lies. */
  const respond = (x, word) => rows[x].findIndex((range) => (word -= range) < 0n);
  return { rows, outputs, wordBits: fields.word_bits, respond, row: (x) => rows[x] };
}

/** The optimum for two symbols: the other one on the first words, the truth on the rest. */
export function binaryResponse(fields, context) {
  const table = tableResponse(fields, context);
  const { rows, outputs } = table;
  demand(rows.length === 2 && outputs === 2 && rows[0][1] < rows[1][1], "two symbols that flip less often than not");
  return { ...table, respond: (x, word) => (word < rows[x][1 - x] ? 1 - x : x) };
}
