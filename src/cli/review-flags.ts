/** Flags that all questions about the past share, as commander hands them over. */
export interface ReviewFlags {
  readonly data?: string;
  readonly mount?: readonly string[];
  readonly json?: boolean;
  /** False with `--no-pager`. */
  readonly pager?: boolean;
  readonly at?: string;
  readonly asOf?: string;
  readonly validTime?: string;
  readonly tx?: string;
  readonly session?: string;
  readonly object?: string;
  readonly limit?: number;
  readonly context?: number;
  readonly raw?: boolean;
  readonly timeout?: number;
  readonly args?: string;
  /** False with `--no-content`. */
  readonly content?: boolean;
}
