/** What is published: its size, its types, its names, and what it must not hold. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import * as published from "@sfumato/client";
import { Aggregator } from "./support/aggregator.js";
import { surveyText } from "./support/vectors.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const LARGEST = 12_000; // bytes, minified and compressed
const { dependencies, peerDependencies, scripts, exports, type, sideEffects, license } = JSON.parse(
  readFileSync(`${ROOT}package.json`, "utf8"),
);

/** A development tool; where it is not installed the test is skipped, unless everything is required. */
async function tool(t, name) {
  try {
    return await import(name);
  } catch (problem) {
    if (process.env.SFUMATO_REQUIRE_ALL) throw problem;
    t.skip(`${name} is not installed: npm install`);
    return null;
  }
}

test("it is small", async (t) => {
  const esbuild = await tool(t, "esbuild");
  if (!esbuild) return;
  const entry = { entryPoints: [`${ROOT}src/index.js`], bundle: true, minify: true, format: "esm", write: false };
  const { outputFiles, warnings } = await esbuild.build(entry);
  const size = gzipSync(outputFiles[0].contents, { level: 9 }).length;
  t.diagnostic(`${outputFiles[0].contents.length} bytes minified, ${size} compressed`);
  assert.deepEqual(warnings, []);
  assert.ok(size <= LARGEST, `${size} bytes`);
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
  const typed = [...readFileSync(`${ROOT}index.d.ts`, "utf8").matchAll(/^export class (\w+)/gm)].map(
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
  assert.deepEqual([type, sideEffects, license], ["module", false, "Apache-2.0"]);
  assert.equal(exports["."].default, "./src/index.js");
  for (const file of readdirSync(`${ROOT}src`)) {
    const text = readFileSync(`${ROOT}src/${file}`, "utf8");
    for (const [, from] of text.matchAll(/from "([^"]+)"/g)) assert.match(from, /^\.\/\w+\.js$/, file);
  }
});

test("randomness comes from one place, and none of it is weak", () => {
  const asking = readdirSync(`${ROOT}src`).filter((file) =>
    readFileSync(`${ROOT}src/${file}`, "utf8").includes("getRandomValues("),
  );
  assert.deepEqual(asking, ["words.js"]);
  for (const file of readdirSync(`${ROOT}src`))
    assert.ok(!readFileSync(`${ROOT}src/${file}`, "utf8").includes("Math.random"), file);
});

test("the example of the README runs", async (t) => {
  const text = surveyText("samples.json", "high-low, hadamard");
  const survey = await published.Survey.of(text);
  const aggregator = new Aggregator(survey, text);
  const { fetch, console } = globalThis;
  const said = [];
  const kept = new Map();
  const localStorage = {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, item) => kept.set(key, item),
    removeItem: (key) => kept.delete(key),
  };
  Object.assign(globalThis, {
    fetch: aggregator.fetch,
    localStorage,
    console: { log: (...words) => said.push(words) },
  });
  t.after(() => {
    Object.assign(globalThis, { fetch, console });
    delete globalThis.localStorage;
  });
  const [, example] = /```js\n(.*?)```/s.exec(readFileSync(`${ROOT}README.md`, "utf8"));
  const runnable = example
    .replace('"@sfumato/client"', JSON.stringify(new URL("../src/index.js", import.meta.url).href))
    .replace("…64 hexadecimal digits that you reviewed…", survey.fingerprint)
    .replace('"clinic"', JSON.stringify(survey.label(0)));
  await import(`data:text/javascript,${encodeURIComponent(runnable)}`);
  assert.deepEqual(said, [[survey.title, "thank you"]]);
  assert.equal(aggregator.batches.size, 1);
  assert.deepEqual([...kept.keys()].sort(), ["sfumato/1/book", "sfumato/1/secret"]);
});
