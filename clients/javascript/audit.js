#!/usr/bin/env node
/**
 * This client as an audit asks it: a symbol per line of stdin, a report of it per line of stdout.
 *
 *     sfumato audit lunch.json -- node clients/javascript/audit.js lunch.json
 *
 * The survey is a resolved one. Every report has fresh randomness and is forgotten, as `survey.privatize` makes it.
 */
import { readFile } from "node:fs/promises";
import { Survey } from "./src/index.js";

const survey = await Survey.of(await readFile(process.argv[2]));

/** A value that somebody with this symbol has: its label, or a corner of its cell. */
function valueOf(symbol) {
  const label = survey.label(symbol);
  const corner = String(label).split(",").map(Number);
  return symbolOf(label) === symbol ? label : corner;
}

function symbolOf(value) {
  try {
    return survey.symbol(value);
  } catch {
    return -1; // no value of this domain
  }
}

const values = new Map();
function reportOf(line) {
  const symbol = Number(line);
  if (!values.has(symbol)) values.set(symbol, valueOf(symbol));
  return `${survey.privatize(values.get(symbol))}\n`;
}

let rest = "";
for await (const read of process.stdin.setEncoding("utf8")) {
  const lines = (rest + read).split("\n");
  rest = lines.pop();
  process.stdout.write(lines.map(reportOf).join(""));
}
