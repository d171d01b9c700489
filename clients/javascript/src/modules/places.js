/** Domains of places: cells of a grid in degrees, and H3 cells. */
/** The kinds of records that this module reads. */
export const kinds = ["grid", "h3"];

export default ({ MAX_SIZE, expect, requireLabel, requireFields, labelDomain, list }) => {
  const UNITS = 1e7; // the finest step of a grid, 1e-7 degree: a centimetre on the ground

  const domains = {
    grid: (record) => gridDomain(requireFields(record, "kind", "south", "north", "west", "east", "step", "other")),

    /** H3 cells of one resolution, by their index as text. The value is the index. */
    h3(record) {
      const { cells, other } = requireFields(record, "kind", "cells", "other");
      const isCell = (cell) => /^8[0-9a-f]{14}$/.test(cell) && cell[1] === cells[0][1];
      expect(list(cells).every(isCell), "H3 indices of one resolution");
      return labelDomain(other === null ? cells : [...cells, other], other);
    },
  };

  /**
   * A grid of cells of `step` degrees between four edges, numbered row by row from the south-western corner.
   *
   * A coordinate is rounded to 1e-7 degree, `c = ⌊degrees·10⁷ + ½⌋`; its row or column is `⌊(c − origin)/step⌋` in
   * integers. A value is a pair [latitude, longitude], or an object with these properties, as browsers provide.
   *
   * Latitude 90 is in the last row of a grid that reaches it. Longitudes 180 and −180 are one: the western edge of a
   * grid that starts there, or the end of the last column of one that ends there. Surveys of edition 1 keep an older
   * rule: both are outside. The survey sets the domain's `edition`.
   */
  function gridDomain({ other, ...edges }) {
    const [south, north, west, east, step] = [edges.south, edges.north, edges.west, edges.east, edges.step].map(units);
    const rows = cellsBetween(south, north, step, 90);
    const columns = cellsBetween(west, east, step, 180);
    const cells = rows * columns;
    expect(cells < MAX_SIZE, "fewer than 2^31 cells");
    if (other !== null) requireLabel(other);
    const [pole, antimeridian] = [90 * UNITS, 180 * UNITS];

    /** Move a position at the end of the globe into a cell. */
    function joined(latitude, longitude) {
      if (latitude === pole && north === pole) latitude -= 1;
      if (Math.abs(longitude) === antimeridian) {
        if (west === -antimeridian) longitude = west;
        else if (east === antimeridian) longitude = east - 1;
      }
      return [latitude, longitude];
    }

    return {
      size: other === null ? cells : cells + 1,
      find(value) {
        const pair = Array.isArray(value) && value.length === 2 ? value : [value?.latitude, value?.longitude];
        let [latitude, longitude] = pair.map(rounded);
        if (this.edition > 1) [latitude, longitude] = joined(latitude, longitude);
        const [row, column] = [Math.floor((latitude - south) / step), Math.floor((longitude - west) / step)];
        const inside = row >= 0 && row < rows && column >= 0 && column < columns;
        return inside ? row * columns + column : other === null ? -1 : cells;
      },
      label(x) {
        const corner = [south + Math.floor(x / columns) * step, west + (x % columns) * step];
        return x < cells ? corner.map(degrees).join() : other;
      },
    };
  }

  /** Parse degrees to an integer in units of 1e-7 degree. Records have only one text for each. */
  function units(text) {
    const size = Math.round(text * UNITS);
    expect(degrees(size) === text && Math.abs(size) <= 360 * UNITS, "degrees with at most 7 decimals, as text");
    return size;
  }

  /** Return the text of an integer in units of 1e-7 degree. */
  const degrees = (size) => (size / UNITS).toFixed(7).replace(/\.?0+$/, "");

  function cellsBetween(low, high, step, limit) {
    const onGlobe = -limit * UNITS <= low && low < high && high <= limit * UNITS;
    expect(onGlobe && step > 0 && (high - low) % step === 0, "edges on the globe, whole steps apart");
    return (high - low) / step;
  }

  /** Round a coordinate to units; NaN for infinities and anything that is not a number. */
  function rounded(coordinate) {
    if (typeof coordinate !== "number" || !(Math.abs(coordinate) <= 360)) return NaN;
    return Math.floor(coordinate * UNITS + 0.5);
  }

  return { domains };
};
