import type { Loss, OnLoss } from '../importer.js';

const EXCERPT_CHARS = 120;

/** A text cut to a length that a message can carry, with its control characters made visible. */
export function excerpt(text: string): string {
  const start = text.slice(0, EXCERPT_CHARS).toWellFormed();
  const clear = start.replace(/\p{Cc}/gu, (char) => JSON.stringify(char).slice(1, -1));
  return text.length > EXCERPT_CHARS ? `${clear}… (${text.length} characters)` : clear;
}

/** The loss of a value that is no object where one was expected: `a message`. */
export function notAnObject(value: unknown, expected: string, place: string): Loss {
  return { reason: 'malformed-record', place, detail: `a ${value === null ? 'null' : typeof value} where ${expected} was expected` };
}

/** The loss of a role that no entry has: what has it is kept as a message of the program. */
export function unknownRole(role: unknown, place: string, what = 'a message'): Loss {
  return { reason: 'unknown-record', place, detail: `${what} with the role ${JSON.stringify(role)}: kept as what the program said` };
}

/** Counts the content of a recording that only the provider can read, such as encrypted thoughts and pictures. */
export class OpaqueContent {
  readonly #kinds = new Map<string, { readonly place: string; count: number }>();

  note(kind: string, place: string): void {
    const known = this.#kinds.get(kind);
    if (known === undefined) this.#kinds.set(kind, { place, count: 1 });
    else known.count += 1;
  }

  /** Reports what was counted, one loss for each kind. */
  finish(onLoss: OnLoss): void {
    for (const [kind, { place, count }] of this.#kinds) {
      onLoss({ reason: 'opaque-content', place, detail: `${kind}: ${count} of them, the first here` });
    }
  }
}
