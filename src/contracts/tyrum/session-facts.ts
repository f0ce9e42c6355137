import type { ContextRecord, RecordBody } from '../../objects/context-record.js';
import type { ApprovalEntry, Entry } from '../projection/entry.js';
import type { Projection } from '../projection/project-session.js';
import { oneLine, shownLine } from '../projection/summary.js';
import type { Checkpoint, CheckpointList, OBLIGATION_LISTS } from './checkpoint.js';

/** The record kinds from which facts are derived. */
export const FACT_KINDS = ['note', 'missing'] as const;

/** The texts of a checkpoint's lists that are known without a model. */
export type KnownFacts = Readonly<Record<Exclude<CheckpointList, 'critical_identifiers'>, readonly string[]>>;

/** Facts of a session that are known without a model: notes, requests of users, decisions. */
export interface SessionFacts {
  readonly goal: string;
  /** Notes, decided approvals and open work, which every checkpoint must contain. */
  readonly obligations: Pick<Checkpoint, (typeof OBLIGATION_LISTS)[number]>;
  /**
   * Returns the facts of some entries. `clean` changes each text before sentences are taken from
   * it, for example to remove secrets.
   */
  of(entries: readonly Entry[], clean?: Clean): KnownFacts;
}

type Clean = (text: string) => string;
const asItIs: Clean = (text) => text;

/**
 * English words that state requirements, because most prompts for agents are English. Notes cover
 * other wordings.
 */
const DEMANDS = new RegExp(
  "\\b(?:must|must ?n[o']t|never|always|do not|don['’]?t|should not|shouldn['’]?t|only|without|avoid" +
    '|prefer|make sure|ensure|no longer|at (?:least|most)|required?)\\b',
  'i',
);
const LONGEST_DEMAND = 240;
/** Maximum requirements per message. In a long pasted text, few sentences are the user's own. */
const MOST_DEMANDS = 8;

/** Returns the sentences of a message that state a requirement. */
function demandsOf(text: string): readonly string[] {
  const prose = text.replace(/```[\s\S]*?(?:```|$)/g, '\n');
  const sentences = prose.match(/[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]?/g) ?? [];
  return sentences
    .map(oneLine)
    .filter((sentence) => sentence.length <= LONGEST_DEMAND && DEMANDS.test(sentence))
    .slice(0, MOST_DEMANDS);
}

type NoteKind = RecordBody<'note'>['note'];

/**
 * Returns a function from a kind of note to the texts of its open notes. Of several notes with one
 * name, only the last counts.
 */
function openNotes(records: readonly ContextRecord<'note'>[]): (kind: NoteKind, clean?: Clean) => readonly string[] {
  const byName = new Map<string, RecordBody<'note'>>();
  for (const { body } of records) {
    byName.delete(body.name);
    byName.set(body.name, body);
  }
  const open = [...byName.values()].filter(({ isOpen }) => isOpen !== false);
  return (kind, clean = asItIs) => open.flatMap(({ note, text }) => (note === kind ? [oneLine(clean(text))] : []));
}

const SETTLED: ReadonlySet<RecordBody<'missing'>['status']> = new Set(['resolved', 'declined', 'expired']);

function decisionOf({ approval, state, text, tool, reason }: ApprovalEntry, clean: Clean): string {
  const what = tool === undefined ? '' : ` for ${oneLine(tool)}`;
  return shownLine(
    `approval ${approval}${what} was ${state}: ${clean(text)}${reason === undefined ? '' : ` (${clean(reason)})`}`,
    LONGEST_DEMAND,
  );
}

const LONGEST_GOAL = 600;

/** Derives the facts of a session from its projection and the records at the same basis. */
export function sessionFacts(
  { entries, files }: Projection,
  records: readonly ContextRecord<'note' | 'missing'>[],
): SessionFacts {
  const noted = openNotes(records.filter((record) => record.kind === 'note'));
  const paths = new Map(files.map(({ metadata }) => [metadata.id, metadata.displayPath]));
  const questions = new Set<string>();
  for (const record of records) {
    if (record.kind !== 'missing') continue;
    const { question, status } = record.body;
    if (SETTLED.has(status)) questions.delete(question);
    else questions.add(question);
  }
  const decided = (clean: Clean): readonly string[] =>
    entries.flatMap((entry) =>
      entry.kind === 'approval' && entry.state !== 'pending' ? [decisionOf(entry, clean)] : [],
    );
  const first = entries.find(({ kind }) => kind === 'user');
  const asked = first?.kind === 'user' ? first.text : '';
  const known = (clean: Clean): SessionFacts['obligations'] => ({
    user_constraints: [...noted('constraint', clean)],
    decisions: [...decided(clean), ...noted('decision', clean)],
    pending_work: [...noted('todo', clean)],
    unresolved_questions: [...noted('question', clean), ...[...questions].map((question) => oneLine(clean(question)))],
  });
  return {
    goal: noted('goal').at(-1) ?? shownLine(asked, LONGEST_GOAL),
    obligations: known(asItIs),
    of: (some, clean = asItIs) => {
      const obligations = known(clean);
      const demands = some.flatMap((entry) => (entry.kind === 'user' ? demandsOf(clean(entry.text)) : []));
      return {
        ...obligations,
        user_constraints: [...demands, ...obligations.user_constraints],
        discoveries: noted('fact', clean),
        relevant_files: some.flatMap((entry) =>
          entry.kind === 'result' ? entry.files.flatMap((id) => paths.get(id) ?? []) : [],
        ),
        completed_work: noted('done', clean),
      };
    },
  };
}
