/**
 * The client of one device: it charges the ledger, derives the report, remembers it and sends it.
 *
 * In this order: the survey's whole cost is in the ledger before the value is read; the report is stored before it leaves
 * (both as durably as the store allows); and it is counted once, however often it must be sent. Whether something is
 * sent, and where to, does not depend on the value. The exception is a value outside the domain.
 */
import { batchBody } from "./batch.js";
import { Device, pageStore } from "./device.js";
import { InvalidSymbols, NotDelivered } from "./errors.js";
import { refuseUnknown } from "./fields.js";
import { parseBudget, charge, DEFAULT_BUDGET, requireConsent, entryOf, roundedUp, totalOf } from "./ledger.js";
import { batchId, rememberedWords, tokenOf } from "./memory.js";
import { periodOf } from "./period.js";
import { batchAddress, deliver, postRequest } from "./http.js";

const PATIENCE = 10_000; // milliseconds to keep retrying
const NO_ANSWER = { last: null, tokens: [], waiting: [] };

export class Client {
  #survey;
  #address;
  #device;
  #budget;
  #allowClear;
  #clock;
  #transport;

  /**
   * `store`: get, set and delete text by key, at once or by promises. A `Map` will do for a process that may forget;
   * repeated surveys also need `persist()`. `budget`: the most that all surveys of this device may spend together, null
   * for no limit. `allowClear`: the person was shown what is sent unprotected. `fetch`, `clock`, `sleep` and `now` are
   * for tests.
   */
  constructor(survey, options = {}) {
    const {
      url,
      store = pageStore,
      budget = DEFAULT_BUDGET,
      allowClear = false,
      patience = PATIENCE,
      clock = Date.now,
      fetch = (...request) => globalThis.fetch(...request),
      sleep = pause,
      now = run,
      ...unknown
    } = options;
    refuseUnknown(unknown);
    this.#survey = survey;
    this.#address = batchAddress(url, survey.fingerprint);
    this.#device = new Device(store);
    this.#budget = parseBudget(budget);
    if (typeof allowClear !== "boolean") throw new InvalidSymbols("allowClear must be true or false");
    this.#allowClear = allowClear;
    this.#clock = clock;
    this.#transport = { fetch, sleep, now, patience };
    // Retry what waits from an earlier load. If that fails it goes on waiting, and answer() says so.
    const resume = () => this.flush().catch(() => {});
    this.resumed = resume();
    globalThis.addEventListener?.("online", resume);
  }

  /** What this device has given away so far, over all surveys, rounded up. */
  async spent() {
    return roundedUp(totalOf(await this.#device.entries()));
  }

  /** Answer with a value. Says whether the aggregator has counted it; else it waits, and is sent again by itself. */
  async answer(value) {
    const { batch } = await this.#answer(value);
    const { last, waiting, problem } = await this.#delivered();
    if (problem && !(problem instanceof NotDelivered)) throw problem;
    // Without a last answer, the device was asked to forget meanwhile.
    const delivered = !!last && !waiting.some((held) => held.batch === batch);
    return { survey: this.#survey.fingerprint, batch, delivered, waiting: waiting.length };
  }

  /**
   * The answer's request, made ahead and not yet sent. This is the answer: it is sent at a later load even if
   * `beacon()` is never called. `beacon()` sends it as a page goes away, without looking back: the answer goes on
   * waiting until a later load hears that it was counted.
   */
  async prepare(value) {
    const answer = await this.#answer(value);
    const { body } = this.#request(answer);
    return { address: this.#address, batch: answer.batch, body, beacon: () => this.#beacon(body) };
  }

  /** Send what waits, oldest first; `NotDelivered` if something must go on waiting. */
  async flush() {
    const { problem } = await this.#delivered();
    if (problem) throw problem;
  }

  /** Delete the device's secret and its memory of all answers; the ledger stays, and answering again costs again. */
  async forget() {
    await this.#device.locked(() => this.#device.forget());
  }

  // --- from value to report -------------------------------------------------------------------------------------

  async #answer(value) {
    requireConsent(this.#survey, this.#allowClear);
    // A device that may forget would answer a repeated survey under one secret after another.
    if (this.#survey.repeat !== "once") await this.#device.requirePersistence();
    return this.#device.locked(() => this.#answered(value));
  }

  /** The answer that stands for now, made from the value if it is the first. */
  async #answered(value) {
    const { secret, book: before } = await this.#device.open();
    const book = await this.#charged(before);
    const { fingerprint, repeat } = this.#survey;
    const period = periodOf(repeat, this.#clock());
    const log = this.#log(book);
    // An answer for a later period stands, too: clocks can be set back.
    if (log.last && period <= log.last.period) return log.last;
    const { report, tokens } = await this.#report(secret, log, value);
    const answer = { period, batch: await batchId(secret, fingerprint, period), report };
    await this.#keep(book, { last: answer, tokens, waiting: [...log.waiting, answer] });
    return answer;
  }

  /** The book, once the survey's whole cost is in the ledger. */
  async #charged(book) {
    const entries = charge(book.entries, entryOf(this.#survey, book.secret), this.#budget);
    if (entries.length > book.entries.length) await this.#device.keep({ ...book, entries });
    return { ...book, entries };
  }

  /** The report of a new period, and the tokens of all values so far: at most `distinct` values are ever sent. */
  async #report(secret, { last, tokens }, value) {
    if (this.#distinct === 1 && last) return { report: last.report, tokens };
    const { fingerprint } = this.#survey;
    const full = tokens.length === this.#distinct;
    // Once `distinct` values were sent, an unknown one counts as new: symbol −1, which has no token.
    const symbol = full ? this.#survey.context.domain.find(value) : this.#survey.symbol(value);
    if (this.#distinct > 1) {
      const token = await tokenOf(secret, fingerprint, symbol);
      const isNew = !tokens.includes(token);
      if (isNew && full) return { report: last.report, tokens };
      tokens = isNew ? [...tokens, token] : tokens;
    }
    return { report: this.#survey.reportFrom(symbol, await rememberedWords(secret, fingerprint, symbol)), tokens };
  }

  get #distinct() {
    return this.#survey.repeat.distinct ?? 1; // "once" has none
  }

  #log(book) {
    return book?.diaries[this.#survey.fingerprint] ?? NO_ANSWER;
  }

  async #keep(book, log) {
    await this.#device.keep({ ...book, diaries: { ...book.diaries, [this.#survey.fingerprint]: log } });
  }

  // --- sending --------------------------------------------------------------------------------------------------

  #request({ batch, report }) {
    const survey = this.#survey.fingerprint;
    return { batch, survey, body: batchBody(batch, survey, [report]) };
  }

  /**
   * Send one after another. The device is not locked meanwhile: what two tabs send is counted once, and what waits is
   * read again each time, because the device may have forgotten. Returns the log, and what went wrong.
   */
  async #delivered() {
    for (let sent; ; ) {
      const log = await this.#device.locked(() => this.#without(sent));
      const [first] = log.waiting;
      if (!first) return log;
      try {
        await deliver(this.#address, this.#request(first), this.#transport);
      } catch (problem) {
        return { ...log, problem };
      }
      sent = first.batch;
    }
  }

  /** The log, without a batch that was counted among those that wait. */
  async #without(sent) {
    const device = await this.#device.existing();
    const log = this.#log(device?.book);
    const waiting = log.waiting.filter(({ batch }) => batch !== sent);
    if (waiting.length < log.waiting.length) await this.#keep(device.book, { ...log, waiting });
    return { ...log, waiting };
  }

  #beacon(body) {
    // A beacon carries cookies, so it is for browsers whose fetch does not outlive the page.
    const outlives = "keepalive" in (globalThis.Request?.prototype ?? {});
    const { navigator, Blob } = globalThis;
    if (!outlives && navigator?.sendBeacon)
      return navigator.sendBeacon(this.#address, new Blob([body], { type: "application/json" }));
    this.#transport.fetch(this.#address, postRequest(body)).catch(() => {});
    return true;
  }
}

const run = () => performance.now(); // a clock that is never set back
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
