/**
 * What a device stores: one secret, and one book with the ledger and the answer logs. It stores no value.
 *
 * The book is one text with a checksum under one key. So a crash leaves either the old or the new book, and a truncated
 * text is an error, never an older state. The book is written before the secret. So a secret without a book means that
 * the book was lost, and with it the record of what this device has promised. Logs without their secret mean that the
 * secret was lost: a new one would give other reports for the same values.
 *
 * In browsers, any script of the page's origin can read both.
 */
import { canonicalText, hex, unhex, utf8 } from "./canonical.js";
import { BudgetExceeded, MemoryUnavailable } from "./errors.js";
import { withCosts } from "./ledger.js";
import { secretTag } from "./memory.js";
import { freshWords, sha256 } from "./words.js";

const FORMAT = 2;
const FORMATS = [1, FORMAT]; // in format 1, entries had accounts, which no longer matter
const DIGEST = 65; // 64 hexadecimal digits and a space
const [SECRET, BOOK] = ["sfumato/1/secret", "sfumato/1/book"];

/** The page's own storage. These functions throw if it is missing or denied. */
export const pageStore = {
  /** Ask the browser to keep the data until the person deletes them. Returns whether it will. */
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

  /** Run `work` while no other page of this origin reads or writes. Do not wait for the network inside. */
  async withLock(work) {
    const locks = globalThis.navigator?.locks;
    if (!locks) return inTurn(this.#store, work);
    let result;
    try {
      return await locks.request("sfumato/1", () => (result = work()));
    } catch {
      return result ?? inTurn(this.#store, work); // frames without an origin have no locks either
    }
  }

  /** Refuse a store that does not promise to keep its data. */
  async requirePersistence() {
    if (!this.#store.persist || !(await this.#call("persist")))
      throw new MemoryUnavailable(
        "storage may not last, but the survey repeats; nothing was sent. Allow persistent storage, or pass a store " +
          "with persist()",
      );
  }

  /** Return the secret and the book; create them if the device is new or has forgotten. */
  async open() {
    const device = await this.read();
    if (device) return device;
    const secret = new Uint8Array(freshWords(4).buffer);
    // Answers under a deleted secret cannot be repeated. Their cost stays.
    const book = {
      ...((await this.#book()) ?? { format: FORMAT, entries: [] }),
      secret: await secretTag(secret),
      diaries: {},
    };
    await this.writeBook(book);
    await this.#set(SECRET, hex(secret));
    return { secret, book };
  }

  /** Return the secret and the book, or null if the device is new or has forgotten. */
  async read() {
    const text = await this.#call("get", SECRET);
    const book = await this.#book();
    // forget() deletes the logs too, so logs without a secret mean that it was lost.
    if (text === null && !Object.keys(book?.diaries ?? {}).length) return null;
    if (!book) throw damagedState("ledger is lost");
    const secret = /^[0-9a-f]{64}$/.test(text) && unhex(text);
    if (!secret || (await secretTag(secret)) !== book.secret)
      throw damagedState("secret is lost or damaged", ", or forget()");
    return { secret, book };
  }

  /** Return the entries of the ledger, even if the secret is lost. */
  entries() {
    return this.withLock(async () => (await this.#book())?.entries ?? []);
  }

  /** Replace the book. */
  async writeBook(book) {
    await this.#set(BOOK, await withChecksum(canonicalText(book)));
  }

  /** Delete the secret, and so the memory of every answer. The ledger stays: promises cannot be taken back. */
  async forget() {
    await this.#call("delete", SECRET); // first: without it, nothing else reveals anything
    const book = await this.#book();
    if (book) await this.writeBook({ ...book, diaries: {} });
  }

  async #book() {
    const text = await this.#call("get", BOOK);
    if (text === null) return null;
    const body = text.slice(DIGEST);
    const book = text === (await withChecksum(body)) && JSON.parse(body);
    if (!FORMATS.includes(book.format)) throw damagedState("ledger is damaged, or of another version");
    return { ...book, format: FORMAT, entries: withCosts(book.entries) };
  }

  /** Write and read back: some stores accept what they do not keep. */
  async #set(key, text) {
    await this.#call("set", key, text);
    if ((await this.#call("get", key)) !== text) throw storageDenied();
  }

  async #call(method, ...values) {
    try {
      return (await this.#store[method](...values)) ?? null;
    } catch {
      throw storageDenied();
    }
  }
}

/** Put the SHA-256 of a text in front of it. */
const withChecksum = async (body) => `${hex(await sha256(utf8(body)))} ${body}`;

function storageDenied() {
  return new MemoryUnavailable("storage is denied, missing or full; nothing was sent. Allow it, or pass a store");
}

function damagedState(problem, remedy = "") {
  return new BudgetExceeded(
    `the ${problem}, so what this device has promised is unknown; nothing was sent. Restore its storage${remedy}`,
  );
}

const turns = new WeakMap();

/**
 * Without locks, run work on one store in turn, but only within this process. Two tabs on a new device may then both
 * create a secret and answer with it, and the book of the tab that writes last remains.
 */
function inTurn(store, work) {
  const turn = (turns.get(store) ?? Promise.resolve()).then(work);
  turns.set(
    store,
    turn.catch(() => {}),
  );
  return turn;
}
