/**
 * What a device keeps: one secret, and one book that holds the ledger and what was answered. No value.
 *
 * The book is one text with a checksum under one key, so that a crash leaves the old book or the new one, and a text
 * that was cut off is an error and never an older state. It is there before the secret is: a secret without a book
 * means that the book was lost, and with it what this device has promised. Answers without their secret mean
 * that the secret was lost: a new one would say another thing about the same values.
 *
 * In browsers any script of the page's origin can read both.
 */
import { canonicalText, hex, unhex, utf8 } from "./canonical.js";
import { BudgetExceeded, MemoryUnavailable } from "./errors.js";
import { withCosts } from "./ledger.js";
import { secretTag } from "./memory.js";
import { freshWords, sha256 } from "./words.js";

const FORMAT = 2;
const FORMATS = [1, FORMAT]; // entries of the first had accounts, which count no longer
const DIGEST = 65; // 64 hexadecimal digits and a space
const [SECRET, BOOK] = ["sfumato/1/secret", "sfumato/1/book"];

/** The page's own storage. Where it is missing or denied, each of these throws. */
export const pageStore = {
  /** Ask the browser to keep it until the person deletes it; some ask the person first. Returns whether it will. */
  persist: () => navigator.storage.persist(),
  get: (key) => localStorage.getItem(key),
  set: (key, text) => localStorage.setItem(key, text),
  delete: (key) => localStorage.removeItem(key),
};

export class Device {
  #store;

  constructor(store) {
    this.#store = store;
  }

  /** Run `work` while no other page of this origin reads or writes. Do not wait for a network inside. */
  async locked(work) {
    const locks = globalThis.navigator?.locks;
    if (!locks) return inTurn(this.#store, work);
    let begun;
    try {
      return await locks.request("sfumato/1", () => (begun = work()));
    } catch {
      return begun ?? inTurn(this.#store, work); // frames without an origin have no locks, either
    }
  }

  /** Refuse a store that may forget by itself, or that does not say. */
  async demandLasting() {
    if (!this.#store.persist || !(await this.#ask("persist")))
      throw new MemoryUnavailable(
        "this survey repeats, and its storage may not last; nothing was sent. Allow persistent storage, or pass a store " +
          "with persist()",
      );
  }

  /** The secret and the book; made if the device is new. */
  async open() {
    const found = await this.existing();
    if (found) return found;
    const secret = new Uint8Array(freshWords(4).buffer);
    // What was answered under a secret that is gone cannot be repeated. What it cost stays.
    const book = {
      ...((await this.#book()) ?? { format: FORMAT, entries: [] }),
      secret: await secretTag(secret),
      diaries: {},
    };
    await this.keep(book);
    await this.#set(SECRET, hex(secret));
    return { secret, book };
  }

  /** The secret and the book, or null for a device that is new or has forgotten. */
  async existing() {
    const [text, book] = [await this.#ask("get", SECRET), await this.#book()];
    // forget() drops the diaries, too: diaries without a secret mean that it was lost.
    if (text === null && !Object.keys(book?.diaries ?? {}).length) return null;
    if (!book) throw damaged("ledger is lost");
    const secret = /^[0-9a-f]{64}$/.test(text) && unhex(text);
    if (!secret || (await secretTag(secret)) !== book.secret)
      throw damaged("secret is lost or damaged", ", or forget()");
    return { secret, book };
  }

  /** What the ledger holds, whatever became of the secret. */
  entries() {
    return this.locked(async () => (await this.#book())?.entries ?? []);
  }

  /** Replace the book. */
  async keep(book) {
    await this.#set(BOOK, await sealed(canonicalText(book)));
  }

  /** Delete the secret, and with it the memory of every answer. The ledger stays: what was promised was promised. */
  async forget() {
    await this.#ask("delete", SECRET); // first: without it, nothing else says anything
    const book = await this.#book();
    if (book) await this.keep({ ...book, diaries: {} });
  }

  async #book() {
    const text = await this.#ask("get", BOOK);
    if (text === null) return null;
    const body = text.slice(DIGEST);
    const book = text === (await sealed(body)) && JSON.parse(body);
    if (!FORMATS.includes(book.format)) throw damaged("ledger is damaged, or of another version");
    return { ...book, format: FORMAT, entries: withCosts(book.entries) };
  }

  /** Write, and read again: some stores take what they do not keep. */
  async #set(key, text) {
    await this.#ask("set", key, text);
    if ((await this.#ask("get", key)) !== text) throw denied();
  }

  async #ask(method, ...given) {
    try {
      return (await this.#store[method](...given)) ?? null;
    } catch {
      throw denied();
    }
  }
}

/** A text behind its SHA-256. */
const sealed = async (body) => `${hex(await sha256(utf8(body)))} ${body}`;

function denied() {
  return new MemoryUnavailable("storage is denied, missing or full; nothing was sent. Allow it, or pass a store");
}

function damaged(what, way = "") {
  return new BudgetExceeded(
    `the ${what}, so what this device has promised is unknown; nothing was sent. Restore its storage${way}`,
  );
}

const turns = new WeakMap();

/**
 * Where there are no locks, work on one store is done one after another in this process. Two tabs do not take turns
 * then: on a new device each may make a secret and answer with it, and the book is that of the tab that wrote last.
 */
function inTurn(store, work) {
  const turn = (turns.get(store) ?? Promise.resolve()).then(work);
  turns.set(
    store,
    turn.catch(() => {}),
  );
  return turn;
}
