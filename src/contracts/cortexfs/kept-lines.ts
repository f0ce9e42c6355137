import type { Entry, EntryId } from '../projection/entry.js';
import type { EventLine } from './event-lines.js';
import { type KeptImport, wholeLine } from './kept-import.js';
import { type MessageLine, messageLines } from './message-lines.js';
import type { Fields } from './read-messages.js';

/** The content of each step, and the entry that shows it. */
class ShownSteps {
  readonly #shown = new Map<
    number,
    { readonly entry: EntryId; readonly text: string | null; readonly isAsk: boolean }
  >();

  constructor(entries: readonly Entry[]) {
    for (const entry of entries) {
      const isStep = entry.kind === 'result' || (entry.kind !== 'approval' && entry.id.startsWith('m'));
      if (isStep) this.#shown.set(entry.seq, { entry: entry.id, text: entry.text, isAsk: entry.kind === 'user' });
    }
  }

  text(seq: number): string | null | undefined {
    return this.#shown.get(seq)?.text;
  }

  line(seq: number, text: string): MessageLine {
    const { role } = JSON.parse(text) as Fields;
    const { entry = 'system' as EntryId, isAsk = false } = this.#shown.get(seq) ?? {};
    return { text, role: role as MessageLine['role'], entry, seq, isOwn: false, isAsk: isAsk && role === 'user' };
  }
}

/** Replaces generated lines by the imported lines of the same steps. */
function withKept<Line extends { readonly seq: number }>(
  made: readonly Line[],
  imports: readonly KeptImport[],
  keptOf: (one: KeptImport) => readonly Line[],
): readonly Line[] {
  let from = 0;
  const parts = imports.map((one) => {
    const before = made.filter(({ seq }) => seq > from && seq <= one.after);
    from = Math.max(from, one.upto);
    return [before, keptOf(one)];
  });
  return [...parts.flat(2), ...made.filter(({ seq }) => seq > from)];
}

/**
 * Returns the lines of `messages.jsonl`: imported lines unchanged, others made from their entries.
 */
export function shownMessages(
  entries: readonly Entry[],
  imports: readonly KeptImport[],
  last: number,
): readonly MessageLine[] {
  const made = messageLines(entries);
  if (imports.length === 0) return made;
  const own = new Set(made.map(({ seq, text }) => `${seq} ${text}`));
  const steps = new ShownSteps(entries);
  return withKept(made, imports, ({ messages }) =>
    messages.flatMap((kept) => {
      const [seq] = kept;
      if (seq > last) return [];
      const line = steps.line(seq, wholeLine(kept, steps.text(seq)));
      return [{ ...line, isOwn: own.has(`${seq} ${line.text}`) }];
    }),
  );
}

/**
 * Returns the lines of `events.jsonl`: imported lines unchanged, others generated. If a record was
 * added to an imported step later, its event follows the imported lines.
 */
export function shownEvents(
  made: readonly EventLine[],
  imports: readonly KeptImport[],
  last: number,
): readonly EventLine[] {
  const upto = imports.at(-1)?.upto;
  if (upto === undefined) return made;
  const isLate = ({ seq, isLater }: EventLine): boolean => isLater === true && seq <= upto;
  const kept = withKept(
    made.filter((line) => !isLate(line)),
    imports,
    ({ events }) => events.flatMap(([seq, text]) => (seq > last ? [] : [{ seq, text }])),
  );
  const begun = kept.findIndex(({ seq }) => seq > upto);
  const end = begun < 0 ? kept.length : begun;
  return [...kept.slice(0, end), ...made.filter(isLate), ...kept.slice(end)];
}
