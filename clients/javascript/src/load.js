/**
 * Load a pinned module: run the bytes that were hashed when this client was built, or nothing.
 *
 * - In pages, a script element with an `integrity` loads it. The browser checks the bytes that it is about to run, so
 *   there is no second fetch. `import` then finds the module under the same address. The address ends in a random
 *   fragment because a server can send a header that preloads modules without an `integrity`, and browsers do not check
 *   a module that is already loaded. This works under `script-src 'self'`.
 * - Elsewhere (Node, workers), this file reads the bytes, hashes them and imports them from memory.
 *
 * A page's import map can send `import` to another address, so an address that the map changes is refused.
 */
import { SfumatoError } from "./errors.js";
import { expect } from "./fields.js";
import { HASHES } from "./hashes.js";
import { freshWords, sha256 } from "./words.js";

const PATIENCE = 30_000; // milliseconds to wait for a module

/** Load the module with this name. */
export async function load(name) {
  const file = new URL(`./modules/${name}.js`, import.meta.url).href;
  try {
    const integrity = HASHES[name];
    // Browsers ignore an `integrity` that they cannot parse.
    expect(/^sha256-[\w+/]{43}=$/.test(integrity), "a hash");
    const inPage = globalThis.document && !file.startsWith("file:");
    const address = await (inPage ? runVerified : readVerified)(file, integrity);
    expect(import.meta.resolve(address) === address, "this address");
    return (await import(address)).default;
  } catch {
    throw new SfumatoError(
      `the module ${name} cannot be loaded, or is of another version; nothing was sent. ` +
        "Serve it unchanged, next to the core",
    );
  }
}

/** Have the browser verify and run a file. Returns the address under which it is loaded. */
function runVerified(file, integrity) {
  const { document } = globalThis;
  const address = `${file}#${freshWords(2).join("")}`;
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    const end = (outcome) => () => {
      script.remove();
      outcome(address);
    };
    Object.assign(script, { type: "module", crossOrigin: "anonymous", integrity, src: address });
    script.addEventListener("load", end(resolve));
    script.addEventListener("error", end(reject));
    setTimeout(end(reject), PATIENCE);
    document.head.append(script);
  });
}

/** Read and verify a file. Returns an address that contains its bytes. */
async function readVerified(file, integrity) {
  const fileSystem = "node:fs/promises"; // a variable, so that bundlers for browsers leave it alone
  const request = { credentials: "omit", signal: AbortSignal.timeout(PATIENCE) };
  const bytes = file.startsWith("file:")
    ? await (await import(fileSystem)).readFile(new URL(file))
    : new Uint8Array(await (await fetch(file, request)).arrayBuffer());
  const digest = btoa(String.fromCharCode(...(await sha256(bytes))));
  expect(`sha256-${digest}` === integrity, "this hash");
  return `data:text/javascript,${encodeURIComponent(new TextDecoder().decode(bytes))}`;
}
