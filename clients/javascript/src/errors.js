/**
 * All errors that the client throws on purpose. They have the names of the Python package.
 *
 *     SfumatoError
 *     ├── InvalidSurvey        a survey that is malformed, or not in its canonical form
 *     ├── WrongSurvey          not the survey that was pinned, or one that the aggregator does not serve
 *     ├── PrivacyViolation     a survey whose channel breaks its context; x, x2 and output show where
 *     ├── InvalidSymbols       a symbol or an argument of the wrong type or range
 *     ├── UnknownValue         a value outside the domain; never contains the value
 *     ├── EntropyUnavailable   no cryptographic randomness: nothing was privatised
 *     ├── MemoryUnavailable    the device's storage is denied, missing or full: nothing was sent
 *     ├── BudgetExceeded       the device has spent its budget, or its ledger is lost: nothing was sent
 *     ├── NotDelivered         the report waits on the device; it will be sent again, and counted once
 *     ├── InvalidBatch         the aggregator did not accept the body as a batch
 *     └── ReportRejected       the aggregator rejected the report; has its index, never its value
 *
 * No message and no property ever contains a person's value. Each class sets `name`, because minifiers rename classes.
 */
export class SfumatoError extends Error {
  name = "SfumatoError";

  constructor(message, details) {
    super(message);
    Object.assign(this, details);
  }
}

export class InvalidSurvey extends SfumatoError {
  name = "InvalidSurvey";
}

export class WrongSurvey extends SfumatoError {
  name = "WrongSurvey";
}

export class PrivacyViolation extends SfumatoError {
  name = "PrivacyViolation";
}

export class InvalidSymbols extends SfumatoError {
  name = "InvalidSymbols";
}

export class UnknownValue extends SfumatoError {
  name = "UnknownValue";
}

export class EntropyUnavailable extends SfumatoError {
  name = "EntropyUnavailable";
}

export class MemoryUnavailable extends SfumatoError {
  name = "MemoryUnavailable";
}

export class BudgetExceeded extends SfumatoError {
  name = "BudgetExceeded";
}

export class NotDelivered extends SfumatoError {
  name = "NotDelivered";
}

export class InvalidBatch extends SfumatoError {
  name = "InvalidBatch";
}

export class ReportRejected extends SfumatoError {
  name = "ReportRejected";
}
