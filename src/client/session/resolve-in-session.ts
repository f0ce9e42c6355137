import { posix } from 'node:path';
import type { ObjectId } from '../../objects/ids.js';
import { type Resolution, resolveReference } from '../../session/resolve-reference.js';
import type { SessionState } from '../../session/session-state.js';
import type { SessionEnvironment } from './session-environment.js';

/**
 * The object of a session that an agent names (decision D6): by id, unique prefix or display path; a path may also be relative to the agent's working
 * directory, as it may be everywhere else.
 */
export function resolveInSession({ cache, files }: SessionEnvironment, state: SessionState, reference: string): Resolution {
  const displayPathOf = (id: ObjectId): string | undefined => {
    const metadata = cache.get(id);
    return metadata?.type === 'file' ? metadata.displayPath : undefined;
  };
  const { index } = state.sets;
  const resolution = resolveReference(reference, index, displayPathOf);
  if (resolution.kind !== 'unknown' || reference === '' || posix.isAbsolute(reference)) return resolution;
  const absolute = posix.resolve(files.cwd, reference);
  return resolveReference(absolute, index, displayPathOf);
}
