import { metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import type { SourceReading } from '../../filesystem/access/read-source.js';
import type { FilesystemSource } from '../../objects/source.js';
import { indexedFile } from '../../objects/versions.js';
import type { SessionState } from '../../session/session-state.js';
import type { Verb } from '../../session/verb-outcome.js';
import { loadObject } from './load-object.js';
import type { ReportedReading } from './reported-files.js';
import { resolveInSession } from './resolve-in-session.js';
import type { SessionEnvironment } from './session-environment.js';
import { activationFailure, asReading, simpleEntry, unresolved, type VerbEntry, type VerbPlan } from './verb-plan.js';

/** How many sources are read at once. */
const READS_AT_ONCE = 8;

interface Activation {
  readonly entry: VerbEntry;
  readonly reading?: ReportedReading;
}

/** Text and metadata of a reading that can be activated; the text is the whole one even where only head and tail are stored. */
function activated(environment: SessionEnvironment, source: FilesystemSource, reading: Extract<SourceReading, { content: string }>) {
  const version = indexedFile(source, reading.content, reading.fileHash);
  const metadata = metadataOf(version, {}, environment.files);
  if (metadata === undefined) throw new Error('BUG: a file without metadata');
  const text = reading.kind === 'large-text' && reading.chunks !== undefined ? [...reading.chunks()].join('') : reading.content;
  return { text, metadata };
}

/** The last version in the database has to serve: for tool calls always, for files whose source is out of reach [§5.9]. */
async function fromDatabase(
  environment: SessionEnvironment,
  reference: string,
  metadata: ObjectMetadata,
  changes: boolean,
): Promise<VerbEntry> {
  const { id } = metadata;
  const found = await loadObject(environment, id);
  if (found === undefined) return { reference, ok: false, failure: 'unknown', id };
  if (found.gone) return { reference, ok: false, failure: 'deleted', id };
  const text = await found.wholeText();
  if (text === null) return { reference, ok: false, failure: 'not-text', id };
  return { reference, ok: true, id, changes, text, metadata };
}

async function activation(
  environment: SessionEnvironment,
  state: SessionState,
  reference: string,
  metadata: ObjectMetadata,
  signal: AbortSignal | undefined,
): Promise<Activation> {
  const { id } = metadata;
  const changes = !state.isActive(id);
  const source = environment.cache.source(id);
  if (metadata.type !== 'file' || source === undefined) return { entry: await fromDatabase(environment, reference, metadata, changes) };
  const reading = await environment.files.read(source, signal);
  const failure = activationFailure(reading, metadata.state === 'indexed');
  if (failure === null) return { entry: await fromDatabase(environment, reference, metadata, changes) };
  const reported = asReading(source, reading);
  if (failure !== undefined) return { entry: { reference, ok: false, failure, id }, reading: reported };
  const { text, metadata: now } = activated(environment, source, reading as Extract<SourceReading, { content: string }>);
  return { entry: { reference, ok: true, id, changes, text, metadata: now }, reading: reported };
}

/**
 * Decides a verb for several references of an agent [§3.3]: finds the objects (decision D6), reads the sources of files to be activated, tells the
 * failures apart (decision D5). Writes nothing: the plan becomes one step when its call is recorded.
 */
export async function planVerb(
  environment: SessionEnvironment,
  state: SessionState,
  verb: Verb,
  references: readonly string[],
  signal?: AbortSignal,
): Promise<VerbPlan> {
  const { cache } = environment;
  const decide = async (reference: string): Promise<Activation> => {
    const resolution = resolveInSession(environment, state, reference);
    if (resolution.kind !== 'found') return { entry: unresolved(reference, resolution) };
    const metadata = cache.get(resolution.id);
    if (metadata === undefined) return { entry: { reference, ok: false, failure: 'unknown', id: resolution.id } };
    return verb === 'activate'
      ? activation(environment, state, reference, metadata, signal)
      : { entry: simpleEntry(verb, state, reference, metadata) };
  };
  const activations: Activation[] = [];
  for (let i = 0; i < references.length; i += READS_AT_ONCE) {
    activations.push(...(await Promise.all(references.slice(i, i + READS_AT_ONCE).map(decide))));
  }
  return {
    verb,
    entries: activations.map(({ entry }) => entry),
    readings: activations.flatMap(({ reading }) => (reading === undefined ? [] : [reading])),
  };
}
