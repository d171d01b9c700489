/**
 * The client of one device: it charges the ledger, derives the report, remembers it and sends it.
 *
 * In this order: the survey's whole cost is in the ledger, durably, before the value is read; the report is durable
 * before it leaves; and it is counted once, however often it must be sent. Whether something is sent, and where to,
 * does not depend on the value.
 */
import { batchBody } from "./batch.js";
import { Device, pageStore } from "./device.js";
import { NotDelivered } from "./errors.js";
import { accountOf, capOf, charged } from "./ledger.js";
import { batchId, rememberedWords, tokenOf } from "./memory.js";
import { periodOf } from "./period.js";
import { batchAddress, deliver, postOf } from "./send.js";

const PATIENCE = 10_000; // milliseconds that an answer goes on trying to be delivered
const NO_ANSWER = { last: null, tokens: [], waiting: [] };

export class Client {
  #survey;
  #address;
  #device;
  #subject;
  #cap;
  #clock;
  #courier;

  /**
   * `store` has get, set and delete of text by key, at once or by promises; a `Map` will do for a process that may
   * forget. `cap` is the record of a context, its domain left out. `fetch`, `clock` and `sleep` are for tests.
   */
  constructor(survey, { url, store = pageStore, subject = null, cap = null, patience = PATIENCE, ...seams } = {}) {
    this.#survey = survey;
    this.#address = batchAddress(url, survey.fingerprint);
    this.#device = new Device(store);
    this.#subject = subject;
    this.#cap = cap && capOf(cap, survey);
    this.#clock = seams.clock ?? Date.now;
    const { fetch = (...request) => globalThis.fetch(...request), sleep = pause } = seams;
    this.#courier = { fetch, sleep, patience };
    // What waits from an earlier load is tried once more. If that fails it goes on waiting, and answer() says so.
    const resume = () => this.flush().catch(() => {});
    this.resumed = resume();
    globalThis.addEventListener?.("online", resume);
  }

  /** Answer with a value. Says whether the aggregator has counted it; else it waits, and is sent again by itself. */
  async answer(value) {
    const { answer, waiting } = await this.#device.locked(() => this.#answered(value));
    const left = await this.#delivered(waiting).catch((problem) => {
      if (problem instanceof NotDelivered) return problem.left;
      throw problem;
    });
    const delivered = !left.some(({ batch }) => batch === answer.batch);
    return { survey: this.#survey.fingerprint, batch: answer.batch, delivered, waiting: left.length };
  }

  /**
   * The answer's request, made ahead and not yet sent. `beacon()` sends it as a page goes away, without looking back:
   * the answer goes on waiting until a later load hears that it was counted.
   */
  async prepare(value) {
    const { answer } = await this.#device.locked(() => this.#answered(value));
    const { body } = this.#request(answer);
    return { address: this.#address, batch: answer.batch, body, beacon: () => this.#beacon(body) };
  }

  /** Send what waits, oldest first; `NotDelivered` if something must go on waiting. */
  async flush() {
    const found = await this.#device.locked(() => this.#device.existing());
    await this.#delivered(this.#diary(found?.book).waiting);
  }

  /** Delete the device's secret and its memory of all answers; the ledger stays, and answering again costs again. */
  async forget() {
    await this.#device.locked(() => this.#device.forget());
  }

  // --- from value to report -------------------------------------------------------------------------------------

  /** The answer that stands for now, made from the value if there is none yet. */
  async #answered(value) {
    const { secret, book } = await this.#charged();
    const { fingerprint, repeat } = this.#survey;
    const period = periodOf(repeat, this.#clock());
    const diary = this.#diary(book);
    // An answer for a later period stands, too: clocks run back.
    if (diary.last && period <= diary.last.period) return { answer: diary.last, waiting: diary.waiting };
    const { report, tokens } = await this.#report(secret, diary, value);
    const answer = { period, batch: await batchId(secret, fingerprint, period), report };
    const waiting = [...diary.waiting, answer];
    await this.#keep(book, { last: answer, tokens, waiting });
    return { answer, waiting };
  }

  /** Secret and book, once the survey's whole cost is in the ledger. */
  async #charged() {
    const { secret, book } = await this.#device.open();
    const { fingerprint, context } = this.#survey;
    const account = await accountOf(this.#survey, this.#subject);
    const entry = { account, survey: fingerprint, secret: book.secret, times: this.#distinct, context: context.record };
    const entries = charged(book.entries, entry, this.#cap);
    if (entries !== book.entries) await this.#device.keep({ ...book, entries });
    return { secret, book: { ...book, entries } };
  }

  /** The report of a new period, and the tokens of all values so far: at most `distinct` values are ever told. */
  async #report(secret, { last, tokens }, value) {
    if (this.#distinct === 1 && last) return { report: last.report, tokens };
    const { fingerprint } = this.#survey;
    const symbol = this.#survey.symbol(value);
    if (this.#distinct > 1) {
      const token = await tokenOf(secret, fingerprint, symbol);
      const isNew = !tokens.includes(token);
      if (isNew && tokens.length === this.#distinct) return { report: last.report, tokens };
      tokens = isNew ? [...tokens, token] : tokens;
    }
    return { report: this.#survey.reportFrom(symbol, await rememberedWords(secret, fingerprint, symbol)), tokens };
  }

  get #distinct() {
    return this.#survey.repeat === "once" ? 1 : this.#survey.repeat.distinct;
  }

  #diary(book) {
    return book?.diaries[this.#survey.fingerprint] ?? NO_ANSWER;
  }

  async #keep(book, diary) {
    await this.#device.keep({ ...book, diaries: { ...book.diaries, [this.#survey.fingerprint]: diary } });
  }

  // --- sending --------------------------------------------------------------------------------------------------

  #request({ batch, report }) {
    const survey = this.#survey.fingerprint;
    return { batch, survey, body: batchBody(batch, survey, [report]) };
  }

  /** Send one after another; the device is not locked meanwhile, and what two tabs send is counted once. */
  async #delivered(waiting) {
    const left = [...waiting];
    while (left.length) {
      try {
        await deliver(this.#address, this.#request(left[0]), this.#courier);
      } catch (problem) {
        throw Object.assign(problem, { left });
      }
      await this.#strikeOut(left.shift());
    }
    return left;
  }

  async #strikeOut({ batch }) {
    await this.#device.locked(async () => {
      const found = await this.#device.existing();
      if (!found) return; // the device was told to forget meanwhile
      const diary = this.#diary(found.book);
      await this.#keep(found.book, { ...diary, waiting: diary.waiting.filter((held) => held.batch !== batch) });
    });
  }

  #beacon(body) {
    // A beacon carries cookies, so it is for browsers whose fetch does not outlive the page.
    const outlives = "keepalive" in (globalThis.Request?.prototype ?? {});
    const { navigator, Blob } = globalThis;
    if (!outlives && navigator?.sendBeacon)
      return navigator.sendBeacon(this.#address, new Blob([body], { type: "application/json" }));
    this.#courier.fetch(this.#address, postOf(body)).catch(() => {});
    return true;
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
