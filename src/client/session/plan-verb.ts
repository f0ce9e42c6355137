import type { ObjectMetadata } from '../../assembly/metadata.js';
import { metadataOf } from '../../assembly/metadata.js';
import { SourceError } from '../../filesystem/access/errors.js';
import type { SourceReading } from '../../filesystem/access/read-source.js';
import { indexedFile } from '../../objects/versions.js';
import type { Resolution } from '../../session/object-reference.js';
import type { SessionState } from '../../session/session-state.js';
import { type Verb, verbOutcome } from '../../session/verb-outcome.js';
import type { ReportedReading, VerbEntry, VerbFailure, VerbPlan } from './call-report.js';
import { loadObject, resolveInSession } from './find-object.js';
import type { SessionEnvironment } from './session-environment.js';

/** Returns the entry of a reference that does not name exactly one object. */
function unresolved(reference: string, resolution: Exclude<Resolution, { kind: 'found' }>): VerbEntry {
  const { kind: failure } = resolution;
  return failure === 'ambiguous'
    ? { reference, ok: false, failure, candidates: resolution.candidates }
    : { reference, ok: false, failure };
}

/** One object that a verb applies to. */
interface Target {
  readonly state: SessionState;
  readonly reference: string;
  readonly metadata: ObjectMetadata;
}

/**
 * Returns the entry of a verb that needs no content, for an object of the session (decisions D1 to
 * D3).
 */
function simpleEntry(verb: Verb, { state, reference, metadata }: Target): VerbEntry {
  const { id } = metadata;
  const outcome = verbOutcome(state, verb, id);
  if (outcome === 'not-active' || outcome === 'not-pinned') return { reference, ok: false, failure: outcome, id };
  return { reference, ok: true, id, changes: outcome === 'done', metadata };
}

/**
 * Returns why a reading prevents activation (decision D5). Returns null if the last stored version
 * must be used, as for an orphan [§5.9].
 */
function activationFailure(reading: SourceReading, known: boolean): VerbFailure | null | undefined {
  if (reading.kind === 'missing') return 'deleted';
  if (reading.kind === 'binary') return 'not-text';
  if (reading.kind === 'text' || reading.kind === 'large-text') return undefined;
  if (known) return null;
  return reading.kind === 'unreachable' && reading.reason === 'outside-roots' ? 'outside-roots' : 'inaccessible';
}

/** Maximum number of concurrent reads. */
const READS_AT_ONCE = 8;

interface Activation {
  readonly entry: VerbEntry;
  readonly reading?: ReportedReading;
}

/**
 * Returns text and metadata of an activatable reading. The text is whole even if only its head and
 * tail are stored.
 */
function activated({ files }: SessionEnvironment, { source, reading }: ReportedReading) {
  if (reading.kind !== 'text' && reading.kind !== 'large-text') throw new Error('BUG: only text is activated');
  const metadata = metadataOf(indexedFile(source, reading.content, reading.fileHash), {}, files);
  if (metadata === undefined) throw new Error('BUG: a file without metadata');
  const text =
    reading.kind === 'large-text' && reading.chunks !== undefined ? [...reading.chunks()].join('') : reading.content;
  return { text, metadata };
}

/**
 * Activates the last stored version: for tool calls, and for files whose source is unreachable
 * [§5.9].
 */
async function activateStored(
  environment: SessionEnvironment,
  { state, reference, metadata }: Target,
): Promise<VerbEntry> {
  const { id } = metadata;
  const found = await loadObject(environment, id);
  if (found === undefined) return { reference, ok: false, failure: 'unknown', id };
  if (found.gone) return { reference, ok: false, failure: 'deleted', id };
  const text = await found.wholeText();
  if (text === null) return { reference, ok: false, failure: 'not-text', id };
  return { reference, ok: true, id, changes: !state.isActive(id), text, metadata };
}

/**
 * Reads the file again even if it was read before, so that its current content is loaded
 * (reading D5).
 */
async function activate(
  environment: SessionEnvironment,
  target: Target,
  signal: AbortSignal | undefined,
): Promise<Activation> {
  const { state, reference, metadata } = target;
  const { id } = metadata;
  const source = environment.metadata.source(id);
  if (metadata.type !== 'file' || source === undefined) return { entry: await activateStored(environment, target) };
  const reading: ReportedReading = { source, reading: await environment.files.read(source, signal), activate: false };
  const failure = activationFailure(reading.reading, metadata.state === 'indexed');
  if (failure === null) return { entry: await activateStored(environment, target) };
  if (failure !== undefined) return { entry: { reference, ok: false, failure, id }, reading };
  return {
    entry: { reference, ok: true, id, changes: !state.isActive(id), ...activated(environment, reading) },
    reading,
  };
}

/**
 * Activates a file new to the session by its path. This reaches ignored files: a listing shows
 * them, but makes no stubs of them (decision C7).
 */
async function activateNew(
  environment: SessionEnvironment,
  { reference, signal }: Pick<VerbRequest, 'signal'> & { readonly reference: string },
): Promise<Activation | undefined> {
  const { files } = environment;
  const file = await files.locate(reference, { mustExist: false }).catch((error: unknown) => {
    if (error instanceof SourceError) return undefined;
    throw error;
  });
  if (file?.location.exists !== true) return undefined;
  const { id, source } = file;
  const reading: ReportedReading = { source, reading: await files.read(source, signal), activate: false };
  const failure = activationFailure(reading.reading, false);
  if (failure === 'deleted' || reading.reading.kind === 'not-regular') return undefined;
  if (failure !== undefined && failure !== null) return { entry: { reference, ok: false, failure, id }, reading };
  return { entry: { reference, ok: true, id, changes: true, ...activated(environment, reading) }, reading };
}

/** A verb that an agent requested. */
export interface VerbRequest {
  readonly verb: Verb;
  readonly references: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

/**
 * Plans a verb for an agent's references [§3.3]. Finds the objects (decision D6), reads the files
 * to activate, including files new to the session, and distinguishes failures (decision D5). Writes
 * nothing. The plan becomes one step when its call is recorded.
 */
export async function planVerb(
  environment: SessionEnvironment,
  state: SessionState,
  { verb, references, signal }: VerbRequest,
): Promise<VerbPlan> {
  const decide = async (reference: string): Promise<Activation> => {
    const resolution = resolveInSession(environment, state, reference);
    if (resolution.kind !== 'found') {
      const added =
        verb === 'activate' && resolution.kind === 'unknown'
          ? await activateNew(environment, { reference, signal })
          : undefined;
      return added ?? { entry: unresolved(reference, resolution) };
    }
    const metadata = environment.metadata.get(resolution.id);
    if (metadata === undefined) return { entry: { reference, ok: false, failure: 'unknown', id: resolution.id } };
    const target = { state, reference, metadata };
    return verb === 'activate' ? activate(environment, target, signal) : { entry: simpleEntry(verb, target) };
  };
  const decided: Activation[] = [];
  for (let i = 0; i < references.length; i += READS_AT_ONCE) {
    decided.push(...(await Promise.all(references.slice(i, i + READS_AT_ONCE).map(decide))));
  }
  return {
    verb,
    entries: decided.map(({ entry }) => entry),
    readings: decided.flatMap(({ reading }) => reading ?? []),
  };
}
