/** A batch in JSON. A retry posts the same bytes under the same identifier. */
const FORMAT = 1;

/** Serialize a batch: its identifier (32 hexadecimal digits), the survey's fingerprint and the reports. */
export function toJson(batch, fingerprint, reports) {
  return `{"batch":"${batch}","format":${FORMAT},"reports":[${reports.join(",")}],"survey":"${fingerprint}"}`;
}
