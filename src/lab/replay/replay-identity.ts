import { createHash } from 'node:crypto';
import { type FilesystemId, filesystemId, type SessionId, sessionId } from '../../objects/ids.js';
import type { RecordingSource } from '../recordings/importer.js';

/**
 * Returns the SHA-256 of a recording's bytes. For a folder, it covers the names and bytes of its
 * files.
 */
export async function recordingHash(source: RecordingSource, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for (const member of source.members ?? [undefined]) {
    if (member !== undefined) hash.update(`${Buffer.byteLength(member)}:${member}\n`);
    for await (const chunk of source.open(member)) {
      signal?.throwIfAborted();
      hash.update(chunk);
    }
  }
  return hash.digest('hex');
}

/**
 * The ids that a replay uses (decision H6). They do not depend on the machine and are unique within
 * a database.
 */
export interface ReplayIdentity {
  /** Our id for the recording's first session. The ids of later sessions have a number appended. */
  readonly session: SessionId;
  /**
   * An id that no filesystem of this machine has, so that the client never reads recorded paths.
   */
  readonly filesystemId: FilesystemId;
}

const digest = (...parts: readonly string[]): string => createHash('sha256').update(parts.join('\n')).digest('hex');

/**
 * Returns the ids of a replay from the recording's content and a variant, such as an experiment's
 * parameters. With different variants, one database can hold several replays of a recording. If
 * `into` is given, it is the session's id.
 */
export function replayIdentity(recording: string, variant: string, into?: string): ReplayIdentity {
  const session = sessionId(into ?? `r${digest(recording, variant).slice(0, 10)}`);
  return { session, filesystemId: filesystemId(`replay-${digest(recording, session)}`) };
}

/** Returns the id of the nth session of a recording, from 1. */
export function nthSession({ session }: ReplayIdentity, n: number): SessionId {
  return n === 1 ? session : sessionId(`${session}.${n}`);
}
