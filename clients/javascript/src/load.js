/**
 * Loading a module that was pinned: what runs is what was hashed when this file was written, or nothing.
 *
 * - In pages, by a script element with an `integrity`. The browser compares the bytes that it is about to run, so there is
 *   no second fetch in between; the module then stands under its address, where `import` finds it. The address ends in
 *   a random fragment: by a header, a server can make browsers load modules ahead of time without an `integrity`, and a
 *   browser does not check what already stands under an address. This works under `script-src 'self'`.
 * - Elsewhere (Node, workers), the bytes are read, hashed, and imported as they are in memory.
 */
import { SfumatoError } from "./errors.js";
import { HASHES } from "./hashes.js";
import { freshWords, sha256 } from "./words.js";

/** The module of this name. */
export async function load(name) {
  const address = new URL(`./modules/${name}.js`, import.meta.url).href;
  try {
    const inPage = globalThis.document && !address.startsWith("file:");
    const verified = await (inPage ? scripted : read)(address, HASHES[name]);
    return (await import(verified)).default;
  } catch {
    throw new SfumatoError(
      `the module ${name} cannot be loaded, or is not the one that this client was built with; nothing was sent. ` +
        "Serve its file unchanged next to the core, or use the bundled file",
    );
  }
}

/** An address of its own, once the browser has verified and run what is there. */
function scripted(file, integrity) {
  const { document } = globalThis;
  const address = `${file}#${freshWords(2).join("")}`;
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    const settle = (settled) => () => {
      script.remove();
      settled(address);
    };
    Object.assign(script, { type: "module", crossOrigin: "anonymous", integrity, src: address });
    script.addEventListener("load", settle(resolve));
    script.addEventListener("error", settle(reject));
    document.head.append(script);
  });
}

/** An address that holds the verified bytes themselves. */
async function read(address, integrity) {
  const fileSystem = "node:fs/promises"; // a variable, so that bundlers for browsers let it be
  const bytes = address.startsWith("file:")
    ? await (await import(fileSystem)).readFile(new URL(address))
    : new Uint8Array(await (await fetch(address, { credentials: "omit" })).arrayBuffer());
  const digest = btoa(String.fromCharCode(...(await sha256(bytes))));
  if (`sha256-${digest}` !== integrity) throw new Error("another module");
  return `data:text/javascript,${encodeURIComponent(new TextDecoder().decode(bytes))}`;
}
