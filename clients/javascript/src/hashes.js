/** The modules that this core loads, by their hashes. Written by `npm run hashes`; do not edit. */
export const HASHES = {
  composites: "sha256-ZoX89cbunRHmUuoFVt+kbTuBDiClnI5AbHeTDz8jd7g=",
  groups: "sha256-lNkiKdyok9PjofroXsQGsWG1rOqXt7T2V9ggbaCcfcU=",
  places: "sha256-gDl4zaW95Cd95in/B9SfzUcIcZdYtkg194jnKO87gAE=",
  tables: "sha256-WFkAb8YK/lukEB3ZT9Q/O55VZFWxT3kYISskwLzI+uY=",
};

/** The kinds of records that each module reads. */
export const KINDS = {
  composites: ["product", "union"],
  groups: ["groups", "high-low", "tiers"],
  places: ["grid", "h3"],
  tables: ["binary", "matrix", "metric", "table"],
};
