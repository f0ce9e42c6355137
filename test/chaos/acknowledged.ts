import { readFileSync } from 'node:fs';
import { hashText } from '../../src/objects/hashes.js';
import type { ObjectId, SessionId, Sha256 } from '../../src/objects/ids.js';

/** A tool call with an acknowledged answer. `seq` and `sets` are absent for overlapping calls. */
export interface AcknowledgedCall {
  readonly kind: 'call';
  readonly session: SessionId;
  readonly id: ObjectId;
  readonly tool: string;
  readonly seq?: number;
  /** SHA-256 of index, active and pinned set after the call. */
  readonly sets?: Sha256;
  /** SHA-256 of the answer that the agent was given. */
  readonly answer: Sha256;
  /** SHA-256 of the whole output. */
  readonly content: Sha256;
  /** The files that it read. */
  readonly reads: readonly { readonly id: ObjectId; readonly fileHash: Sha256 }[];
}

export interface AcknowledgedMessage {
  readonly kind: 'message';
  readonly session: SessionId;
  readonly seq: number;
  readonly role: string;
  readonly text: Sha256;
}

export interface AcknowledgedPrompt {
  readonly kind: 'prompt';
  readonly session: SessionId;
  readonly text: Sha256;
}

/** An assembled context, and the basis from which it can be rebuilt. */
export interface AcknowledgedContext {
  readonly kind: 'context';
  readonly session: SessionId;
  readonly step: number;
  readonly basis: { readonly validTime: string; readonly txId?: number };
  readonly text: Sha256;
  /**
   * The beginning of the hash of each of its first lines, to show where another context differs.
   */
  readonly lines: readonly string[];
}

/**
 * A handed-out context: its assembly record is kept like a step, and `verify` rebuilds the context.
 */
export interface AcknowledgedHandout {
  readonly kind: 'handed';
  readonly session: SessionId;
  readonly step: number;
  readonly text: Sha256;
}

/** The lines of a context, each by the beginning of its hash. */
export const lineMarks = (text: string): readonly string[] =>
  text
    .split('\n')
    .slice(0, 300)
    .map((line) => hashText(line).slice(0, 8));

/** A session as a new process found it: every step after a given step. */
export interface FoundSession {
  readonly session: SessionId;
  readonly seq: number;
  readonly since: number;
  readonly steps: readonly {
    readonly seq: number;
    readonly call?: ObjectId;
    readonly answer?: Sha256;
    readonly message?: Sha256;
  }[];
}

export interface Resumed {
  readonly kind: 'resumed';
  readonly found: readonly FoundSession[];
  /** From the start of the process until both sessions were open. */
  readonly ms: number;
  readonly notices: readonly string[];
}

/** A refusal, although nothing may be refused to the workload. */
export interface Refused {
  readonly kind: 'refused';
  readonly what: string;
  readonly error: string;
}

export type Line =
  | AcknowledgedCall
  | AcknowledgedMessage
  | AcknowledgedPrompt
  | AcknowledgedContext
  | AcknowledgedHandout
  | Resumed
  | Refused;

/** The lines of one process. An incomplete last line does not count as reported. */
export function readLines(file: string): readonly Line[] {
  const text = readFileSync(file, { encoding: 'utf8', flag: 'a+' });
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
}
