/**
 * A survey: one question for many people, as the resolved JSON that its author published.
 *
 * Its fingerprint names the promise. Pin the fingerprint that you reviewed: one from the server that serves the survey
 * proves nothing.
 */
import { canonicalText, hex, utf8 } from "./canonical.js";
import { checkPromise } from "./check.js";
import { contextOf, requireSize, sameRecord } from "./context.js";
import { disclosureOf, unprotectedLabels } from "./disclosure.js";
import { symbolOf } from "./domain.js";
import { InvalidSymbols, WrongSurvey } from "./errors.js";
import { expect, requireFields, list, refuseUnknown, section, requireInteger } from "./fields.js";
import { missingModules, requireModules } from "./kinds.js";
import { mechanismOf, reportOf } from "./mechanism.js";
import { fetchBytes, surveyAddress } from "./http.js";
import { freshWords, sha256 } from "./words.js";

const PROMISE = ["format", "name", "context", "mechanism", "mechanism_context", "repeat"];
// What a survey of format 2 has besides: the fields of features that this version lacks, which must ask for nothing.
const NEUTRAL =
  '[{"cap":null,"cohorts":1,"collection":"plain","invitations":null,"learn":null,"public":[]},{"missing":null},[],{}]';
const ABOUT = ["title", "text", "contact", "minimum_reports", "opens", "closes"];
const PERIODS = ["day", "week", "month", "year"];
const MAX_ROW = 2 ** 20;

export class Survey {
  #pool = []; // fresh words that are not used yet

  /** Use `Survey.load` or `Survey.of` instead: they check their arguments. */
  constructor(promise, about, context, mechanism, fingerprint, checked) {
    const { minimum_reports, texts, uploads, ...shown } = about;
    const { name, repeat, format: edition } = promise;
    const { size, entries } = context;
    const { outputs } = mechanism;
    const title = about.title || name;
    Object.assign(this, shown, { title, name, repeat, edition, fingerprint, context, mechanism, size, outputs, checked });
    this.leavesOpen = entries.includes(Infinity);
    context.domain.edition = edition; // grids read the edges of the globe by it
    Object.freeze(this);
  }

  /** Fetch a survey from an aggregator. */
  static async load(url, { fingerprint, fetch = globalThis.fetch, ...unknown } = {}) {
    refuseUnknown(unknown);
    if (!/^[0-9a-f]{64}$/.test(fingerprint)) throw new WrongSurvey("pin the fingerprint, 64 hexadecimal digits");
    const resolved = await fetchBytes(surveyAddress(url, fingerprint), fetch);
    return Survey.of(resolved, { fingerprint });
  }

  /**
   * Read a survey from its resolved text or bytes. With a fingerprint, accept that survey only.
   *
   * Compare the fingerprint before building anything: until then the text is untrusted.
   */
  static async of(resolved, options = {}) {
    const { fingerprint, ...unknown } = options;
    refuseUnknown(unknown);
    const { data, text, missing } = section("survey", () => parse(resolved));
    const own = hex(await sha256(utf8(text)));
    // A fingerprint that is undefined or null by mistake matches no survey.
    if ("fingerprint" in options && own !== fingerprint)
      throw new WrongSurvey(`survey ${own} is not the pinned one`);
    await requireModules(missing);
    const { context, mechanism } = section("survey", () => build(data));
    const checked = await checkPromise(mechanism, context);
    return new Survey(data.promise, data.about, context, mechanism, own, checked);
  }

  /** Count the symbols that are sent as they are, and list the labels of the first ones. */
  unprotected(limit) {
    return unprotectedLabels(this, limit);
  }

  /** What is sent unprotected, in English, to show people before they answer; "" if nothing is. */
  get disclosure() {
    return disclosureOf(this);
  }

  /** Return the symbol of a value; `UnknownValue` if it is outside the domain. */
  symbol(value) {
    return symbolOf(this.context.domain, value);
  }

  /** Return the label of a symbol. */
  label(symbol) {
    return this.context.domain.label(this.requireSymbol(symbol));
  }

  /** Return a report with fresh randomness. It is not stored: two reports about one value cost twice. */
  privatize(value) {
    const symbol = this.symbol(value);
    // Draw many at a time: asking the platform costs more than everything else.
    if (!this.#pool.length) this.#pool = [...freshWords(256)];
    return reportOf(this.mechanism, symbol, this.#pool.pop(), this.#pool.pop());
  }

  /** Return the report of a symbol for two words of 64 bits (BigInts): a pure function. */
  reportFrom(symbol, [word, word2]) {
    return reportOf(this.mechanism, this.requireSymbol(symbol), word, word2);
  }

  /** Return the probability of each report for a symbol. */
  probabilities(symbol) {
    if (this.outputs > MAX_ROW) throw new InvalidSymbols(`rows have at most ${MAX_ROW} reports`);
    const { wordBits, words } = this.mechanism;
    return this.mechanism.row(this.requireSymbol(symbol)).map((count) => Number(count) / 2 ** (wordBits * words));
  }

  requireSymbol(symbol) {
    const isSymbol = Number.isInteger(symbol) && symbol >= 0 && symbol < this.size;
    if (!isSymbol) throw new InvalidSymbols(`a symbol must be a non-negative integer below ${this.size}`);
    return symbol;
  }
}

/** Decode bytes; invalid UTF-8 and a byte-order mark are not canonical. */
const decode = (bytes) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);

/** Parse canonical JSON. Returns the data, the text of the promise, and the missing modules that it needs. */
function parse(resolved) {
  const text = (typeof resolved === "string" ? resolved : decode(resolved)).replace(/\n$/, "");
  const data = JSON.parse(text);
  expect(canonicalText(data) === text, "the canonical form");
  const promise = data?.promise;
  expect(Object(promise) === promise, "a promise");
  const { context } = promise.questions?.[0] ?? promise;
  const missing = missingModules(context, promise.mechanism, promise.mechanism_context);
  return { data, text: canonicalText(promise), missing };
}

function build(data) {
  const promise = promiseOf(requireFields(data, "promise", "about"));
  section("about", () => requireAbout(data.about));
  requireName(promise.name);
  requireRepeat(promise.repeat);
  const { context: own, mechanism_context: other } = promise;
  const context = section("context", () => read(own));
  const isConsistent = other === null || (sameRecord(other.domain, own.domain) && !sameRecord(other, own));
  expect(isConsistent, "no mechanism_context, or another one over this domain");
  const mechanism = section("mechanism", () => {
    requireCodes(promise.mechanism, context.size);
    return mechanismOf(promise.mechanism, other === null ? context : read(other));
  });
  return { context, mechanism };
}

/** Check the fields of a survey of either format, and return its promise with the context of its only question. */
function promiseOf({ promise, about }) {
  const { format, name, mechanism, mechanism_context, repeat, questions, ...reserved } = promise;
  if (format === 1) {
    requireFields(promise, ...PROMISE);
    requireFields(about, ...ABOUT);
    return promise;
  }
  expect(format === 2, "format 1 or 2");
  const [{ name: question, context, ...item }, ...others] = questions;
  const { texts } = requireFields(about, ...ABOUT, "texts", "uploads");
  expect(canonicalText([reserved, item, others, texts]) === NEUTRAL, "fields of this version");
  requireName(question);
  return { ...promise, context };
}

function read(record) {
  requireSize(record);
  return contextOf(record);
}

/** Refuse short records that would fill the memory: our codes have fewer than 64 outputs per symbol. */
function requireCodes({ codes = [], parts = [] }, symbols) {
  for (const { outputs } of list(codes)) expect(!(outputs > 64 * symbols + 2 ** 16), "codes with fewer outputs");
  list(parts).forEach((part) => requireCodes(part, symbols));
}

function requireAbout(about) {
  const { minimum_reports, texts, uploads, ...shown } = about;
  expect(
    Object.values(shown).every((text) => typeof text === "string"),
    "text about the survey",
  );
  const isDate = (text) => /^(\d{4}|$)/.test(text); // shown to people; only the aggregator parses it
  expect(isDate(about.opens) && isDate(about.closes), "dates, the year first");
  requireInteger(minimum_reports, 0, 2 ** 53 - 1);
  requireInteger(uploads ?? 1, 1, 2 ** 16);
}

function requireName(name) {
  const isName = /^(?! |.* $)([^\p{C}\p{Z}]| ){1,100}$/u; // no control or invisible characters, only spaces
  expect(typeof name === "string" && isName.test(name), "a name: one line of at most 100 characters");
}

function requireRepeat(repeat) {
  if (repeat === "once") return;
  const { every, distinct } = requireFields(repeat, "every", "distinct");
  expect(PERIODS.includes(every), `repeat every ${PERIODS}`);
  requireInteger(distinct, 1, 10_000);
}
