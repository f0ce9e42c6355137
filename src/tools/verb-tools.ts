import * as z from 'zod';
import type { ObjectMetadata } from '../assembly/metadata.js';
import type { VerbEntry, VerbFailure, VerbPlan } from '../client/session/call-report.js';
import { quoted } from '../objects/errors.js';
import type { ObjectId } from '../objects/ids.js';
import type { Verb } from '../session/verb-outcome.js';
import { defineTool, type Performed, type ToolSettings, type Work } from './define-tool.js';
import { frame, headerLine, headerValue, lineId, shownId } from './framing.js';
import { type OutputLimits, pageOf } from './page.js';
import { candidateLines, didYouMean, knownReference, similarPaths } from './require-object.js';
import { failureText, type Tool, type ToolSession } from './tool.js';
import { VERB_DESCRIPTIONS, type WayIn } from './verb-descriptions.js';

/** The result for an object that the verb was applied to. */
type Done = Extract<VerbEntry, { readonly ok: true }>;

/**
 * Maximum length of one shown text. It is less than the stored head of a large text, in which line
 * numbers are right (decision C6).
 */
const LONGEST_SHOWN = 60_000;
/** Maximum length of a hint, not counting its id. */
const HINT_CHARS = 100;
const LEAST_SHOWN = 200;

interface Block {
  readonly id: string;
  readonly header: string;
  readonly text: string | undefined;
  /** Maximum size of the block's header and hint. */
  readonly reserved: number;
}

function blockOf({ id, metadata, text }: Done, work: Work): Block {
  const shown = shownId(id, work);
  const named =
    metadata.type === 'file' ? { path: metadata.displayPath } : { tool: metadata.tool, status: metadata.status };
  const header = headerLine(metadata.type, { id: shown, ...named, chars: metadata.charCount });
  return { id: shown, header, text, reserved: header.length + headerValue(shown).length + HINT_CHARS };
}

/** Returns the blocks for which at least header and hint fit into an answer. */
function fitting(blocks: readonly Block[], limits: OutputLimits): readonly Block[] {
  let chars = limits.chars - HINT_CHARS;
  let lines = limits.lines - 1;
  const kept: Block[] = [];
  for (const block of blocks) {
    chars -= block.reserved;
    lines -= 2;
    if (chars < 0 || lines < 0) break;
    kept.push(block);
  }
  return kept;
}

/**
 * Formats as much of the activated objects' contents as fits into an answer (decision D7). Each cut
 * text has a hint that says how `read` continues it.
 */
function activatedContents(entries: readonly Done[], limits: OutputLimits, work: Work): string {
  const blocks = entries.map((entry) => blockOf(entry, work));
  const kept = fitting(blocks, limits);
  let chars = limits.chars - HINT_CHARS - kept.reduce((sum, { reserved }) => sum + reserved, 0);
  let lines = limits.lines - 1 - 2 * kept.length;
  const texts = kept.map(({ id, header, text }) => {
    if (text === undefined || chars < LEAST_SHOWN || lines < 2)
      return `${header}\n[Not shown: no room left. Continue: read id=${headerValue(id)}]`;
    const page = pageOf(text, { offset: 1, column: 1 }, { chars: Math.min(chars, LONGEST_SHOWN), lines });
    chars -= page.text.length;
    lines -= page.lastLine;
    const next =
      page.next === undefined
        ? ''
        : Object.entries(page.next)
            .map(([name, value]) => ` ${name}=${value}`)
            .join('');
    const block = frame(header, page.text === '' ? '(empty)' : page.text, [
      next === '' ? undefined : `[More follows. Continue: read id=${headerValue(id)}${next}]`,
    ]);
    return block.endsWith('\n') ? block.slice(0, -1) : block;
  });
  const left = blocks.length - kept.length;
  return [...texts, ...(left === 0 ? [] : [`[${left} more objects are not shown: read them by their ids.]`])].join(
    '\n',
  );
}

type Failed = Extract<VerbEntry, { readonly ok: false }>;

interface Words {
  readonly done: string;
  /** The word for an object that already was in the requested state. */
  readonly already: string;
}

const WORDS: Readonly<Record<Verb, Words>> = {
  activate: { done: 'activated', already: 'active already' },
  deactivate: { done: 'deactivated', already: '' },
  pin: { done: 'pinned', already: 'pinned already' },
  unpin: { done: 'unpinned', already: '' },
};

type Explain = (entry: Failed, call: Work, way: WayIn) => string;

const WHY: Readonly<Record<VerbFailure, Explain>> = {
  unknown: ({ reference }, call, way) =>
    `was not found: it is not known to this session. ${didYouMean(similarPaths(reference, call), reference)}` +
    (way === 'mcp' ? 'List with context, or read the file' : 'Give an id or a path of a line that you see'),
  ambiguous: ({ candidates = [] }, { session }) =>
    `matches several objects; give more characters:\n${candidateLines(candidates, session)}`,
  infrastructure: () => 'is infrastructure, a part of the session itself; only files and tool calls can be chosen',
  'not-active': () => 'is not active',
  'not-pinned': () => 'is not pinned',
  deleted: (_entry, _call, way) =>
    way === 'mcp' ? 'is deleted; an older version can be read with read id=... version=...' : 'is deleted',
  'not-text': () => 'is not text and cannot be loaded',
  inaccessible: () => 'is inaccessible: its source cannot be read now',
  'outside-roots': () => 'is inaccessible: it is outside the allowed folders',
};

const nameOf = (metadata: ObjectMetadata): string =>
  metadata.type === 'file' ? headerValue(metadata.displayPath) : `toolcall ${headerValue(metadata.tool)}`;

function failureLine(entry: Failed, call: Work, way: WayIn): string {
  return `${quoted(entry.reference)} ${WHY[entry.failure](entry, call, way)}`;
}

function doneLine(verb: Verb, entry: Done, work: Work): string {
  const { done, already } = WORDS[verb];
  const { metadata, changes } = entry;
  return `${changes ? done : already} id=${lineId(entry.id, work)} ${nameOf(metadata)} chars=${metadata.charCount}`;
}

/** Formats the size of the active set after the plan. The verb's own call is not counted. */
function activeLine(plan: VerbPlan, session: ToolSession): string {
  const active = new Set<ObjectId>(session.state.sets.active);
  const planned = new Map<ObjectId, ObjectMetadata>();
  for (const entry of plan.entries) {
    if (!entry.ok) continue;
    planned.set(entry.id, entry.metadata);
    if (plan.verb === 'activate') active.add(entry.id);
    if (plan.verb === 'deactivate') active.delete(entry.id);
  }
  const chars = [...active].reduce((sum, id) => sum + ((planned.get(id) ?? session.metadata(id))?.charCount ?? 0), 0);
  return `active now: ${active.size} objects, ${chars} characters`;
}

/** Options for the wording of a verb's answer. */
export interface VerbWords {
  /** How the model reaches its tools. The answer only names tools that it has. Default: `mcp`. */
  readonly way?: WayIn;
  /** Whether deactivated text stays in the requests until the next epoch (divergence E9). */
  readonly lags?: boolean;
}

/** The note after a deactivation whose text the model still sees. */
const LEAVES = 'Text that you still see leaves at the next border: with one of the next messages of the user.';

/**
 * Formats the result of a planned verb. `content` has one line per object. For `activate`, `show`
 * also has the objects' contents (divergence B8).
 */
export function performVerb(plan: VerbPlan, work: Work, { way = 'mcp', lags = false }: VerbWords = {}): Performed {
  const done = plan.entries.filter((entry) => entry.ok);
  const failed = plan.entries.filter((entry) => !entry.ok);
  const failures = failed.map((entry) => failureLine(entry, work, way));
  const meta = {
    done: done.map(({ id }) => id).slice(0, 100),
    failed: failed.map(({ reference, failure }) => ({ reference: reference.slice(0, 200), failure })).slice(0, 100),
  };
  if (done.length === 0) {
    const text = failureText(`${plan.verb}: ${failures.join('\n')}`, 'Nothing was changed.');
    return { content: text, status: 'fail', show: () => text, plan, meta };
  }
  const summary = [
    ...done.map((entry) => doneLine(plan.verb, entry, work)),
    ...failures.map((line) => `failed: ${line}`),
    ...(lags && plan.verb === 'deactivate' ? [LEAVES] : []),
    activeLine(plan, work.session),
  ];
  const content = summary.join('\n');
  const show = (): string =>
    plan.verb === 'activate'
      ? `${content}\n` +
        activatedContents(
          done,
          { chars: work.limits.chars - content.length - 1, lines: work.limits.lines - summary.length },
          work,
        )
      : content;
  return { content, show, plan, meta };
}

const SHAPE = {
  ids: z
    .array(z.string().min(1))
    .min(1)
    .max(200)
    .describe('Ids, unique prefixes (8+ characters) or paths of known objects'),
};

/**
 * The tools `activate`, `deactivate`, `pin` and `unpin` [§3.3, decisions D1 to D7]. All ids of a
 * call are handled in one step.
 */
export function verbTool(verb: Verb, settings: ToolSettings): Tool {
  return defineTool({
    name: verb,
    // These tools are only offered over MCP.
    description: VERB_DESCRIPTIONS.mcp[verb],
    shape: SHAPE,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    perform: async ({ ids }, work) => {
      const references = await Promise.all(ids.map((id) => knownReference(id, work)));
      return performVerb(await work.session.planVerb(verb, [...new Set(references)], work.signal), work);
    },
  })(settings);
}
