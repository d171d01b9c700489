/**
 * Modules: kinds of domains, contexts and mechanisms that the core does not know by itself.
 *
 * A module is a function from the core's tools to readers by kind. It has no imports, so that one file is all there is
 * to verify and to load. The whole client installs all modules; the core loads one when a survey needs it.
 */
import { requireFit, unionResponse } from "./blocks.js";
import { unpackedU32 } from "./canonical.js";
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
import { count, expect, fieldsOf, LARGEST, list } from "./fields.js";
import { frame, mechanismOf, MECHANISMS } from "./mechanism.js";
import { atMost, exactNumber, lowest, oddsOf, positiveEpsilon, withinOdds } from "./odds.js";
import { rangesKeep } from "./ranges.js";

/** Kinds by the module that reads them. */
export const KINDS = {
  groups: ["groups", "high-low", "tiers"],
  places: ["grid", "h3"],
  products: ["product"],
  tables: ["binary", "matrix", "metric", "table"],
  unions: ["union"],
};

const CORE = {
  LARGEST,
  PrivacyViolation,
  atMost,
  classesOf,
  codeOf,
  contextFields,
  contextOf,
  count,
  expect,
  requireFit,
  requireLabel,
  exactNumber,
  fieldsOf,
  frame,
  groupedContext,
  labelDomain,
  list,
  lowest,
  mechanismOf,
  oddsOf,
  positiveEpsilon,
  rangesKeep,
  ranksWithin,
  sameRecord,
  sizesOf,
  twoLevelIndex,
  unionResponse,
  unpackedU32,
  withinOdds,
  wordsOf,
};

const installed = {};
let load; // a function from a name to a module, for those that are not installed

/** Add a module's kinds. */
export function install(name, module) {
  installed[name] = module(CORE);
  Object.assign(DOMAINS, installed[name].domains);
  Object.assign(CONTEXTS, installed[name].contexts);
  Object.assign(MECHANISMS, installed[name].mechanisms);
}

/** Load modules that are missing by this function from a name to a module. */
export function installBy(loader) {
  load = loader;
}

/** A module by its name, loaded if need be. */
export async function need(name) {
  if (!installed[name]) install(name, await load(name));
  return installed[name];
}

/** Load these modules. */
export const needAll = (names) => Promise.all(names.map(need));

/** The modules that these records need, at any depth, and that are not installed. Unreadable records need none. */
export function missingFor(...records) {
  const kinds = records.flatMap(kindsIn);
  const isMissing = (name) => !installed[name] && KINDS[name].some((kind) => kinds.includes(kind));
  return Object.keys(KINDS).filter(isMissing);
}

function kindsIn(record) {
  const { kind, domain, parts } = Object(record);
  return [kind, Object(domain).kind, ...(Array.isArray(parts) ? parts.flatMap(kindsIn) : [])];
}
