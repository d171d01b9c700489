/** A batch in JSON: what is posted, byte for byte. A retry sends the same bytes under the same name. */
const FORMAT = 1;

/** The body of a batch: its identifier (32 hexadecimal digits), the survey's fingerprint and the reports. */
export function batchBody(batch, fingerprint, reports) {
  return `{"batch":"${batch}","format":${FORMAT},"reports":[${reports.join(",")}],"survey":"${fingerprint}"}`;
}
