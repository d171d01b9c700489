/** The modules that this core loads, by their hashes. Written by `npm run hashes`; do not edit. */
export const HASHES = {
  groups: "sha256-iFzpmkAVVvOKPW+qzbjW4PHGKpiKCdu3G9zAVIBcFwc=",
  places: "sha256-jpDUPEAh1r5p0OGu7I3tFhgJkPkRZRiKRZK3R9eTO/w=",
  products: "sha256-53q5ca4effaak0CkSpaGaJsfwYpGy56kG/8IxvGq9Zw=",
  tables: "sha256-03IGdAxCO3dbxOnnOOaetXY/7VBQRfDOiuz9OjyGuTc=",
  unions: "sha256-pYBL72jg+4hkcx2XJPj7OSt4r4JydVW2iD5jePrQzO8=",
};
