/** Stores for tests: one that lasts, the storage of a page, and a look into the book. */
import { createHash } from "node:crypto";
import { canonicalText } from "../../src/canonical.js";

export const [SECRET, BOOK] = ["sfumato/1/secret", "sfumato/1/book"];

/** A store that says that it lasts, as repeated surveys need. */
export const lastingStore = () => Object.assign(new Map(), { persist: () => true });

/** The storage of a page, in a map. */
export function storageOf(kept) {
  return {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, text) => kept.set(key, text),
    removeItem: (key) => kept.delete(key),
  };
}

export const bookOf = (store) => JSON.parse(store.get(BOOK).slice(65));

/** Replace the book by another, with a checksum that fits. */
export function rewriteBook(store, book) {
  const body = canonicalText(book);
  store.set(BOOK, `${createHash("sha256").update(body).digest("hex")} ${body}`);
}
