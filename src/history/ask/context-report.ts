import { setImmediate } from 'node:timers/promises';
import { blockText } from '../../assembly/assemble.js';
import type { SectionName } from '../../assembly/assembly-record.js';
import { type AssemblyInput, chatLines, layoutOf } from '../../assembly/layout.js';
import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { requireSession } from '../rebuild/find-session.js';
import { type PastContext, PastContexts } from '../rebuild/past-context.js';
import type { Timeline } from '../rebuild/timeline.js';
import { askContext } from './ask.js';
import { type MomentText, parseReference } from './reference.js';
import { countTokens, TOKENIZER } from './token-count.js';

/** How large something is in a context. */
export interface ShownSize {
  /** UTF-16 units. */
  readonly chars: number;
  readonly tokens: number;
}

/** What one object takes up of a context. */
export interface ObjectEntry {
  readonly id: ObjectId;
  readonly type: ObjectMetadata['type'];
  /** Its path, or the tool's name. */
  readonly name: string;
  readonly active: boolean;
  /** Length of its text as stored. */
  readonly rawChars: number;
  /** Its line in the pool. */
  readonly line: ShownSize;
  /** Its block of active content; undefined where it is not active. */
  readonly block: ShownSize | undefined;
  /** Line and block together. */
  readonly shown: ShownSize;
}

/** Where a context's characters and tokens go: by section, and by object, the largest first. */
export interface ContextLedger {
  readonly tokenizer: typeof TOKENIZER;
  readonly sections: readonly ({ readonly name: SectionName } & ShownSize)[];
  readonly total: ShownSize;
  readonly objects: readonly ObjectEntry[];
  /** The texts of all objects as stored, together. */
  readonly rawChars: number;
}

const NOTHING: ShownSize = { chars: 0, tokens: 0 };

/** A piece of a section with the line end behind it. */
function sizeOf(piece: string): ShownSize {
  const text = `${piece}\n`;
  return { chars: text.length, tokens: countTokens(text) };
}

const sum = (sizes: readonly ShownSize[]): ShownSize =>
  sizes.reduce((total, { chars, tokens }) => ({ chars: total.chars + chars, tokens: total.tokens + tokens }), NOTHING);

/**
 * Counts a context piece by piece: the prompt, each line of the pool, each message with the lines of its calls, each block. Counted as text whatever
 * it was handed out as; pieces are counted by themselves, with the line end behind them, and added up.
 */
export function contextLedger(input: AssemblyInput): ContextLedger {
  const { system, pool, chat, blocks } = layoutOf(input);
  const lines = pool.map(sizeOf);
  const texts = new Map(blocks.map((block) => [block.id, sizeOf(blockText(block))]));
  const messages = chat.map((entry) => sizeOf(chatLines(entry).join('\n')));
  const sections = [
    { name: 'system' as const, ...(system === '' ? NOTHING : sizeOf(system)) },
    { name: 'pool' as const, ...sum(lines) },
    { name: 'chat' as const, ...sum(messages) },
    { name: 'active' as const, ...sum([...texts.values()]) },
  ];
  const objects = input.pool.map((metadata, i): ObjectEntry => {
    const { id, type, charCount } = metadata;
    const [line, block] = [lines[i] ?? NOTHING, texts.get(id)];
    const name = type === 'file' ? metadata.displayPath : metadata.tool;
    return { id, type, name, active: block !== undefined, rawChars: charCount, line, block, shown: sum([line, block ?? NOTHING]) };
  });
  return {
    tokenizer: TOKENIZER,
    sections,
    total: sum(sections),
    objects: objects.sort((a, b) => b.shown.tokens - a.shown.tokens || b.rawChars - a.rawChars),
    rawChars: objects.reduce((total, { rawChars }) => total + rawChars, 0),
  };
}

/** A context of the past with its ledger. */
export interface ReportedContext {
  readonly context: PastContext;
  readonly ledger: ContextLedger;
}

/** Contexts that are listed where nobody says how many. */
const LISTED = 20;

/** The ledger of a context. */
export async function withLedger(context: PastContext): Promise<ReportedContext> {
  // Counting keeps the thread busy: other work of this process runs between two contexts.
  await setImmediate();
  return { context, ledger: contextLedger(context.input) };
}

/** The ledger of one context. */
export async function reportDetail(timeline: Timeline, reference: string, text: MomentText): Promise<ReportedContext> {
  return withLedger(await askContext(timeline, reference, text));
}

/** The ledgers of a session's contexts. */
export interface ContextList {
  readonly session: SessionId;
  readonly tokenizer: typeof TOKENIZER;
  readonly reported: readonly ReportedContext[];
}

/**
 * The ledgers of a session's contexts, the newest first: of every one that was handed out and a record kept of, or, where there is no record, as they
 * stood at the end of each turn.
 */
export async function reportList(timeline: Timeline, reference: string, limit = LISTED): Promise<ContextList> {
  const session = await requireSession(timeline.present, parseReference(reference).name);
  const contexts = new PastContexts(timeline);
  const records = (await contexts.records(session)).slice(-limit);
  const turns = records.length > 0 ? [] : (await timeline.turns(session)).slice(-limit);
  const reported: ReportedContext[] = [];
  for (const proof of records) reported.unshift(await withLedger(await contexts.ofRecord(proof)));
  for (const { turn } of turns) reported.unshift(await withLedger(await contexts.at(session, { moment: { kind: 'turn', turn } })));
  return { session, tokenizer: TOKENIZER, reported };
}
