import { blockText } from '../../assembly/assemble.js';
import type { SectionName } from '../../assembly/assembly-record.js';
import { type AssemblyInput, chatLines, layoutOf } from '../../assembly/layout.js';
import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { requireSession } from '../rebuild/find-session.js';
import { type PastContext, PastContexts } from '../rebuild/past-context.js';
import type { Timeline } from '../rebuild/timeline.js';
import { askContext, type ContextQuestion } from './ask.js';
import { parseReference } from './reference.js';
import { type CountTexts, countingOnce, TOKENIZER } from './tokenizer.js';

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

const sum = (sizes: readonly ShownSize[]): ShownSize =>
  sizes.reduce((total, { chars, tokens }) => ({ chars: total.chars + chars, tokens: total.tokens + tokens }), NOTHING);

/** What is counted of a context, each with the line end behind it: the prompt, each line of the pool, each message with the lines of its calls, each block. */
interface LedgerPieces {
  readonly system: readonly string[];
  readonly lines: readonly string[];
  readonly messages: readonly string[];
  readonly blocks: ReadonlyMap<ObjectId, string>;
}

const withLineEnd = (piece: string): string => `${piece}\n`;

function ledgerPieces(input: AssemblyInput): LedgerPieces {
  const { system, pool, chat, blocks } = layoutOf(input);
  return {
    system: system === '' ? [] : [withLineEnd(system)],
    lines: pool.map(withLineEnd),
    messages: chat.map((entry) => withLineEnd(chatLines(entry).join('\n'))),
    blocks: new Map(blocks.map((block) => [block.id, withLineEnd(blockText(block))])),
  };
}

/** The ledger of a context whose pieces take so many tokens. */
function ledgerOf(input: AssemblyInput, pieces: LedgerPieces, tokens: ReadonlyMap<string, number>): ContextLedger {
  const sizeOf = (text: string): ShownSize => ({ chars: text.length, tokens: tokens.get(text) ?? 0 });
  const lines = pieces.lines.map(sizeOf);
  const blocks = new Map([...pieces.blocks].map(([id, text]) => [id, sizeOf(text)]));
  const sections = [
    { name: 'system' as const, ...sum(pieces.system.map(sizeOf)) },
    { name: 'pool' as const, ...sum(lines) },
    { name: 'chat' as const, ...sum(pieces.messages.map(sizeOf)) },
    { name: 'active' as const, ...sum([...blocks.values()]) },
  ];
  const objects = input.pool.map((metadata, i): ObjectEntry => {
    const { id, type, charCount } = metadata;
    const [line, block] = [lines[i] ?? NOTHING, blocks.get(id)];
    const name = type === 'file' ? metadata.displayPath : metadata.tool;
    return {
      id,
      type,
      name,
      active: block !== undefined,
      rawChars: charCount,
      line,
      block,
      shown: sum([line, block ?? NOTHING]),
    };
  });
  return {
    tokenizer: TOKENIZER,
    sections,
    total: sum(sections),
    objects: objects.sort((a, b) => b.shown.tokens - a.shown.tokens || b.rawChars - a.rawChars),
    rawChars: objects.reduce((total, { rawChars }) => total + rawChars, 0),
  };
}

/**
 * Counts a context piece by piece, as text whatever it was handed out as; pieces are counted by themselves and added up. All of them are asked for at once, equal ones
 * once.
 */
export async function contextLedger(input: AssemblyInput, count: CountTexts): Promise<ContextLedger> {
  const pieces = ledgerPieces(input);
  const texts = [...new Set([...pieces.system, ...pieces.lines, ...pieces.messages, ...pieces.blocks.values()])];
  const counts = await count(texts);
  return ledgerOf(input, pieces, new Map(texts.map((text, i) => [text, counts[i] ?? 0])));
}

/** A context of the past with its ledger. */
export interface ReportedContext {
  readonly context: PastContext;
  readonly ledger: ContextLedger;
}

/** Contexts that are listed where nobody says how many. */
const LISTED = 20;

/** The ledger of a context. */
export async function withLedger(context: PastContext, count: CountTexts): Promise<ReportedContext> {
  return { context, ledger: await contextLedger(context.input, count) };
}

/** The ledger of one context. */
export async function reportDetail(
  timeline: Timeline,
  {
    reference,
    text,
    count,
  }: { readonly reference: string; readonly text: ContextQuestion; readonly count: CountTexts },
): Promise<ReportedContext> {
  const [context] = await Promise.all([askContext(timeline, reference, text), count([])]);
  return withLedger(context, count);
}

/** The ledgers of a session's contexts. */
export interface ContextList {
  readonly session: SessionId;
  readonly tokenizer: typeof TOKENIZER;
  readonly reported: readonly ReportedContext[];
  /** Turns of which some call of the model was not seen (decision E12), newest first, at most as many as were asked for. */
  readonly unseen: readonly number[];
}

/**
 * The ledgers of a session's contexts, the newest first: of every one that was handed out and a record kept of; of turns of an imported session as they ended. Turns whose
 * calls were not seen are named without a ledger; with `assemble` they have that of the session as it stood at their end.
 */
export async function reportList(
  asked: Timeline,
  {
    reference,
    limit = LISTED,
    assemble = false,
    count,
  }: {
    readonly reference: string;
    readonly limit?: number | undefined;
    readonly assemble?: boolean | undefined;
    readonly count: CountTexts;
  },
): Promise<ContextList> {
  const session = await requireSession(asked.present, parseReference(reference).name);
  const timeline = await asked.of(session);
  const contexts = new PastContexts(timeline);
  const once = countingOnce(count);
  const [all, steps, turns, kinds] = await Promise.all([
    contexts.records(session),
    timeline.steps(session),
    timeline.turns(session),
    timeline.turnKinds(session),
    once([]),
  ]);
  const records = all.slice(-limit);
  const recorded = new Set(all.map(({ turn }) => turn));
  const unseen = turns.filter(({ turn }) => kinds.of(turn).has('unseen')).map(({ turn }) => turn);
  const others = turns
    .filter(({ turn }) => !recorded.has(turn) && (assemble || kinds.of(turn).has('transcript')))
    .slice(-limit);
  // Those that a fork shares are its parent's.
  if (steps[0]?.session === session) contexts.know(steps);
  const reported = [...(await contexts.ofRecords(records, (context) => withLedger(context, once)))];
  for (const { turn } of others) {
    const when = { moment: { kind: 'turn', turn } } as const;
    reported.push(
      await withLedger(await (assemble ? contexts.assembled(session, when) : contexts.at(session, when)), once),
    );
  }
  const newest = reported.sort((a, b) => b.context.step - a.context.step).slice(0, limit);
  return { session, tokenizer: TOKENIZER, reported: newest, unseen: unseen.slice(-limit).reverse() };
}
