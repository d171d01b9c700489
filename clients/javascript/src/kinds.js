/**
 * Modules: kinds of domains, contexts and mechanisms that are not part of the core.
 *
 * A module is a function from the core's tools to readers by kind. It has no imports, so there is only one file to
 * verify and load. The complete client installs all modules; the core loads one when a survey needs it.
 */
import { requireFit, unionResponse } from "./blocks.js";
import { unpackU32 } from "./canonical.js";
import { codeOf, twoLevelIndex, wordsOf } from "./codes.js";
import {
  classesOf,
  contextFields,
  contextOf,
  CONTEXTS,
  groupedContext,
  ranksWithin,
  sameRecord,
  sizesOf,
} from "./context.js";
import { requireLabel, DOMAINS, labelDomain } from "./domain.js";
import { PrivacyViolation } from "./errors.js";
import { parseCount, expect, requireFields, MAX_SIZE, list } from "./fields.js";
import { frame, mechanismOf, MECHANISMS } from "./mechanism.js";
import { atMost, exactNumber, reduceFraction, oddsOf, positiveEpsilon, withinOdds } from "./odds.js";
import { rangesKeep } from "./ranges.js";

/** The kinds that each module reads. */
export const KINDS = {
  composites: ["product", "union"],
  groups: ["groups", "high-low", "tiers"],
  places: ["grid", "h3"],
  tables: ["binary", "matrix", "metric", "table"],
};

const CORE = {
  MAX_SIZE,
  PrivacyViolation,
  atMost,
  classesOf,
  codeOf,
  contextFields,
  contextOf,
  parseCount,
  expect,
  requireFit,
  requireLabel,
  exactNumber,
  requireFields,
  frame,
  groupedContext,
  labelDomain,
  list,
  reduceFraction,
  mechanismOf,
  oddsOf,
  positiveEpsilon,
  rangesKeep,
  ranksWithin,
  sameRecord,
  sizesOf,
  twoLevelIndex,
  unionResponse,
  unpackU32,
  withinOdds,
  wordsOf,
};

const installed = {};
let load; // a function from a name to a module that is not installed

/** Add a module's kinds. */
export function install(name, module) {
  installed[name] = module(CORE);
  Object.assign(DOMAINS, installed[name].domains);
  Object.assign(CONTEXTS, installed[name].contexts);
  Object.assign(MECHANISMS, installed[name].mechanisms);
}

/** Load missing modules with this function from a name to a module. */
export function setLoader(loader) {
  load = loader;
}

/** Return a module by its name; load it if necessary. */
export async function requireModule(name) {
  if (!installed[name]) install(name, await load(name));
  return installed[name];
}

/** Load these modules. */
export const requireModules = (names) => Promise.all(names.map(requireModule));

/** Return the modules that these records need, at any depth, and that are not installed. */
export function missingModules(...records) {
  const kinds = records.flatMap(kindsIn);
  const isMissing = (name) => !installed[name] && KINDS[name].some((kind) => kinds.includes(kind));
  return Object.keys(KINDS).filter(isMissing);
}

function kindsIn(record) {
  const { kind, domain, parts } = Object(record);
  return [kind, Object(domain).kind, ...(Array.isArray(parts) ? parts.flatMap(kindsIn) : [])];
}
