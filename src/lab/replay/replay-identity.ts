import { createHash } from 'node:crypto';
import { type FilesystemId, filesystemId, type SessionId, sessionId } from '../../objects/ids.js';
import type { RecordingSource } from '../recordings/importer.js';

/** SHA-256 of all bytes of a recording; of a folder, of its members with their names. */
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

/** What a replay's ids are made from (decision H6): nothing of the machine, and nothing that two replays of one database share. */
export interface ReplayIdentity {
  /** The session of the recording's first session; further ones have a number behind it. */
  readonly session: SessionId;
  /** No filesystem of this machine has this id, so that no recorded path is ever read here. */
  readonly filesystemId: FilesystemId;
}

const digest = (...parts: readonly string[]): string => createHash('sha256').update(parts.join('\n')).digest('hex');

/**
 * The ids of a replay: from the recording's content and a variant, such as the parameters of an experiment, so that the same recording can be replayed in
 * several ways in one database. `into` names the session instead.
 */
export function replayIdentity(recording: string, variant: string, into?: string): ReplayIdentity {
  const session = sessionId(into ?? `r${digest(recording, variant).slice(0, 10)}`);
  return { session, filesystemId: filesystemId(`replay-${digest(recording, session)}`) };
}

/** The id of the nth session of a recording, from 1. */
export function nthSession({ session }: ReplayIdentity, n: number): SessionId {
  return n === 1 ? session : sessionId(`${session}.${n}`);
}
