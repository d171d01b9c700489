/**
 * The client of one device: it charges the ledger, derives the report, stores it and sends it.
 *
 * The survey's full cost is in the ledger before the value is read. The report is stored before it is sent. (Both are
 * as durable as the store.) It is counted once, however often it is sent. Whether and where something is sent does not
 * depend on the value, except that a value outside the domain is not sent.
 */
import { toJson } from "./batch.js";
import { Device, pageStore } from "./device.js";
import { InvalidSymbols, NotDelivered } from "./errors.js";
import { refuseUnknown } from "./fields.js";
import { parseBudget, charge, DEFAULT_BUDGET, requireConsent, entryOf, roundUp, totalCost } from "./ledger.js";
import { batchId, deriveWords, tokenOf } from "./memory.js";
import { periodOf } from "./period.js";
import { batchAddress, deliver, postRequest } from "./http.js";

const PATIENCE = 10_000; // milliseconds to keep retrying
const NO_ANSWER = { last: null, tokens: [], waiting: [] };

export class Client {
  #survey;
  #address;
  #device;
  #limit;
  #allowClear;
  #clock;
  #transport;

  /**
   * `store`: get, set and delete text by key, directly or by promises. A `Map` is enough for a process that may forget;
   * repeated surveys also need `persist()`. `budget`: the most that all surveys of this device may spend together; null
   * for no limit. The device stores it, and a client that passes none uses the stored budget, "4" at first.
   * `allowClear`: true once the person has seen what is sent unprotected. `fetch`, `clock`, `sleep` and `now` are for
   * tests.
   */
  constructor(survey, options = {}) {
    const {
      url,
      store = pageStore,
      budget,
      allowClear = false,
      patience = PATIENCE,
      clock = Date.now,
      fetch = (...request) => globalThis.fetch(...request),
      sleep = pause,
      now = monotonic,
      ...unknown
    } = options;
    refuseUnknown(unknown);
    this.#survey = survey;
    this.#address = batchAddress(url, survey.fingerprint);
    this.#device = new Device(store);
    parseBudget(budget ?? null); // refuse a malformed budget now
    this.#limit = { budget: budget && `${budget}` };
    if (typeof allowClear !== "boolean") throw new InvalidSymbols("allowClear must be true or false");
    this.#allowClear = allowClear;
    this.#clock = clock;
    this.#transport = { fetch, sleep, now, patience };
    // Retry what waits from an earlier load. If that fails, it keeps waiting, and answer() says so.
    const resume = () => this.flush().catch(() => {});
    this.resumed = resume();
    globalThis.addEventListener?.("online", resume);
  }

  /** Return what this device has spent on all surveys so far, rounded up. */
  async spent() {
    return roundUp(totalCost(await this.#device.entries()));
  }

  /** Answer with a value. Returns whether the aggregator has counted it; if not, it waits and is sent again later. */
  async answer(value) {
    const { batch } = await this.#answer(value);
    const { last, waiting, problem } = await this.#sendWaiting();
    if (problem && !(problem instanceof NotDelivered)) throw problem;
    // Without a last answer, the device has forgotten this one.
    const delivered = !!last && !waiting.some((other) => other.batch === batch);
    return { survey: this.#survey.fingerprint, batch, delivered, waiting: waiting.length };
  }

  /**
   * Answer with a value, but do not send it yet. It is sent at a later load even if you never call `beacon()`.
   * `beacon()` sends it while the page unloads, without waiting for a receipt: the answer keeps waiting until a later
   * load gets one. `body` is null where the answer was counted and its report deleted: there is nothing left to send.
   */
  async prepare(value) {
    const answer = await this.#answer(value);
    const body = answer.report === null ? null : this.#request(answer).body;
    return { address: this.#address, batch: answer.batch, body, beacon: () => !body || this.#beacon(body) };
  }

  /** Send what waits, oldest first; `NotDelivered` if something must keep waiting. */
  async flush() {
    const { problem } = await this.#sendWaiting();
    if (problem) throw problem;
  }

  /** Delete the device's secret and its memory of all answers. The ledger stays, so answering again costs again. */
  async forget() {
    await this.#device.withLock(() => this.#device.forget());
  }

  // --- from value to report -------------------------------------------------------------------------------------

  async #answer(value) {
    requireConsent(this.#survey, this.#allowClear);
    // A device that may forget by itself would answer a repeated survey under ever new secrets.
    if (this.#survey.repeat !== "once") await this.#device.requirePersistence();
    return this.#device.withLock(() => this.#currentAnswer(value));
  }

  /** Return the answer for the current period; derive it from the value if there is none yet. */
  async #currentAnswer(value) {
    const { secret, book: before } = await this.#device.open();
    const book = await this.#charge(before);
    const { fingerprint, repeat } = this.#survey;
    const period = periodOf(repeat, this.#clock());
    const log = this.#log(book);
    // An answer for a later period counts too: someone may have set the clock back.
    if (log.last && period <= log.last.period) return log.last;
    const { report, tokens } = await this.#report(secret, log, value);
    const answer = { period, batch: await batchId(secret, fingerprint, period), report };
    await this.#writeLog(book, { last: answer, tokens, waiting: [...log.waiting, answer] });
    return answer;
  }

  /** Return the book with the survey's full cost in its ledger. */
  async #charge(book) {
    const { budget: stored = DEFAULT_BUDGET } = book;
    const { budget = stored } = this.#limit;
    const entries = charge(book.entries, entryOf(this.#survey, book.secret), parseBudget(budget));
    const charged = { ...book, budget, entries };
    if (entries.length > book.entries.length || budget !== stored) await this.#device.writeBook(charged);
    return charged;
  }

  /** Return the report for a new period, and the tokens of all values so far: at most `distinct` are ever sent. */
  async #report(secret, { last, tokens }, value) {
    if (this.#distinct === 1 && last) return { report: last.report, tokens };
    const { fingerprint } = this.#survey;
    const isFull = tokens.length === this.#distinct;
    // After `distinct` values, a value outside the domain counts as new: its symbol −1 has no token.
    const symbol = isFull ? this.#survey.context.domain.find(value) : this.#survey.symbol(value);
    if (this.#distinct > 1) {
      const token = await tokenOf(secret, fingerprint, symbol);
      const isNew = !tokens.includes(token);
      if (isNew && isFull) return { report: last.report, tokens };
      tokens = isNew ? [...tokens, token] : tokens;
    }
    return { report: this.#survey.reportFrom(symbol, await deriveWords(secret, fingerprint, symbol)), tokens };
  }

  get #distinct() {
    return this.#survey.repeat.distinct ?? 1; // `repeat` may be "once"
  }

  #log(book) {
    return book?.diaries[this.#survey.fingerprint] ?? NO_ANSWER;
  }

  async #writeLog(book, log) {
    await this.#device.writeBook({ ...book, diaries: { ...book.diaries, [this.#survey.fingerprint]: log } });
  }

  // --- sending --------------------------------------------------------------------------------------------------

  #request({ batch, report, period }) {
    const survey = this.#survey;
    return { batch, survey: survey.fingerprint, body: toJson(batch, survey, [report], period) };
  }

  /**
   * Send what waits, one after another, without a lock: what two tabs send is counted once. Read the log again before
   * each answer, because the device may have forgotten it. Returns the log, and the problem if there was one.
   */
  async #sendWaiting() {
    for (let sent; ; ) {
      const log = await this.#device.withLock(() => this.#markDelivered(sent));
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

  /**
   * Remove a batch that was counted from those that wait, and return the log. If the survey is answered once, delete
   * its report, which is not needed again. Without it, the storage is the same for all answers.
   */
  async #markDelivered(sent) {
    const device = await this.#device.read();
    const log = this.#log(device?.book);
    const waiting = log.waiting.filter(({ batch }) => batch !== sent);
    if (waiting.length === log.waiting.length) return log;
    const counted = { ...log, waiting };
    if (this.#survey.repeat === "once") counted.last = { ...log.last, report: null };
    await this.#writeLog(device.book, counted);
    return counted;
  }

  #beacon(body) {
    // A beacon sends cookies, so use it only in browsers whose fetch does not outlive the page.
    const fetchOutlives = "keepalive" in (globalThis.Request ?? Object).prototype;
    const { navigator } = globalThis;
    if (!fetchOutlives && navigator?.sendBeacon)
      return navigator.sendBeacon(this.#address, new Blob([body], { type: "application/json" }));
    this.#transport.fetch(this.#address, postRequest(body)).catch(() => {});
    return true;
  }
}

const monotonic = () => performance.now(); // a clock that is never set back
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
