/** The modules that this core loads, by their hashes. Written by `npm run hashes`; do not edit. */
export const HASHES = {
  groups: "sha256-k5x/zAjMRLvltmHQ6pINrhKeBSeicItVjAiXUaoBaYc=",
  places: "sha256-JbjKMUe5ljTZEnkxeDBx1akzrfyM2iESXCNzm5mSmo0=",
  products: "sha256-UnVJpoLkMOQUSWM0IPto7ZWTkwSmBfrMzBjyeIe2dVQ=",
  tables: "sha256-IYVjEVHL8rrv+ERST5NJsNHSAGrQt7c5eTN5BFmPpbI=",
  unions: "sha256-/chs+iRkGJSaTRR2cQ6ZuB6tWcJQoj2yDkAnRyad0gQ=",
};
