/** The core and its modules: what is not the pinned file does not run, and the core answers what the whole client does. */
import assert from "node:assert/strict";
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildFiles, sourceHashes } from "../build.js";
import * as whole from "../src/index.js";
import { casesOf, FILES, surveyText } from "./support/vectors.js";
import { tool } from "./support/tool.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Surveys that need each module. */
const NEEDING = {
  groups: surveyText("samples.json", "high-low, hadamard"),
  places: casesOf("domains.json").find(({ request }) => request.text?.includes('"kind":"grid"')).request.text,
  products: surveyText("samples.json", "product, randomized"),
  tables: surveyText("samples.json", "table"),
  unions: surveyText("samples.json", "union"),
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
    for (const other of Object.keys(NEEDING).filter((one) => one !== name && one !== "unions"))
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

test("what a ledger holds is loaded, too", async (t) => {
  const core = await imported(copyOf(t), "core.js");
  const store = new Map();
  const table = await whole.Survey.of(NEEDING.tables);
  const options = { url: "https://a.example", store, budget: null, allowClear: true, patience: 0 };
  const fetch = async () => new Response("{}", { status: 503 });
  await new whole.Client(table, { ...options, fetch }).answer(table.label(0));
  const plain = await core.Survey.of(surveyText("samples.json", "plain, hadamard"));
  const client = new core.Client(plain, { ...options, budget: 100, fetch });
  await client.answer(plain.label(0));
  assert.ok((await client.spent()) > 0);
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
