/** The modules that this core loads, by their hashes. Written by `npm run hashes`; do not edit. */
export const HASHES = {
  groups: "sha256-lnO7XIAs7FntAysQsrif36mvnx+En1Q+/0rCFjLfHyg=",
  places: "sha256-cO3JjKoFMjPLblByFg2ZrFP/HH1XSO1rP+ml49UKxV8=",
  products: "sha256-GygNgWMbBbmmpPTrMbL/zMsSVqiHqOa9y+tSVXsJAxM=",
  tables: "sha256-QrWiZtnpFaN18zcdyAaSW9PEw8VqLCyVdwaL+N4TsVs=",
  unions: "sha256-Q85/O9J9emc0xxsWOmiQt8BHxtb12fpK+88Be7erx6M=",
};
