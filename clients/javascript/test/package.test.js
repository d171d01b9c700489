/** What is published: its size, its types, its names, and what it must not hold. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import * as published from "@sfumato/client";
import { buildFiles, compressed } from "../build.js";
import { Aggregator } from "./support/aggregator.js";
import { storageOf } from "./support/storage.js";
import { tool } from "./support/tool.js";
import { surveyText } from "./support/vectors.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SOURCES = readdirSync(`${ROOT}src`, { recursive: true })
  .filter((file) => file.endsWith(".js"))
  .map((file) => [file, readFileSync(`${ROOT}src/${file}`, "utf8")]);
const { dependencies, peerDependencies, scripts, exports, type, sideEffects, license } = JSON.parse(
  readFileSync(`${ROOT}package.json`, "utf8"),
);

/** Bytes, minified and compressed: what each file has, and a little room. */
const MAX_SIZE = {
  "core.js": 11_999,
  "sfumato.js": 16_000,
  "modules/composites.js": 1_100,
  "modules/groups.js": 1_700,
  "modules/places.js": 900,
  "modules/tables.js": 2_200,
};

test("it is small", async (t) => {
  const esbuild = await tool(t, "esbuild");
  if (!esbuild) return;
  const { files, warnings } = await buildFiles(esbuild);
  assert.deepEqual(warnings, []);
  assert.deepEqual(Object.keys(files).sort(), Object.keys(MAX_SIZE).sort());
  for (const [path, content] of Object.entries(files)) {
    const size = compressed(content);
    t.diagnostic(`${path}: ${content.length} bytes minified, ${size} compressed`);
    assert.ok(size <= MAX_SIZE[path], `${path}: ${size} bytes`);
  }
});

test("its types are right where they are used", async (t) => {
  const module = await tool(t, "typescript");
  if (!module) return;
  const ts = module.default;
  const options = {
    strict: true,
    noEmit: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
    types: [],
  };
  const program = ts.createProgram([`${ROOT}test/types/usage.ts`], options);
  const problems = ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
  assert.deepEqual(problems, []);
});

test("its names are these", () => {
  const names = [
    "BudgetExceeded",
    "Client",
    "DEFAULT_BUDGET",
    "EntropyUnavailable",
    "InvalidBatch",
    "InvalidSurvey",
    "InvalidSymbols",
    "MemoryUnavailable",
    "NotDelivered",
    "PrivacyViolation",
    "ReportRejected",
    "SfumatoError",
    "Survey",
    "UnknownValue",
    "WrongSurvey",
  ];
  assert.deepEqual(Object.keys(published).sort(), names);
  const typed = [...readFileSync(`${ROOT}index.d.ts`, "utf8").matchAll(/^export (?:class|const) (\w+)/gm)].map(
    ([, name]) => name,
  );
  assert.deepEqual(typed.sort(), names);
  for (const name of names.filter((one) => published[one].prototype instanceof Error))
    assert.equal(new published[name]("").name, name);
});

test("it depends on nothing, and runs nothing when it is installed", () => {
  assert.deepEqual([dependencies, peerDependencies], [undefined, undefined]);
  assert.deepEqual(
    Object.keys(scripts).filter((name) => /install|prepare/.test(name)),
    [],
  );
  assert.deepEqual([type, license], ["module", "Apache-2.0"]);
  // The entry points install kinds; a bundler that dropped that would refuse surveys.
  assert.deepEqual(sideEffects, ["./src/index.js", "./src/core.js", "./dist/*.js"]);
  assert.deepEqual([exports["."].default, exports["./core"].default], ["./src/index.js", "./src/core.js"]);
  for (const [file, text] of SOURCES)
    for (const [, from] of text.matchAll(/from "([^"]+)"/g)) assert.match(from, /^\.\/(modules\/)?\w+\.js$/, file);
});

test("the package is built before it is packed, and holds what was built", (t) => {
  assert.equal(scripts.prepack, "npm run build");
  const folder = mkdtempSync(join(tmpdir(), "sfumato-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const path of ["package.json", "README.md", "index.d.ts", "src"])
    cpSync(`${ROOT}${path}`, join(folder, path), { recursive: true });
  mkdirSync(join(folder, "dist"));
  writeFileSync(join(folder, "dist", "core.js"), "");
  const npm = spawnSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: folder, encoding: "utf8" });
  const paths = JSON.parse(npm.stdout)[0].files.map(({ path }) => path);
  for (const path of ["dist/core.js", "src/index.js", "src/modules/tables.js", "index.d.ts", "README.md"])
    assert.ok(paths.includes(path), path);
});

test("randomness comes from one place, and none of it is weak", () => {
  const asking = SOURCES.filter(([, text]) => text.includes("getRandomValues(")).map(([file]) => file);
  assert.deepEqual(asking, ["words.js"]);
  for (const [file, text] of SOURCES) assert.ok(!text.includes("Math.random"), file);
});

test("the example of the README runs", async (t) => {
  const text = surveyText("samples.json", "high-low, hadamard");
  const survey = await published.Survey.of(text);
  const aggregator = new Aggregator(survey, text);
  const { fetch } = globalThis;
  const said = [];
  const kept = new Map();
  Object.assign(globalThis, {
    fetch: aggregator.fetch,
    localStorage: storageOf(kept),
    alert: (words) => said.push(words),
  });
  t.after(() => {
    globalThis.fetch = fetch;
    delete globalThis.localStorage;
    delete globalThis.alert;
  });
  const [, example] = /```js\n(.*?)```/s.exec(readFileSync(`${ROOT}README.md`, "utf8"));
  const runnable = example
    .replace('"@sfumato/client"', JSON.stringify(new URL("../src/index.js", import.meta.url).href))
    .replace("…64 hexadecimal digits that you reviewed…", survey.fingerprint)
    .replace('"clinic"', JSON.stringify(survey.label(0)));
  await import(`data:text/javascript,${encodeURIComponent(runnable)}`);
  assert.ok(survey.disclosure);
  assert.deepEqual(said, [survey.disclosure, "Thank you"]);
  assert.equal(aggregator.batches.size, 1);
  assert.deepEqual([...kept.keys()].sort(), ["sfumato/1/book", "sfumato/1/secret"]);
});
