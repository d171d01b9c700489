/**
 * Modules: kinds of domains, contexts and mechanisms that the core does not know by itself.
 *
 * A module is a function that is handed the core's tools and gives readers by kind. The whole client installs all of
 * them; the core loads one when a survey needs it.
 */
import { demandFit, unionResponse } from "./blocks.js";
import { codeOf, twoLevelIndex, wordsOf } from "./codes.js";
import { classesOf, contextFields, contextOf, CONTEXTS, ranksWithin, sameRecord, sizesOf } from "./context.js";
import { demandLabel, DOMAINS, labelDomain } from "./domain.js";
import { PrivacyViolation } from "./errors.js";
import { count, demand, fieldsOf, LARGEST, list } from "./fields.js";
import { frame, mechanismOf, MECHANISMS } from "./mechanism.js";
import { atMost, exactNumber, LARGEST_EPSILON, lowest, oddsOf, positiveEpsilon, withinOdds } from "./odds.js";
import { rangesKeep } from "./ranges.js";

/** Kinds by the module that reads them. A context of kind high-low is the core's own; a mechanism is not. */
const KINDS = {
  groups: ["groups", "high-low"],
  places: ["grid", "h3"],
  products: ["product"],
  tables: ["binary", "matrix", "metric", "table"],
  unions: ["union"],
};

const CORE = {
  LARGEST,
  LARGEST_EPSILON,
  PrivacyViolation,
  atMost,
  classesOf,
  codeOf,
  contextFields,
  contextOf,
  count,
  demand,
  demandFit,
  demandLabel,
  exactNumber,
  fieldsOf,
  frame,
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

/** Load whatever these records need, at any depth. Records that cannot be read need nothing. */
export async function needFor(...records) {
  const kinds = records.flatMap(kindsIn);
  const isNeeded = (name) => KINDS[name].some((kind) => kinds.includes(kind));
  await Promise.all(Object.keys(KINDS).filter(isNeeded).map(need));
}

function kindsIn(record) {
  const { kind, domain, parts } = Object(record);
  return [kind, Object(domain).kind, ...(Array.isArray(parts) ? parts.flatMap(kindsIn) : [])];
}
