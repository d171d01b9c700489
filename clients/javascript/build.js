#!/usr/bin/env node
/**
 * What is served to browsers: `npm run build` writes `dist`, `npm run hashes` the hashes of the modules in `src`.
 *
 *     dist/core.js        the small core, which loads modules as surveys need them
 *     dist/modules/*.js   the modules
 *     dist/sfumato.js     everything in one file
 *
 * The hashes inside a core are those of the modules that are served with it.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const ROOT = fileURLToPath(new URL(".", import.meta.url));
const MODULES = readdirSync(`${ROOT}src/modules`).sort();

/** The text of `hashes.js` for modules by file name. */
export function hashesText(contents) {
  const lines = Object.entries(contents).map(([file, content]) => {
    const digest = createHash("sha256").update(content).digest("base64");
    return `  ${file.replace(/\.js$/, "")}: "sha256-${digest}",\n`;
  });
  const about = "/** The modules that this core loads, by their hashes. Written by `npm run hashes`; do not edit. */";
  const kinds = MODULES.map((file) => `  ${file.replace(/\.js$/, "")}: ${kindsOf(file)},\n`);
  const aboutKinds = "/** The kinds of records that each module reads. */";
  return (
    `${about}\nexport const HASHES = {\n${lines.join("")}};\n\n` +
    `${aboutKinds}\nexport const KINDS = {\n${kinds.join("")}};\n`
  );
}

/** The list of kinds in the source of a module. */
function kindsOf(file) {
  const source = readFileSync(`${ROOT}src/modules/${file}`, "utf8");
  return source.match(/^export const kinds = (\[.*\]);$/m)[1];
}

/** The text that `src/hashes.js` must have. */
export function sourceHashes() {
  return hashesText(Object.fromEntries(MODULES.map((file) => [file, readFileSync(`${ROOT}src/modules/${file}`)])));
}

/** Build every file of `dist`, minified, by its path. Returns the files and the bundler's warnings. */
export async function buildFiles(esbuild) {
  const options = { bundle: true, minify: true, format: "esm", target: "es2022", write: false };
  const warnings = [];
  const minified = async (entry, plugins = []) => {
    const made = await esbuild.build({ ...options, entryPoints: [`${ROOT}src/${entry}`], plugins });
    warnings.push(...made.warnings);
    return made.outputFiles[0].contents;
  };
  const modules = {};
  for (const file of MODULES) modules[file] = await minified(`modules/${file}`);
  const files = { "core.js": await minified("core.js", [withHashes(hashesText(modules))]) };
  files["sfumato.js"] = await minified("index.js");
  for (const file of MODULES) files[`modules/${file}`] = modules[file];
  return { files, warnings };
}

function withHashes(contents) {
  return {
    name: "hashes",
    setup: (build) => build.onLoad({ filter: /[\\/]src[\\/]hashes\.js$/ }, () => ({ contents })),
  };
}

/** The size of a file once it is compressed. */
export const compressed = (content) => gzipSync(content, { level: 9 }).length;

async function writeDist() {
  const { files } = await buildFiles(await import("esbuild"));
  rmSync(`${ROOT}dist`, { recursive: true, force: true });
  mkdirSync(`${ROOT}dist/modules`, { recursive: true });
  for (const [path, content] of Object.entries(files)) {
    writeFileSync(`${ROOT}dist/${path}`, content);
    console.log(`dist/${path}: ${content.length} bytes, ${compressed(content)} compressed`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(`${ROOT}src/hashes.js`, sourceHashes());
  if (process.argv[2] !== "hashes") await writeDist();
}
