#!/usr/bin/env node
/**
 * This client as the conformance kit speaks to one: a JSON request per line of stdin, a JSON answer per line of stdout.
 *
 *     sfumato conformance -- node clients/javascript/conformance.js
 *
 * The protocol is on the page docs/client-spec.md. `answerer()` serves the tests, too.
 */
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { toJson } from "./src/batch.js";
import { canonicalText, unhex } from "./src/canonical.js";
import { InvalidSurvey, SfumatoError, Survey } from "./src/index.js";
import { parseBudget, charge, requireConsent, entryOf, totalCost, withCosts } from "./src/ledger.js";
import { batchId, deriveWords, tokenOf } from "./src/memory.js";
import { periodOf } from "./src/period.js";

/** A function from a request to its answer. It remembers the surveys that were loaded; `loaded` may look at each. */
export function answerer(loaded = () => {}) {
  const surveys = new Map();
  const known = (request) => {
    if (!surveys.has(request.survey)) throw new InvalidSurvey("load the survey first.");
    return surveys.get(request.survey);
  };
  return async (request) => {
    try {
      if (request.op !== "load") return { ok: await OPERATIONS[request.op](request, known) };
      const survey = await Survey.of(request.text, { fingerprint: request.fingerprint });
      surveys.set(survey.fingerprint, survey);
      loaded(survey);
      const { inputs, outputs, words, wordBits } = survey.mechanism;
      return { ok: { fingerprint: survey.fingerprint, inputs, outputs, words, word_bits: wordBits } };
    } catch (problem) {
      if (!(problem instanceof SfumatoError)) throw problem;
      return { error: problem.name, reason: problem.message };
    }
  };
}

const OPERATIONS = {
  symbol: (request, known) => ({ symbol: known(request).symbol(request.value) }),

  reports(request, known) {
    const survey = known(request);
    return { reports: request.symbols.map((symbol, i) => survey.reportFrom(symbol, wordsOfHex(request.words[i]))) };
  },

  enumerate(request, known) {
    const { mechanism } = known(request);
    const total = 2 ** mechanism.wordBits;
    const reports = new Uint32Array(total ** mechanism.words);
    for (let i = 0; i < reports.length; i++) {
      const [first, second] = mechanism.words === 2 ? [Math.floor(i / total), i % total] : [i, 0];
      reports[i] = mechanism.respond(request.symbol, BigInt(first), BigInt(second));
    }
    const counts = Array(mechanism.outputs).fill(0);
    const bytes = new DataView(new ArrayBuffer(4 * reports.length));
    reports.forEach((report, i) => (counts[report]++, bytes.setUint32(4 * i, report, true)));
    return { counts, sha256: sha256(bytes) };
  },

  canonical({ text }) {
    let data;
    try {
      data = JSON.parse(text);
    } catch {
      throw new InvalidSurvey("this is no JSON.");
    }
    const canonical = canonicalText(data);
    return { text: canonical, sha256: sha256(canonical) };
  },

  async remembered(request, known) {
    const survey = known(request);
    const words = await deriveWords(unhex(request.secret), survey.fingerprint, request.symbol);
    return { words: hexOfWords(words), report: survey.reportFrom(request.symbol, words) };
  },

  async token(request, known) {
    return { token: await tokenOf(unhex(request.secret), known(request).fingerprint, request.symbol) };
  },

  async batch_id(request, known) {
    const survey = known(request);
    const period = periodOf(survey.repeat, request.time);
    return { batch: await batchId(unhex(request.secret), survey.fingerprint, period), period: period || null };
  },

  charge(request, known) {
    const survey = known(request);
    requireConsent(survey, request.allow_clear);
    const entry = entryOf(survey, request.secret);
    const entries = charge(withCosts(request.entries), entry, parseBudget(request.budget));
    const { p, q } = totalCost(entries);
    return { spent: q === 1n ? `${p}` : `${p}/${q}`, entries: entries.length };
  },

  batch: (request, known) => ({ body: toJson(request.batch, known(request), request.reports, request.period) }),
};

const wordsOfHex = (digits) => [0, 16].map((at) => BigInt(`0x${digits.slice(at, at + 16)}`));
const hexOfWords = (words) => words.map((word) => word.toString(16).padStart(16, "0")).join("");
const sha256 = (content) => createHash("sha256").update(content).digest("hex");

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const answer = answerer();
  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line)))}\n`);
  }
}
