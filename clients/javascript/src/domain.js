/**
 * Domains: all labels that a question can be answered with, in order (value → label → symbol).
 *
 *     size           the number of symbols
 *     find(value)    the symbol of a value: that of `other` if the value is unknown or missing, −1 if there is none
 *     label(x)       the label of a symbol
 */
import { UnknownValue } from "./errors.js";
import { demand, fieldsOf, LARGEST, list, readerOf, wholeNumber } from "./fields.js";

const UNITS = 1e7; // the finest step of a grid, 1e-7 degree: a centimetre on the ground

/** The domain that a record describes. */
export const domainOf = (record) => readerOf(record, READERS)(record);

/** The symbol of a person's value; the error says that there is none, and never what the value was. */
export function symbolOf(domain, value) {
  const symbol = domain.find(value);
  if (symbol < 0) throw new UnknownValue("the survey has no such label, and none for others");
  return symbol;
}

const READERS = {
  labels(record) {
    const { labels, other } = fieldsOf(record, "kind", "labels", "other");
    return labelDomain(list(labels), other);
  },

  /** The integers start … start + size − 1. */
  range(record) {
    const { size, start } = fieldsOf(record, "kind", "size", "start");
    wholeNumber(size, 1, LARGEST);
    wholeNumber(start, -(2 ** 52), 2 ** 52);
    const find = (value) => (Number.isInteger(value) && value >= start && value < start + size ? value - start : -1);
    return { size, find, label: (x) => start + x };
  },

  grid: (record) => gridDomain(fieldsOf(record, "kind", "south", "north", "west", "east", "step", "other")),

  /** H3 cells by their index as text, of one resolution; the value is the index. */
  h3(record) {
    const { cells, other } = fieldsOf(record, "kind", "cells", "other");
    const isCell = (cell) => /^8[0-9a-f]{14}$/.test(cell) && cell[1] === cells[0][1];
    demand(list(cells).every(isCell), "H3 indices of one resolution");
    return labelDomain(other === null ? cells : [...cells, other], other);
  },
};

/** Labels, text or integers. */
function labelDomain(labels, other) {
  labels.forEach(demandLabel);
  const symbols = new Map(labels.map((label, x) => [label, x]));
  demand(labels.length && symbols.size === labels.length, "labels that differ");
  demand(other === null || symbols.has(other), "one of the labels for other");
  const find = (value) =>
    symbols.get(typeof value === "string" ? value.normalize() : value) ?? symbols.get(other) ?? -1;
  return { size: labels.length, find, label: (x) => labels[x] };
}

function demandLabel(label) {
  demand(typeof label === "string" ? label : Number.isSafeInteger(label), "text or integers as labels");
}

/**
 * Cells of `step` degrees between four edges, numbered row by row from the south-western corner.
 *
 * A coordinate is rounded to 1e-7 degree, `c = ⌊degrees·10⁷ + ½⌋`; its row or column is `⌊(c − origin)/step⌋` in
 * integers. A value is a pair [latitude, longitude], or an object with these names, as browsers hand out positions.
 */
function gridDomain({ other, ...edges }) {
  const [south, north, west, east, step] = [edges.south, edges.north, edges.west, edges.east, edges.step].map(units);
  const rows = cellsBetween(south, north, step, 90);
  const columns = cellsBetween(west, east, step, 180);
  const cells = rows * columns;
  demand(cells < LARGEST, "fewer than 2^31 cells");
  if (other !== null) demandLabel(other);
  return {
    size: other === null ? cells : cells + 1,
    find(value) {
      const pair = Array.isArray(value) && value.length === 2 ? value : [value?.latitude, value?.longitude];
      const [row, column] = [index(pair[0], south, step), index(pair[1], west, step)];
      const inside = row >= 0 && row < rows && column >= 0 && column < columns;
      return inside ? row * columns + column : other === null ? -1 : cells;
    },
    label(x) {
      const corner = [south + Math.floor(x / columns) * step, west + (x % columns) * step];
      return x < cells ? corner.map(degrees).join() : other;
    },
  };
}

/** Degrees as an integer of 1e-7 degree, from the one text that records have for them. */
function units(text) {
  const size = Math.round(text * UNITS);
  demand(degrees(size) === text && Math.abs(size) <= 360 * UNITS, "degrees with at most 7 decimals, as text");
  return size;
}

/** The text of an integer of 1e-7 degree. */
const degrees = (size) => (size / UNITS).toFixed(7).replace(/\.?0+$/, "");

function cellsBetween(low, high, step, limit) {
  const onGlobe = -limit * UNITS <= low && low < high && high <= limit * UNITS;
  demand(onGlobe && step > 0 && (high - low) % step === 0, "edges on the globe, whole steps apart");
  return (high - low) / step;
}

/** The row or column of a coordinate; NaN, infinities and what is no number lie nowhere. */
function index(coordinate, origin, step) {
  if (typeof coordinate !== "number" || !(Math.abs(coordinate) <= 360)) return -1;
  return Math.floor((Math.floor(coordinate * UNITS + 0.5) - origin) / step);
}
