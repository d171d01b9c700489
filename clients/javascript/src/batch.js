/** A batch in JSON. A retry posts the same bytes under the same identifier. */

/**
 * Serialize a batch: its identifier (32 hexadecimal digits), the survey, the reports and their period. Format 2 has the
 * period, and only half of the fingerprint, because the address of the upload has all of it.
 */
export function toJson(batch, { edition, fingerprint }, reports, period) {
  const key = edition > 1 && period ? `"period":"${period}",` : "";
  const survey = edition > 1 ? fingerprint.slice(0, 32) : fingerprint;
  return `{"batch":"${batch}","format":${edition},${key}"reports":[${reports.join(",")}],"survey":"${survey}"}`;
}
