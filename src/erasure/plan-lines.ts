import { escapedLine, grouped } from '../cli/output.js';
import { shortBytes } from '../cli/shown-values.js';
import type { NodeProfile } from '../node/node-state.js';
import type { ErasurePlan } from './plan.js';
import { extentOf } from './plan.js';
import type { Selection } from './selection.js';

/** Where erased data may remain: copies outside the database, and stores that keep data longer. */
export interface Elsewhere {
  /** One line for each copy. */
  readonly copies: readonly string[];
  /** The profile of a shared log. Undefined if the whole database is in the data folder. */
  readonly profile: NodeProfile | undefined;
}

const SHOWN = 10;

/** Describes a selection, without the selected text. */
export function selectionText(selection: Selection): string {
  if (selection.kind === 'session') return `session ${selection.session}`;
  if (selection.kind === 'object') return `object ${selection.id}`;
  if (selection.kind === 'before') return `sessions before ${new Date(selection.at).toISOString()}`;
  return selection.kind === 'retention' ? 'sessions past their retention' : 'a text';
}

const OF_POSTGRES = [
  'PostgreSQL keeps removed rows of tx_events until VACUUM has run over it. By default it runs once a fifth of the ' +
    'table has changed; VACUUM FULL tx_events removes them at once',
  'PostgreSQL keeps its write-ahead log until later checkpoints (checkpoint_timeout, 5 minutes by default)',
  'Archived write-ahead logs, replicas and pg_dump files of PostgreSQL keep the data until you remove them',
];

/** The data that a shared store keeps after the erasure, and for how long. */
const LONGER: Readonly<Partial<Record<NodeProfile, readonly string[]>>> = {
  postgres: OF_POSTGRES,
  kafka: [...OF_POSTGRES, 'The topic of Kafka keeps ids as SHA-1 hashes and no content. Its retention is unlimited'],
};

function elsewhere({ copies, profile }: Elsewhere): readonly string[] {
  const longer = (profile === undefined ? undefined : LONGER[profile]) ?? [];
  const others =
    longer.length === 0
      ? []
      : ['Other hosts with a node of this log rewrite their own index with: palimpsest erase --sweep'];
  return [...longer, ...others, ...copies.map((line) => `Also erased: ${line}`)];
}

function some(lines: readonly string[]): readonly string[] {
  return lines.length <= SHOWN ? lines : [...lines.slice(0, SHOWN), `… and ${lines.length - SHOWN} more`];
}

function closingLine({ evict }: ErasurePlan, { profile }: Elsewhere): string {
  if (evict.length === 0) return 'There is nothing to erase.';
  return profile === undefined
    ? 'Nothing was erased. Erase exactly this with --apply --reason TEXT instead of --plan.'
    : 'Nothing was erased. Several nodes share this log, so --apply is refused: see the notes.';
}

/** Returns a plan as lines for people. */
export function planLines(plan: ErasurePlan, where: Elsewhere): readonly string[] {
  const { evict, bytes, sessions, unproved, kept, buried, txId, selection } = plan;
  const { digest } = extentOf(plan);
  return [
    `plan      ${selectionText(selection)}, as of transaction ${txId}, digest ${digest.slice(0, 12)}`,
    `erases    ${grouped(evict.length)} documents with ${shortBytes(bytes)}; ` +
      `${grouped(buried.length)} leave a tombstone`,
    ...some(sessions.map((session) => `session   ${session}: whole`)),
    ...some(
      unproved.map(
        ({ session, from, turn, contexts }) =>
          `session   ${session}: LOSES THE PROOF of ${contexts} contexts, from step ${from} (turn ${turn}) on`,
      ),
    ),
    ...some(
      kept.map(
        ({ document, by }) =>
          `stays     ${document.type} ${escapedLine(document.id)}, which ${escapedLine(by.id)} needs`,
      ),
    ),
    ...elsewhere(where).map((line) => `note      ${line}`),
    closingLine(plan, where),
  ];
}

/** Returns a plan as JSON. */
export function planJson(plan: ErasurePlan, where: Elsewhere): object {
  const { evict, bytes, sessions, unproved, kept, buried, txId, selection } = plan;
  return {
    what: selectionText(selection),
    txId,
    bytes,
    digest: extentOf(plan).digest,
    documents: evict,
    tombstones: buried.map(({ id }) => id),
    sessions,
    unproved,
    kept: kept.map(({ document, by }) => ({ id: document.id, type: document.type, neededBy: by.id })),
    notes: elsewhere(where),
  };
}
