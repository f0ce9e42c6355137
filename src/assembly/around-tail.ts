import { canonicalJson } from '../objects/canonical-json.js';
import { hashText } from '../objects/hashes.js';
import type { ObjectId } from '../objects/ids.js';
import { blockText, bodyPlace } from './assemble.js';
import type { AssemblyRecord, CallLayout, FrozenTail, SectionName } from './assembly-record.js';
import { type ActiveObject, type AssemblyInput, type Block, chatText, type Frame, frameOf } from './layout.js';
import { referenceLine } from './metadata.js';
import { type RenderedMessage, sectionRecords } from './render-messages.js';
import { showsNumbered } from './shown-text.js';

/**
 * A context for a harness that keeps the running turn itself: the sections before and after that
 * turn, and replacements for its results.
 */
export interface AroundTail {
  /** The system prompt; null if the session has none or an empty one. */
  readonly system: string | null;
  /** Messages in the user's role, one per section, with one part per active block. */
  readonly before: readonly RenderedMessage[];
  readonly after: readonly RenderedMessage[];
  /**
   * The inactive results of the running turn, each with the reference line that replaces it [§4.1].
   */
  readonly references: ReadonlyMap<ObjectId, string>;
  /**
   * The whole is hashed and measured as canonical JSON of `{system, before, references, after}`. A
   * section is hashed and measured as the canonical JSON of its messages.
   */
  readonly record: AssemblyRecord;
}

type Placed = Exclude<SectionName, 'system' | 'notes'>;

/** The sections before and after the running turn, per layout. */
export const TAIL_PLACES: Readonly<
  Record<CallLayout, { readonly before: readonly Placed[]; readonly after: readonly Placed[] }>
> = {
  // The order of §4.1; the running turn is the end of the chat.
  ssot: { before: ['pool', 'chat'], after: ['active'] },
  // Sections that change with each call come last.
  'chat-first': { before: ['chat'], after: ['pool', 'active'] },
  // Active contents come before the running turn: they mostly grow at their end, while results
  // collapse in that turn's middle.
  'pool-last': { before: ['chat', 'active'], after: ['pool'] },
};

/** The version of this rendering. Raise it when the same state and tail would give other bytes. */
export const AROUND_VERSION = 1;

/** Returns the tail's call whose active result shows a file's whole content. */
function showingCall({ metadata, content }: ActiveObject, calls: readonly ActiveObject[]): ActiveObject | undefined {
  if (metadata.type !== 'file' || content === null || content === '') return undefined;
  return calls.find(
    (call) =>
      call.metadata.type === 'toolcall' &&
      call.metadata.fileRefs.includes(metadata.id) &&
      showsNumbered(call.content ?? '', content),
  );
}

/**
 * Returns the blocks of the active objects whose content is not in the tail. If a call in the tail
 * shows a whole file, the file's block only names that call (decisions E2, E4).
 */
function blocksBeside(frame: Frame, shown: ReadonlySet<ObjectId>, input: AssemblyInput): readonly Block[] {
  const calls = input.active.filter(({ metadata }) => shown.has(metadata.id));
  const objects = new Map(input.active.map((object) => [object.metadata.id, object]));
  const pooled = new Map(input.active.map(({ metadata }) => [metadata.id, metadata]));
  return frame.blocks
    .filter(({ id }) => !shown.has(id))
    .map((block) => {
      const object = objects.get(block.id);
      const call = object === undefined || input.options.strict ? undefined : showingCall(object, calls);
      const metadata = call === undefined ? undefined : pooled.get(call.metadata.id);
      return metadata?.type === 'toolcall' ? { ...block, body: referenceLine(metadata, frame.nameOf) } : block;
    });
}

function sectionMessages(
  pool: readonly string[],
  chat: string,
  blocks: readonly Block[],
): Readonly<Record<Placed, readonly RenderedMessage[]>> {
  const message = (section: Placed, text: string): readonly RenderedMessage[] =>
    text === '' ? [] : [{ section, role: 'user', parts: [{ text }] }];
  const parts = blocks.map((block) => ({ id: block.id, text: blockText(block) }));
  return {
    pool: message('pool', pool.join('\n')),
    chat: message('chat', chat),
    active: parts.length === 0 ? [] : [{ section: 'active', role: 'user', parts }],
  };
}

/**
 * Renders a context around the running turn that a harness keeps (decision E3). Pool, closed turns
 * and active content become messages of the user at the layout's places. Every inactive result of
 * the tail becomes a reference line. An active result appears in the tail only, without a block
 * (divergence 0009). If such a result shows a whole file, the file's block names the call. Pure,
 * with the errors of `assemble`.
 */
export function renderAround(input: AssemblyInput, tail: FrozenTail, name: CallLayout = 'ssot'): AroundTail {
  const closed = input.turns.filter(({ turn }) => turn < tail.turn);
  const frame = frameOf(input);
  const active = new Set(input.active.map(({ metadata }) => metadata.id));
  const shown = new Set(tail.results.filter((id) => active.has(id)));
  const blocks = blocksBeside(frame, shown, input);
  const sections = sectionMessages(frame.pool, chatText({ ...input, turns: closed }, frame), blocks);
  const { before, after } = TAIL_PLACES[name];
  const head = before.flatMap((section) => sections[section]);
  const foot = after.flatMap((section) => sections[section]);
  const references = tail.results.flatMap((id): (readonly [ObjectId, string])[] => {
    const metadata = frame.metadata(id);
    return shown.has(id) || metadata?.type !== 'toolcall' ? [] : [[id, referenceLine(metadata, frame.nameOf)]];
  });
  const system = frame.system === '' ? null : frame.system;
  const whole = canonicalJson({ system, before: head, references, after: foot });
  const record: AssemblyRecord = {
    renderer: 'around',
    layout: name,
    version: AROUND_VERSION,
    options: { strict: input.options.strict, shortIds: input.options.shortIds },
    tail: { turn: tail.turn, results: [...tail.results] },
    sections: sectionRecords(system, [...head, ...foot]),
    blocks: blocks.map((block) => bodyPlace(block, 0)),
    chars: whole.length,
    sha256: hashText(whole),
  };
  return { system, before: head, after: foot, references: new Map(references), record };
}
