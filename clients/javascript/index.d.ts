/** Context-aware local differential privacy on the device. */

/** What a domain takes: a label, a position, or the index of an H3 cell as text. */
export type Value =
  | string
  | number
  | null
  | readonly [latitude: number, longitude: number]
  | { readonly latitude: number; readonly longitude: number };

/** How often a survey is answered: once, and the first answer stands; or once a period, with a limit on distinct values. */
export type Repeat = "once" | { readonly every: "day" | "week" | "month" | "year"; readonly distinct: number };

type Fetch = (url: string, request: RequestInit) => Promise<Response>;

/** A question, its promise and the exact channel that keeps it. */
export class Survey {
  private constructor();

  /** Fetch a survey from an aggregator by the fingerprint that you reviewed. */
  static load(url: string, options: { fingerprint: string; fetch?: Fetch }): Promise<Survey>;

  /** Read a resolved survey; with a fingerprint, that survey and no other. Leave the options out for no pin. */
  static of(resolved: string | Uint8Array, options?: { fingerprint: string }): Promise<Survey>;

  readonly name: string;
  readonly title: string;
  readonly text: string;
  readonly contact: string;
  readonly opens: string;
  readonly closes: string;
  readonly repeat: Repeat;
  /** The edition of the survey, which fixes the format of its batches. */
  readonly edition: 1 | 2;
  readonly fingerprint: string;
  /** The number of symbols. */
  readonly size: number;
  /** The number of different reports. */
  readonly outputs: number;
  /** How the promise was proved here: by the odds of the codes, or report by report. What is not proved is refused. */
  readonly checked: "whole" | "odds";
  /** Whether some pair of answers has no protection. Such a survey needs `allowClear`. */
  readonly leavesOpen: boolean;
  /** What is sent unprotected, in English, for showing people before they answer; "" where nothing is. */
  readonly disclosure: string;

  /** The answers that are sent as they are: their number, and the labels of the first `limit`, 30 by default. */
  unprotected(limit?: number): { labels: (string | number)[]; count: number };

  /** The symbol of a value. Throws `UnknownValue`, which never holds the value. */
  symbol(value: Value): number;
  /** The label of a symbol. */
  label(symbol: number): string | number;
  /** A report with fresh randomness, which is not remembered: two reports about one value cost twice. */
  privatize(value: Value): number;
  /** The report of a symbol for two words of 64 bits: a pure function. */
  reportFrom(symbol: number, words: ArrayLike<bigint> & Iterable<bigint>): number;
  /** With which probability a symbol sends each report. */
  probabilities(symbol: number): number[];
}

/** Text by key, at once or by promises: `localStorage` by default, a `Map` for a process that may forget. */
export interface Store {
  get(key: string): string | null | undefined | Promise<string | null | undefined>;
  set(key: string, text: string): unknown;
  delete(key: string): unknown;
  /** Ask for storage that lasts until the person deletes it. Returns whether it does. Repeated surveys need it. */
  persist?(): boolean | Promise<boolean>;
}

/** The budget of a client that names none. */
export const DEFAULT_BUDGET: "4";

export interface ClientOptions {
  /** The aggregator. */
  url: string;
  store?: Store;
  /**
   * The most ε that all surveys of this device may spend together; "4" by default, `null` for no limit. In a browser a
   * device is an origin: every survey that pages of one origin ask counts against one total.
   */
  budget?: string | number | null;
  /** The person was shown what is sent unprotected; needed where `survey.leavesOpen`. */
  allowClear?: boolean;
  /** For how many milliseconds an answer is tried before it waits; 10,000 by default. A try under way may end. */
  patience?: number;
  fetch?: Fetch;
  clock?: () => number;
  sleep?: (milliseconds: number) => Promise<unknown>;
  now?: () => number;
}

export interface Answered {
  readonly survey: string;
  readonly batch: string;
  /** Whether the aggregator has counted it; else it waits on the device, unless that has forgotten meanwhile. */
  readonly delivered: boolean;
  /** How many answers wait. */
  readonly waiting: number;
}

export interface Prepared {
  readonly address: string;
  readonly batch: string;
  /** The request; null where the answer was counted, and the device keeps no copy of its report. */
  readonly body: string | null;
  /** Send as the page goes away; whether the browser took it on. */
  beacon(): boolean;
}

/** Answers one survey on behalf of one device, and never says more than was charged. */
export class Client {
  constructor(survey: Survey, options: ClientOptions);
  /** Settled when what waited from an earlier load has been tried. */
  readonly resumed: Promise<void>;
  /** Answer with a value: charged, remembered and sent. */
  answer(value: Value): Promise<Answered>;
  /** The request made ahead. This is the answer: it is sent at a later load even if `beacon()` is never called. */
  prepare(value: Value): Promise<Prepared>;
  /** What all surveys that this device answered have spent, rounded up. */
  spent(): Promise<number>;
  /** Send what waits. */
  flush(): Promise<void>;
  /** Delete the secret and all memory of answers; the ledger stays. */
  forget(): Promise<void>;
}

export class SfumatoError extends Error {}
export class InvalidSurvey extends SfumatoError {}
export class WrongSurvey extends SfumatoError {}
export class PrivacyViolation extends SfumatoError {
  readonly x?: number;
  readonly x2?: number;
  readonly output?: number;
}
export class InvalidSymbols extends SfumatoError {}
export class UnknownValue extends SfumatoError {}
export class EntropyUnavailable extends SfumatoError {}
export class MemoryUnavailable extends SfumatoError {}
export class BudgetExceeded extends SfumatoError {}
export class NotDelivered extends SfumatoError {}
export class InvalidBatch extends SfumatoError {}
export class ReportRejected extends SfumatoError {
  readonly index: number;
}
