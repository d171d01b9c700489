/** The modules that this core loads, by their hashes. Written by `npm run hashes`; do not edit. */
export const HASHES = {
  groups: "sha256-VLsg42Kf2V6YDZVj6vhxR9b1hv7IUjlHl+G4LS6lEhE=",
  places: "sha256-QB87AfMxpCCaoGrO5DTcOaD1Wi9400UXSN3On8i3QUE=",
  products: "sha256-e0ZtJOc/NBKugPkskafVSFqPugxLoBJ9b00d13cHZls=",
  tables: "sha256-mxudOgJdfNEOqYfOYLpSvsUCdq/PWpd0qhTitqK1Nzc=",
  unions: "sha256-0uA3gCMoDobuCmdsHc1dnGUWeXz2uIXmCU45yB/cDu8=",
};
