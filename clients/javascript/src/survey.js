/**
 * A survey: one question put to many people, as the resolved JSON that the author published.
 *
 * Its fingerprint names the promise. Pin the fingerprint that you reviewed: a hash from the
 * server that serves the survey would prove nothing.
 */
import { canonicalText, hex, utf8 } from "./canonical.js";
import { checkPromise } from "./check.js";
import { contextOf, requireSize, sameRecord } from "./context.js";
import { disclosureOf, unprotectedLabels } from "./disclosure.js";
import { symbolOf } from "./domain.js";
import { InvalidSymbols, WrongSurvey } from "./errors.js";
import { expect, fieldsOf, list, refuseUnknown, section, wholeNumber } from "./fields.js";
import { missingFor, needAll } from "./kinds.js";
import { mechanismOf, reportOf } from "./mechanism.js";
import { fetchBytes, surveyAddress } from "./http.js";
import { freshWords, sha256 } from "./words.js";

const FORMAT = 1;
const PROMISE = ["format", "name", "context", "mechanism", "mechanism_context", "repeat"];
const ABOUT = ["title", "text", "contact", "minimum_reports", "opens", "closes"];
const PERIODS = ["day", "week", "month", "year"];
const LARGEST_ROW = 2 ** 20;

export class Survey {
  #pool = []; // words that were drawn and not used yet

  /** Use `Survey.load` or `Survey.of`, which check what they are given. */
  constructor(promise, about, context, mechanism, fingerprint, checked) {
    const { minimum_reports, ...texts } = about;
    const { name, repeat } = promise;
    const { size, entries } = context;
    const { outputs } = mechanism;
    const leavesOpen = entries.includes(Infinity);
    Object.assign(this, texts, { title: about.title || name, name, repeat, fingerprint, context, mechanism });
    Object.assign(this, { size, outputs, checked, leavesOpen });
    Object.freeze(this);
  }

  /** Fetch a survey from an aggregator, in full, before any value is read. */
  static async load(url, { fingerprint, fetch = globalThis.fetch, ...unknown } = {}) {
    refuseUnknown(unknown);
    if (!/^[0-9a-f]{64}$/.test(fingerprint)) throw new WrongSurvey("pin the fingerprint, 64 hexadecimal digits");
    const answer = await fetchBytes(surveyAddress(url, fingerprint), fetch);
    return Survey.of(answer, { fingerprint });
  }

  /**
   * The survey of a resolved text or its bytes; with a fingerprint, that survey and no other.
   *
   * The pin comes before anything is built: until then the text is untrusted.
   */
  static async of(resolved, options = {}) {
    const { fingerprint, ...unknown } = options;
    refuseUnknown(unknown);
    const { data, text, missing } = section("survey", () => parse(resolved));
    const own = hex(await sha256(utf8(text)));
    // A pin that is undefined or null by mistake pins no survey that exists.
    if ("fingerprint" in options && own !== fingerprint)
      throw new WrongSurvey(`survey ${own} is not the one that was pinned`);
    await needAll(missing);
    const { context, mechanism } = section("survey", () => build(data));
    const checked = await checkPromise(mechanism, context);
    return new Survey(data.promise, data.about, context, mechanism, own, checked);
  }

  /** The symbols that are sent as they are: their number, and the labels of the first ones. */
  unprotected(limit) {
    return unprotectedLabels(this, limit);
  }

  /** What to show people before they answer: what is sent unprotected, in English; "" where nothing is. */
  get disclosure() {
    return disclosureOf(this);
  }

  /** The symbol of a value; throws `UnknownValue` outside the domain. */
  symbol(value) {
    return symbolOf(this.context.domain, value);
  }

  /** The label of a symbol. */
  label(symbol) {
    return this.context.domain.label(this.requireSymbol(symbol));
  }

  /** A report with fresh randomness. It is forgotten: two reports about one value cost twice. */
  privatize(value) {
    const symbol = this.symbol(value);
    // Many at a time: asking the platform costs more than all the rest.
    if (!this.#pool.length) this.#pool = [...freshWords(256)];
    return reportOf(this.mechanism, symbol, this.#pool.pop(), this.#pool.pop());
  }

  /** The report of a symbol for two given words of 64 bits, BigInts: a pure function. */
  reportFrom(symbol, [word, word2]) {
    return reportOf(this.mechanism, this.requireSymbol(symbol), word, word2);
  }

  /** With which probability a symbol sends each report. */
  probabilities(symbol) {
    if (this.outputs > LARGEST_ROW) throw new InvalidSymbols(`rows have at most ${LARGEST_ROW} reports`);
    const { wordBits, words } = this.mechanism;
    return this.mechanism.row(this.requireSymbol(symbol)).map((count) => Number(count) / 2 ** (wordBits * words));
  }

  requireSymbol(symbol) {
    const known = Number.isInteger(symbol) && symbol >= 0 && symbol < this.size;
    if (!known) throw new InvalidSymbols(`a symbol is a whole number below ${this.size}`);
    return symbol;
  }
}

/** Bytes as text; what is no UTF-8, or starts with a byte-order mark, is not canonical. */
const decoded = (bytes) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);

/** Read canonical JSON. Returns it with the text of its promise, and the modules that are missing to build it. */
function parse(resolved) {
  const text = (typeof resolved === "string" ? resolved : decoded(resolved)).replace(/\n$/, "");
  const data = JSON.parse(text);
  expect(canonicalText(data) === text, "the canonical form");
  const promise = data?.promise;
  expect(Object(promise) === promise, "a promise");
  const missing = missingFor(promise.context, promise.mechanism, promise.mechanism_context);
  return { data, text: canonicalText(promise), missing };
}

function build(data) {
  const { promise, about } = fieldsOf(data, "promise", "about");
  expect(promise.format === FORMAT, `format ${FORMAT}`);
  fieldsOf(promise, ...PROMISE);
  section("about", () => requireAbout(about));
  requireName(promise.name);
  requireRepeat(promise.repeat);
  const { context: own, mechanism_context: other } = promise;
  const context = section("context", () => read(own));
  const apart = other === null || (sameRecord(other.domain, own.domain) && !sameRecord(other, own));
  expect(apart, "no mechanism_context, or another one over this domain");
  const mechanism = section("mechanism", () => {
    requireCodes(promise.mechanism, context.size);
    return mechanismOf(promise.mechanism, other === null ? context : read(other));
  });
  return { context, mechanism };
}

function read(record) {
  requireSize(record);
  return contextOf(record);
}

/** A short record must not fill the memory: no code of ours has 64 outputs for each symbol. */
function requireCodes({ codes = [], parts = [] }, symbols) {
  for (const { outputs } of list(codes)) expect(!(outputs > 64 * symbols + 2 ** 16), "codes with fewer outputs");
  list(parts).forEach((part) => requireCodes(part, symbols));
}

function requireAbout(about) {
  const { minimum_reports, ...texts } = fieldsOf(about, ...ABOUT);
  expect(
    Object.values(texts).every((text) => typeof text === "string"),
    "text about the survey",
  );
  const isDate = (text) => /^(\d{4}|$)/.test(text); // for people: the aggregator is the one that reads it
  expect(isDate(about.opens) && isDate(about.closes), "dates, the year first");
  wholeNumber(minimum_reports, 0, 2 ** 53 - 1);
}

function requireName(name) {
  const isName = /^(?! |.* $)([^\p{C}\p{Z}]| ){1,100}$/u; // no controls, nothing invisible, no white space but spaces
  expect(typeof name === "string" && isName.test(name), "a name: one line of at most 100 characters");
}

function requireRepeat(repeat) {
  if (repeat === "once") return;
  const { every, distinct } = fieldsOf(repeat, "every", "distinct");
  expect(PERIODS.includes(every), `repeat every ${PERIODS}`);
  wholeNumber(distinct, 1, 10_000);
}
