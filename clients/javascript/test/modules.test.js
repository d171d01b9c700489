/** The core and its modules: what is not the pinned file does not run, and the core answers what the whole client does. */
import assert from "node:assert/strict";
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildFiles, sourceHashes } from "../build.js";
import { HASHES } from "../src/hashes.js";
import * as whole from "../src/index.js";
import { KINDS } from "../src/kinds.js";
import { packed, resolved } from "./support/large.js";
import { casesOf, FILES, surveyText } from "./support/vectors.js";
import { tool } from "./support/tool.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Surveys that need each module. */
const NEEDING = {
  groups: surveyText("samples.json", "high-low, hadamard"),
  places: casesOf("domains.json").find(({ request }) => request.text?.includes('"kind":"grid"')).request.text,
  tables: surveyText("samples.json", "table"),
  composites: surveyText("samples.json", "union"),
};

/** A copy of the sources of its own, so that nothing is loaded yet. */
function copyOf(t) {
  const folder = mkdtempSync(join(tmpdir(), "sfumato-"));
  t.after(() => rmSync(folder, { recursive: true }));
  cpSync(`${ROOT}src`, join(folder, "src"), { recursive: true });
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  return join(folder, "src");
}

const imported = (...path) => import(pathToFileURL(join(...path)).href);

test("the hashes in the core are those of the modules: npm run hashes", () => {
  assert.equal(readFileSync(`${ROOT}src/hashes.js`, "utf8"), sourceHashes());
});

test("modules import nothing, so that what is verified is all that runs", () => {
  for (const name of Object.keys(NEEDING)) {
    const text = readFileSync(`${ROOT}src/modules/${name}.js`, "utf8");
    assert.ok(!/^\s*import\b|\bimport\(/m.test(text), name);
  }
});

test("the core and the whole client publish the same names", async (t) => {
  const core = await imported(copyOf(t), "core.js");
  assert.deepEqual(Object.keys(core).sort(), Object.keys(whole).sort());
});

test("the core reads whatever the whole client reads, and refuses what it refuses", async (t) => {
  const core = await imported(copyOf(t), "core.js");
  const outcome = ({ Survey }, { text, fingerprint }) =>
    Survey.of(text, { fingerprint }).then(
      (survey) => [survey.fingerprint, survey.checked, survey.outputs],
      ({ name }) => name,
    );
  const loads = FILES.flatMap(casesOf).filter(({ request }) => request.op === "load");
  assert.ok(loads.length > 100);
  for (const { about, request } of loads)
    assert.deepEqual(await outcome(core, request), await outcome(whole, request), about);
});

for (const [name, text] of Object.entries(NEEDING)) {
  test(`a module that was changed does not run: ${name}`, async (t) => {
    const source = copyOf(t);
    appendFileSync(join(source, "modules", `${name}.js`), "\nglobalThis.tampered = true;\n");
    t.after(() => delete globalThis.tampered);
    const { Survey, SfumatoError } = await imported(source, "core.js");
    await assert.rejects(Survey.of(text), (problem) => {
      return problem instanceof SfumatoError && problem.message.includes(`the module ${name}`);
    });
    assert.equal(globalThis.tampered, undefined);
    // The others load, and so does this one once it is what it was.
    for (const other of Object.keys(NEEDING).filter((one) => one !== name && one !== "composites"))
      assert.ok(await Survey.of(NEEDING[other]));
    cpSync(`${ROOT}src/modules/${name}.js`, join(source, "modules", `${name}.js`));
    assert.ok(await Survey.of(text));
  });
}

test("a survey of the core's own kinds needs no module", async (t) => {
  const source = copyOf(t);
  rmSync(join(source, "modules"), { recursive: true });
  const { Survey } = await imported(source, "core.js");
  for (const about of ["plain, hadamard", "plain, cyclic", "blocks, best"])
    assert.ok(await Survey.of(surveyText("samples.json", about)));
  await assert.rejects(Survey.of(NEEDING.tables), /the module tables cannot be loaded/);
});

/** A store that fails after many reads, so that a client that reads for ever fails the test. */
function finiteStore() {
  const store = new Map();
  let reads = 0;
  const get = (key) => {
    if (++reads > 1000) throw new Error("too many reads");
    return store.get(key);
  };
  return { get, set: (key, text) => store.set(key, text), delete: (key) => store.delete(key) };
}

const offline = async () => new Response("{}", { status: 503 });

/** The options of clients that share a store of their own. */
function sharing() {
  const store = finiteStore();
  return { url: "https://a.example", store, budget: 1000, allowClear: true, patience: 0, fetch: offline };
}

test("a ledger needs no modules, whatever surveys were charged", async (t) => {
  const options = sharing();
  const table = await whole.Survey.of(NEEDING.tables);
  await new whole.Client(table, options).answer(table.label(0));
  const source = copyOf(t);
  rmSync(join(source, "modules"), { recursive: true });
  const core = await imported(source, "core.js");
  const plain = await core.Survey.of(surveyText("samples.json", "plain, hadamard"));
  const client = new core.Client(plain, options);
  assert.ok((await client.spent()) > 0);
  assert.ok((await client.answer(plain.label(0))).batch);
  await assert.rejects(core.Survey.of(NEEDING.tables), /the module tables cannot be loaded/);
});

test("the core has a hash for every module that it may load, and no others", () => {
  assert.deepEqual(Object.keys(HASHES).sort(), Object.keys(KINDS).sort());
  assert.deepEqual(Object.keys(NEEDING).sort(), Object.keys(KINDS).sort());
  for (const hash of Object.values(HASHES)) assert.match(hash, /^sha256-[\w+/]{43}=$/);
});

test("parts of unions are read for the modules that they need", async (t) => {
  const matrix = [
    ["0", "1"],
    ["1", "0"],
  ];
  const domain = { kind: "range", size: 2, start: 0 };
  const context = { kind: "union", domain, parts: [{ kind: "matrix", domain, matrix }], block_of: packed([0, 0]) };
  const half = String(2n ** 63n);
  const table = { kind: "table", rows: [[half, half], [half, half]], word_bits: 64 };
  const { Survey } = await imported(copyOf(t), "core.js");
  assert.equal((await Survey.of(resolved(context, { kind: "union", parts: [table] }))).checked, "whole");
});

test("what is built for browsers works: the core with its modules, and the one file", async (t) => {
  const esbuild = await tool(t, "esbuild");
  if (!esbuild) return;
  const folder = copyOf(t);
  const { files } = await buildFiles(esbuild);
  mkdirSync(join(folder, "dist", "modules"), { recursive: true });
  for (const [path, content] of Object.entries(files)) writeFileSync(join(folder, "dist", path), content);
  const core = await imported(folder, "dist", "core.js");
  for (const text of Object.values(NEEDING)) assert.ok(await core.Survey.of(text));
  rmSync(join(folder, "dist", "modules"), { recursive: true });
  const bundle = await imported(folder, "dist", "sfumato.js");
  for (const text of Object.values(NEEDING)) assert.ok(await bundle.Survey.of(text));
});
