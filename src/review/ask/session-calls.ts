import type { DisplayPaths } from '../../assembly/metadata.js';
import {
  callName,
  isPatch,
  kindOfCall,
  type NamedCall,
  namedCall,
  showsText,
  storedCallName,
} from '../../history/rebuild/call-names.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import { fileRefsOf } from './logged-turn.js';

/** A tool call of a session as a list or a conversation names it. */
export interface SessionCall {
  readonly id: ObjectId;
  readonly name: string;
  readonly tool: string;
  readonly failed: boolean;
  /** Whether no result was recorded: the call was interrupted, or the recording ends. */
  readonly unanswered: boolean;
  readonly chars: number;
  readonly fileRefs: readonly ObjectId[];
  readonly args: NamedCall['args'];
  /** Whether it shows text of its files, such as a reading tool or the command `sed`. */
  readonly reads: boolean;
  /** Whether it changes the files that it names, by its tool or by a patch in a shell command. */
  readonly changes: boolean;
}

const CHANGING: ReadonlySet<string> = new Set(['write', 'edit', 'patch']);

type Calls = ReadonlyMap<ObjectId, SessionCall>;

/**
 * Calls by the list of steps. All questions of one timeline use the same list of a session's steps.
 */
const known = new WeakMap<
  readonly Step[],
  { readonly snapshot: StoreSnapshot; readonly isPlain: boolean; readonly calls: Promise<Calls> }
>();

/**
 * Reads the tool calls of some steps by id: from step pages, or by one query. If `paths` asks for
 * plain calls, a call's name is only that of its tool.
 */
export function sessionCalls(
  snapshot: StoreSnapshot,
  steps: readonly Step[],
  paths?: Pick<DisplayPaths, 'plainCalls'>,
): Promise<Calls> {
  const isPlain = paths?.plainCalls === true;
  const before = known.get(steps);
  if (before?.snapshot === snapshot && before.isPlain === isPlain) return before.calls;
  const calls = readCalls(snapshot, steps, isPlain);
  known.set(steps, { snapshot, isPlain, calls });
  calls.catch(() => known.delete(steps));
  return calls;
}

async function readCalls(snapshot: StoreSnapshot, steps: readonly Step[], isPlain: boolean): Promise<Calls> {
  const ids = [...new Set(steps.flatMap(({ call }) => call?.id ?? []))];
  const found = new Map<ObjectId, SessionCall>();
  const learn = (id: ObjectId, document: Readonly<Record<string, unknown>>, size?: number): void => {
    const call = namedCall(document);
    const kind = call.tool === 'str_replace_editor' && call.args.command === 'view' ? 'read' : kindOfCall(call);
    found.set(id, {
      id,
      name: isPlain ? storedCallName(document, true) : callName(call),
      tool: call.tool,
      failed: document.status !== 'ok',
      // An import records a call without a result as failed, with an empty output.
      unanswered: document.status !== 'ok' && size === 0,
      chars: size ?? 0,
      args: call.args,
      reads: kind === 'read' || showsText(call),
      fileRefs: fileRefsOf(document as Parameters<typeof fileRefsOf>[0]),
      changes: CHANGING.has(kind) || (kind === 'shell' && isPatch(call)),
    });
  };
  for (const id of ids) {
    const call = snapshot.knownCall(id);
    if (call !== undefined) learn(id, call.document, call.marks.size);
  }
  for (const [id, { document, marks }] of await snapshot.heads(ids.filter((id) => !found.has(id))))
    learn(id as ObjectId, document, marks.size);
  return found;
}

/** Names the effect of a call that should change a file. */
export const changeOf = (isMade: boolean): 'changed' | 'tried to change' => (isMade ? 'changed' : 'tried to change');

/** The first steps of a session that are not its own. */
export interface InheritedSteps {
  /** Their number. */
  readonly steps: number;
  /** The session that made them. */
  readonly session?: string;
}

/**
 * Returns the copied steps at the beginning of a session. The event after them has their number.
 */
function copiedSteps(steps: readonly Step[]): InheritedSteps {
  const mark = steps.findLast(({ seq, event }) => event?.kind === 'forked' && event.kept === seq - 1)?.event;
  return { steps: mark?.kept ?? 0, ...defined({ session: mark?.detail }) };
}

/**
 * Returns the first steps that a session did not make. A fork shares them with its parent. A
 * transcript may begin with a copy of them.
 */
export async function inheritedSteps(
  snapshot: StoreSnapshot,
  session: SessionId,
  steps: readonly Step[],
): Promise<InheritedSteps> {
  const segments = (await snapshot.lineage(session))?.segments ?? [];
  const shared = (segments.at(-1)?.first ?? 1) - 1;
  const copied = copiedSteps(steps);
  return copied.steps >= shared ? copied : { steps: shared, ...defined({ session: segments.at(-2)?.session }) };
}

/** Returns the steps that a session made itself. */
export async function ownSteps(
  snapshot: StoreSnapshot,
  session: SessionId,
  steps: readonly Step[],
): Promise<readonly Step[]> {
  const { steps: inherited } = await inheritedSteps(snapshot, session, steps);
  return steps.filter(({ seq }) => seq > inherited);
}
