import { blockText } from '../../assembly/assemble.js';
import type { SectionName } from '../../assembly/assembly-record.js';
import { type AssemblyInput, chatLines, layoutOf } from '../../assembly/layout.js';
import type { ObjectMetadata } from '../../assembly/metadata.js';
import { type SentPart, sentParts } from '../../assembly/sent-body.js';
import { requireSession } from '../../history/rebuild/find-session.js';
import { parseReference } from '../../history/rebuild/moment.js';
import { type PastContext, PastContexts } from '../../history/rebuild/past-context.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { type CountTexts, countingOnce, TOKENIZER } from '../../history/rebuild/tokenizer.js';
import type { TranscriptPart } from '../../history/rebuild/transcript-parts.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { namesOf } from '../../session/chat-places.js';
import { askContext, type ContextQuestion } from './ask.js';
import { shownTokens } from './request-pieces.js';

/** The size of an item in a context. */
export interface ShownSize {
  /** Number of UTF-16 units. */
  readonly chars: number;
  readonly tokens: number;
}

/** The size of one object in a context. */
export interface ObjectEntry {
  readonly id: ObjectId;
  readonly type: ObjectMetadata['type'];
  /** The path, or the tool's name. */
  readonly name: string;
  readonly active: boolean;
  /** Length of the stored text. */
  readonly rawChars: number;
  /** Size of the object's line in the metadata pool. */
  readonly line: ShownSize;
  /** Size of the object's block of active content. Undefined if the object is not active. */
  readonly block: ShownSize | undefined;
  /** Sum of line and block. */
  readonly shown: ShownSize;
}

/** The characters and tokens of a context by section and by object, the largest first. */
export interface ContextLedger {
  readonly tokenizer: typeof TOKENIZER;
  readonly sections: readonly ({ readonly name: SectionName } & ShownSize)[];
  readonly total: ShownSize;
  readonly objects: readonly ObjectEntry[];
  /** Total length of the stored texts of all objects. */
  readonly rawChars: number;
}

const NOTHING: ShownSize = { chars: 0, tokens: 0 };

const sum = (sizes: readonly ShownSize[]): ShownSize =>
  sizes.reduce((total, { chars, tokens }) => ({ chars: total.chars + chars, tokens: total.tokens + tokens }), NOTHING);

/**
 * The counted pieces of a context, each with its line end: the prompt, pool lines, messages with
 * the lines of their calls, and blocks.
 */
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

/** Returns the ledger of a context from the token counts of its pieces. */
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
 * Counts each piece of a context as text and adds the counts. One call of `count` counts all
 * pieces, and equal pieces only once.
 */
export async function contextLedger(input: AssemblyInput, count: CountTexts): Promise<ContextLedger> {
  const pieces = ledgerPieces(input);
  const texts = [...new Set([...pieces.system, ...pieces.lines, ...pieces.messages, ...pieces.blocks.values()])];
  const counts = await count(texts);
  return ledgerOf(input, pieces, new Map(texts.map((text, i) => [text, counts[i] ?? 0])));
}

/** A past context with its ledger. */
export interface ReportedContext {
  readonly context: PastContext;
  readonly ledger: ContextLedger;
}

/** Default number of listed contexts. */
const LISTED = 20;

/**
 * Returns the ledger of a request that an agent built itself: its settings, tools and prompt, its
 * messages, and each call that it shows.
 */
async function sentLedger({ text, input }: PastContext, count: CountTexts): Promise<ContextLedger> {
  const parts = sentParts(text);
  const tokens = await count(parts.map((part) => part.text));
  const sizes = parts.map((part, i): ShownSize => ({ chars: part.text.length, tokens: tokens[i] ?? 0 }));
  const sizeOf = (isWanted: (part: SentPart) => boolean): ShownSize =>
    sum(sizes.filter((_, i) => isWanted(parts[i] as SentPart)));
  const byCall = new Map<string, ShownSize>();
  for (const [i, { call }] of parts.entries())
    if (call !== undefined) byCall.set(call, sum([byCall.get(call) ?? NOTHING, sizes[i] ?? NOTHING]));
  const objects = input.pool.flatMap((metadata): readonly ObjectEntry[] => {
    if (metadata.type !== 'toolcall') return [];
    const { id, type, tool: name, charCount: rawChars } = metadata;
    const shown = [...namesOf(id)].map((one) => byCall.get(one)).find((size) => size !== undefined);
    return shown === undefined ? [] : [{ id, type, name, active: true, rawChars, line: NOTHING, block: shown, shown }];
  });
  return {
    tokenizer: TOKENIZER,
    sections: [
      { name: 'system', ...sizeOf(({ section }) => section === 'system') },
      { name: 'pool', ...NOTHING },
      { name: 'chat', ...sizeOf(({ section }) => section === 'chat') },
      { name: 'active', ...NOTHING },
    ],
    total: sum(sizes),
    objects: objects.sort((a, b) => b.shown.tokens - a.shown.tokens || b.rawChars - a.rawChars),
    rawChars: objects.reduce((total, { rawChars }) => total + rawChars, 0),
  };
}

/** Returns the ledger of a request that a transcript shows: its messages, calls and results. */
async function toldLedger({ told, input }: PastContext, count: CountTexts): Promise<ContextLedger> {
  const parts = told?.parts ?? [];
  const counts = await count(parts.map(({ text }) => text));
  const sizes = parts.map((part, i): ShownSize => ({ chars: part.chars, tokens: shownTokens(part, counts[i] ?? 0) }));
  const isOfCall = ({ kind }: TranscriptPart): boolean => kind === 'call' || kind === 'result';
  const sizeOf = (isWanted: (part: TranscriptPart) => boolean): ShownSize =>
    sum(sizes.filter((_, i) => isWanted(parts[i] as TranscriptPart)));
  const byObject = new Map<ObjectId, ShownSize>();
  for (const [i, part] of parts.entries())
    if (isOfCall(part)) byObject.set(part.object, sum([byObject.get(part.object) ?? NOTHING, sizes[i] ?? NOTHING]));
  const objects = input.pool.flatMap((metadata): readonly ObjectEntry[] => {
    const { id, type, charCount: rawChars } = metadata;
    const shown = byObject.get(id);
    const name = type === 'file' ? metadata.displayPath : metadata.tool;
    return shown === undefined ? [] : [{ id, type, name, active: true, rawChars, line: NOTHING, block: shown, shown }];
  });
  return {
    tokenizer: TOKENIZER,
    sections: [
      { name: 'system', ...sizeOf(({ kind }) => kind === 'system') },
      { name: 'pool', ...NOTHING },
      { name: 'chat', ...sizeOf(({ kind }) => kind === 'message' || kind === 'summary') },
      { name: 'active', ...sizeOf(isOfCall) },
    ],
    total: sum(sizes),
    objects: objects.sort((a, b) => b.shown.tokens - a.shown.tokens || b.rawChars - a.rawChars),
    rawChars: objects.reduce((total, { rawChars }) => total + rawChars, 0),
  };
}

/** Returns a context with its ledger. */
export async function withLedger(context: PastContext, count: CountTexts): Promise<ReportedContext> {
  if (context.told !== undefined) return { context, ledger: await toldLedger(context, count) };
  const ledger = context.renderer === 'sent' ? sentLedger(context, count) : contextLedger(context.input, count);
  return { context, ledger: await ledger };
}

/** Returns the ledger of one context. */
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
  /** Turns with an unseen model call (decision E12), newest first, up to the requested number. */
  readonly unseen: readonly number[];
}

/**
 * Returns the ledgers of a session's known requests, the newest first. For a transcript without
 * answers of the model, it returns one ledger for the end of each turn. Turns with unseen model
 * calls have no ledger. With `assemble`, they get the ledger of the session's state at their end.
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
  const [all, requests, steps, turns, kinds] = await Promise.all([
    contexts.records(session),
    timeline.requests(session),
    timeline.steps(session),
    timeline.turns(session),
    timeline.turnKinds(session),
    once([]),
  ]);
  const records = all.slice(-limit);
  const known = new Set(requests.flatMap(({ turn, kind }) => (kind === 'unseen' ? [] : [turn])));
  const unseen = turns.filter(({ turn }) => kinds.of(turn).has('unseen')).map(({ turn }) => turn);
  const told = requests.filter(({ kind }) => kind === 'transcript').slice(-limit);
  const others = turns
    .filter(({ turn }) => !known.has(turn) && (assemble || kinds.of(turn).has('transcript')))
    .slice(-limit);
  // The steps that a fork shares belong to its parent.
  if (steps[0]?.session === session) contexts.know(steps);
  const reported = [...(await contexts.ofRecords(records, (context) => withLedger(context, once)))];
  for (const { step: seq } of told)
    reported.push(await withLedger(await contexts.at(session, { moment: { kind: 'step', seq } }), once));
  for (const { turn } of others) {
    const when = { moment: { kind: 'turn', turn } } as const;
    reported.push(
      await withLedger(await (assemble ? contexts.assembled(session, when) : contexts.at(session, when)), once),
    );
  }
  const newest = reported.sort((a, b) => b.context.step - a.context.step).slice(0, limit);
  return { session, tokenizer: TOKENIZER, reported: newest, unseen: unseen.slice(-limit).reverse() };
}
