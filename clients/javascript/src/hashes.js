/** The modules that this core loads, by their hashes. Written by `npm run hashes`; do not edit. */
export const HASHES = {
  composites: "sha256-9YKX8DCuKcSoIx+xP/8r4H7wpGvva+rRw0df6CKnWF0=",
  groups: "sha256-lnO7XIAs7FntAysQsrif36mvnx+En1Q+/0rCFjLfHyg=",
  places: "sha256-cO3JjKoFMjPLblByFg2ZrFP/HH1XSO1rP+ml49UKxV8=",
  tables: "sha256-QrWiZtnpFaN18zcdyAaSW9PEw8VqLCyVdwaL+N4TsVs=",
};
