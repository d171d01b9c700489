/** The modules that this core loads, by their hashes. Written by `npm run hashes`; do not edit. */
export const HASHES = {
  groups: "sha256-VUl4+lkIpqFl87AFjjyjX/2SL2NiPtjGNWKJUyT2bIA=",
  places: "sha256-QB87AfMxpCCaoGrO5DTcOaD1Wi9400UXSN3On8i3QUE=",
  products: "sha256-e0ZtJOc/NBKugPkskafVSFqPugxLoBJ9b00d13cHZls=",
  tables: "sha256-DlkqL3h1CoiPd8g9J/NSaAa9xRue/eEDWIplBrGPvtg=",
  unions: "sha256-0uA3gCMoDobuCmdsHc1dnGUWeXz2uIXmCU45yB/cDu8=",
};
