/**
 * What a device keeps: one secret, and one book that holds the ledger and the answer logs. No value.
 *
 * The book is one text with a checksum under one key. So a crash leaves the old book or the new one, and a truncated
 * text is an error and never an older state. The book is written before the secret: a secret without a book means that
 * the book was lost, and with it what this device has promised. Logs without their secret mean that the secret was
 * lost: a new one would give other reports for the same values.
 *
 * In browsers, any script of the page's origin can read both.
 */
import { canonicalText, hex, unhex, utf8 } from "./canonical.js";
import { BudgetExceeded, MemoryUnavailable } from "./errors.js";
import { withCosts } from "./ledger.js";
import { secretTag } from "./memory.js";
import { freshWords, sha256 } from "./words.js";

const FORMAT = 2;
const FORMATS = [1, FORMAT]; // entries of the first had accounts, which no longer matter
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

  /** Refuse a store that may forget by itself, or does not say whether it does. */
  async requirePersistence() {
    if (!this.#store.persist || !(await this.#ask("persist")))
      throw new MemoryUnavailable(
        "this survey repeats, but its storage may not last; nothing was sent. Allow persistent storage, or pass a store " +
          "with persist()",
      );
  }

  /** The secret and the book; created if the device is new. */
  async open() {
    const found = await this.existing();
    if (found) return found;
    const secret = new Uint8Array(freshWords(4).buffer);
    // Answers under a deleted secret cannot be repeated. Their cost stays.
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
    // forget() deletes the logs, too: logs without a secret mean that it was lost.
    if (text === null && !Object.keys(book?.diaries ?? {}).length) return null;
    if (!book) throw damaged("ledger is lost");
    const secret = /^[0-9a-f]{64}$/.test(text) && unhex(text);
    if (!secret || (await secretTag(secret)) !== book.secret)
      throw damaged("secret is lost or damaged", ", or forget()");
    return { secret, book };
  }

  /** The entries of the ledger, even if the secret is lost. */
  entries() {
    return this.locked(async () => (await this.#book())?.entries ?? []);
  }

  /** Replace the book. */
  async keep(book) {
    await this.#set(BOOK, await seal(canonicalText(book)));
  }

  /** Delete the secret, and so the memory of every answer. The ledger stays: promises cannot be taken back. */
  async forget() {
    await this.#ask("delete", SECRET); // first: without it, nothing else reveals anything
    const book = await this.#book();
    if (book) await this.keep({ ...book, diaries: {} });
  }

  async #book() {
    const text = await this.#ask("get", BOOK);
    if (text === null) return null;
    const body = text.slice(DIGEST);
    const book = text === (await seal(body)) && JSON.parse(body);
    if (!FORMATS.includes(book.format)) throw damaged("ledger is damaged, or of another version");
    return { ...book, format: FORMAT, entries: withCosts(book.entries) };
  }

  /** Write and read back: some stores accept what they do not keep. */
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

/** Put the SHA-256 of a text in front of it. */
const seal = async (body) => `${hex(await sha256(utf8(body)))} ${body}`;

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
 * Without locks, run work on one store in turn within this process. Two tabs do not take turns then: on a new device
 * each may create a secret and answer with it, and the book is that of the tab that wrote last.
 */
function inTurn(store, work) {
  const turn = (turns.get(store) ?? Promise.resolve()).then(work);
  turns.set(
    store,
    turn.catch(() => {}),
  );
  return turn;
}
