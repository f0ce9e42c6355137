import type { EpochInput, EpochState } from '../../assembly/epoch/epoch-state.js';
import type { AssemblyInput } from '../../assembly/layout.js';
import type { DisplayPaths, ObjectMetadata } from '../../assembly/metadata.js';
import { type Rendered, rendererOf } from '../../assembly/renderers.js';
import { liesIn, MountTable } from '../../filesystem/access/mounts.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { callSuffix, filesystemId, type ObjectId, type SessionId } from '../../objects/ids.js';
import type { Message } from '../../objects/object-type.js';
import type { FilesystemSource } from '../../objects/source.js';
import type { SessionState } from '../../session/session-state.js';
import { reportedTime } from '../../store/object-store.js';
import { defined } from '../../values/defined.js';
import type { ReadContext } from './context-reader.js';
import { isOfEpoch, stateAfter } from './epoch-chain.js';
import { HistoryError } from './history-error.js';

/** A context that was rebuilt from the database. */
export interface RebuiltAssembly {
  readonly proof: AssemblyProof;
  readonly rendered: Rendered;
  /** The objects that it is rendered from. */
  readonly input: ReadContext['input'];
  /** Whether it equals the handed-out context byte for byte. */
  readonly equal: boolean;
  /**
   * The basis of the reads. Without a basis in the record, it is that of the record's step. If the
   * record shows versions newer than its basis, the valid time is that of the hand-out.
   */
  readonly basis: { readonly validTime: Date; readonly txId: number };
  /** The texts that the epoch has shown up to this request. */
  readonly epoch?: EpochState;
}

/** A basis with a transaction. Reads at it never change. */
export type PinnedBasis = RebuiltAssembly['basis'];

/** Returns the basis of a context in words. */
export function basisText({ validTime, txId }: PinnedBasis): string {
  const time = reportedTime(validTime);
  return time === undefined
    ? `with the newest versions as of transaction ${txId}`
    : `at ${time.toISOString()}, transaction ${txId}`;
}

/**
 * Returns the renderer and layout of a record.
 *
 * @throws {HistoryError} `newer-renderer` if they are not known here
 */
export function requireRenderer({ renderer: name, layout: wanted, version }: AssemblyProof) {
  const renderer = rendererOf(name);
  const layout = renderer?.layouts.find((known) => known === wanted);
  if (renderer === undefined || layout === undefined || version > renderer.version) {
    const ours = renderer === undefined ? 'does not have it' : `has version ${renderer.version}`;
    throw new HistoryError(
      'newer-renderer',
      `it was made by renderer ${name}, layout ${wanted}, version ${version}; this Palimpsest ${ours}: use a later one`,
    );
  }
  return { renderer, layout };
}

/** The context and basis that were read for a record. */
export interface ReadRecord {
  readonly context: ReadContext;
  readonly basis: PinnedBasis;
  /** The stored body of a request that an agent built itself. */
  readonly body?: string;
}

/** The context and basis of a record, and the state of its epoch before the request. */
export interface ReadParts extends ReadRecord {
  /**
   * The texts that the epoch had shown before the request. Undefined for an epoch's first request,
   * and outside epochs.
   */
  readonly before?: EpochState | undefined;
}

/** Returns the index of a session and the calls of its chat, by the ids that the agent saw. */
const shownIndex = (state: SessionState, rename: Rename): Pick<EpochInput, 'index' | 'chatSince'> => ({
  index: state.sets.index.map(rename),
  chatSince: (step) =>
    state.marksAfter(step).map(({ call, ...mark }) => (call === undefined ? mark : { ...mark, call: rename(call) })),
});

/** Removes the objects that the context lacked because they were not known yet (decision 0010). */
function withoutAbsent<T extends Pick<AssemblyInput, 'pool' | 'active'>>(input: T, { absent }: AssemblyProof): T {
  if (absent === undefined) return input;
  const [lines, texts] = [new Set(absent.lines), new Set([...absent.lines, ...absent.texts])];
  return {
    ...input,
    pool: input.pool.filter(({ id }) => !lines.has(id)),
    active: input.active.filter(({ metadata: { id } }) => !texts.has(id)),
  };
}

/** Renders the context of a record again and compares it with the one that was handed out. */
export function rebuiltOf(proof: AssemblyProof, { context, basis, before, body }: ReadParts): RebuiltAssembly {
  const { renderer, layout } = requireRenderer(proof);
  const { session, sha256, options, tail } = proof;
  const rename = shownName(session, proof);
  const shown = proof.rescuedFrom === undefined ? context.input : renamedInput(context.input, rename);
  const input = { ...withoutAbsent(shown, proof), options };
  const epoch = isOfEpoch(proof)
    ? { proof: proof.epoch, state: stateAfter(proof, before, { ...input, ...shownIndex(context.state, rename) }) }
    : undefined;
  const rendered = renderer.render(input, { layout, tail, ...defined({ epoch, body }) });
  const equal = rendered.record.sha256 === sha256 && rendered.record.chars === proof.chars;
  return { proof, rendered, input: context.input, equal, basis, ...defined({ epoch: epoch?.state }) };
}

/** Returns the display of paths in a context, and which files the agent could see [§5.3]. */
export function shownPaths({ mounts = [], folders }: Pick<AssemblyProof, 'mounts' | 'folders'>): DisplayPaths {
  const [first] = mounts;
  const shows = folders === undefined ? {} : { shows: (source: FilesystemSource) => liesIn(source, folders) };
  if (first === undefined) return { display: ({ path }) => path, ...shows };
  const table = new MountTable({ mappings: mounts, defaultFilesystemId: filesystemId(first.filesystemId) });
  return { display: ({ path, filesystemId: id }) => table.toDisplay(path, id), ...shows };
}

/** Maps the id of an object to another id. */
export type Rename = (id: ObjectId) => ObjectId;

/** Returns the map from a fork's ids to the ids that the agent was shown (decision F6). */
export function shownName(session: SessionId, { rescuedFrom }: AssemblyProof): Rename {
  if (rescuedFrom === undefined) return (id) => id;
  const endings = [callSuffix(session), `@${session}`];
  return (id) => {
    const ending = endings.find((one) => id.endsWith(one)) ?? '';
    return id.slice(0, id.length - ending.length) as ObjectId;
  };
}

function renamedMetadata(metadata: ObjectMetadata, rename: Rename): ObjectMetadata {
  const id = rename(metadata.id);
  return metadata.type === 'toolcall'
    ? { ...metadata, id, fileRefs: metadata.fileRefs.map(rename) }
    : { ...metadata, id };
}

function renamedMessage(message: Message, rename: Rename): Message {
  return message.toolcall_refs === undefined
    ? message
    : { ...message, toolcall_refs: message.toolcall_refs.map(rename) };
}

/** Returns the input of a context with other ids for its objects. */
function renamedInput(input: Omit<AssemblyInput, 'options'>, rename: Rename): Omit<AssemblyInput, 'options'> {
  return {
    systemPrompt: input.systemPrompt,
    pool: input.pool.map((metadata) => renamedMetadata(metadata, rename)),
    turns: input.turns.map((turn) => ({
      ...turn,
      messages: turn.messages.map((message) => renamedMessage(message, rename)),
    })),
    active: input.active.map((one) => ({ ...one, metadata: renamedMetadata(one.metadata, rename) })),
  };
}
