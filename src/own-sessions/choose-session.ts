import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type MaskLoader, NO_MASK } from '../client/record-mask.js';
import { importRecording, recogniseRecording } from '../lab/recordings/import-recording.js';
import { openRecording } from '../lab/recordings/open-recording.js';
import { realRecordingPath } from '../lab/recordings/opencode/stored-sessions.js';
import { CodedError } from '../values/coded-error.js';
import { AGENT_NAMES, type Agent } from './agent-homes.js';
import { type FoundSession, ownSessions } from './find-sessions.js';
import { FactsCollector, type SessionFacts } from './session-facts.js';

/** A recorded session that a person chose to open. */
export interface ChosenSession extends Omit<SessionFacts, 'agent'> {
  /** The agent's name for people. */
  readonly agent: string;
  readonly path: string;
  readonly size: number;
  readonly mtime: number;
}

/** Thrown if a name selects no session, or several. */
class ChoiceError extends CodedError<'unknown-session' | 'ambiguous-session' | 'no-session'> {
  override readonly name = 'ChoiceError';
  override get isUsage(): boolean {
    return true;
  }
}

const LEAST_ID_CHARS = 4;

const chosen = ({ file: { path, size, mtime }, agent, ...facts }: FoundSession): ChosenSession => ({
  ...facts,
  agent: AGENT_NAMES[agent],
  path,
  size,
  mtime,
});

/** The sessions on this machine, and the mask for secrets in titles. */
interface MachineSessions {
  readonly sessions: readonly FoundSession[];
  readonly mask: MaskLoader;
}

/** Reads a recording that is not in an agent's usual folder. */
async function readOutside(path: string, mask: MaskLoader): Promise<ChosenSession> {
  const source = await openRecording(path);
  const { format } = recogniseRecording(source);
  const collector = new FactsCollector((await mask()) ?? NO_MASK);
  for await (const entry of importRecording(source, { onLoss: () => undefined })) collector.take(entry);
  const facts = collector.finish({});
  if (facts === undefined)
    throw new ChoiceError('no-session', `The recording ${path} has no session: name another one.`);
  const { mtimeMs: mtime } = await stat(path);
  const agent = AGENT_NAMES[format as Agent] ?? format;
  return { ...facts, agent, path, size: source.size, mtime };
}

async function atPath(path: string, { sessions, mask }: MachineSessions): Promise<ChosenSession> {
  const real = realRecordingPath(path);
  for (const session of sessions) if (realRecordingPath(session.file.path) === real) return chosen(session);
  return readOutside(path, mask);
}

/**
 * Returns the session that a person named. A name is `LAST`, a number from the list of
 * `palimpsest`, a path, an id, or the first characters of an id.
 *
 * @throws {ChoiceError} – the name selects no session, or several
 * @throws {RecordingError} – the path names no readable recording
 */
export async function chooseSession(name: string, machine: MachineSessions): Promise<ChosenSession> {
  const { sessions } = machine;
  const own = ownSessions(sessions);
  const nth = name.toUpperCase() === 'LAST' ? 1 : /^[1-9]\d{0,2}$/.test(name) ? Number(name) : undefined;
  const listed = nth === undefined ? undefined : own[nth - 1];
  if (listed !== undefined) return chosen(listed);
  if (nth !== undefined && own.length === 0)
    throw new ChoiceError(
      'unknown-session',
      'No agent has a session on this machine. Name a recording by its path, or set the variable of its agent.',
    );
  if (nth !== undefined)
    throw new ChoiceError(
      'unknown-session',
      `There is no session ${name}: the list has ${own.length}. palimpsest shows the last ten.`,
    );
  const path = resolve(name);
  if ((await stat(path).catch(() => undefined)) !== undefined) return atPath(path, machine);
  const exact = sessions.filter(({ id }) => id === name);
  const found =
    exact.length > 0 || name.length < LEAST_ID_CHARS ? exact : sessions.filter(({ id }) => id.startsWith(name));
  const [first] = found;
  if (first === undefined)
    throw new ChoiceError(
      'unknown-session',
      `${JSON.stringify(name)} is neither a file nor a session of an agent: write LAST, a number of the list that ` +
        `palimpsest shows, a path, or at least ${LEAST_ID_CHARS} characters of an id.`,
    );
  const ids = new Set(found.map(({ id }) => id));
  if (ids.size > 1) {
    const some = [...ids].slice(0, 3).join(', ');
    throw new ChoiceError('ambiguous-session', `${ids.size} sessions begin with ${name}, such as ${some}: write more.`);
  }
  // A resumed session may have several files. The longest file includes the calls of all other
  // files.
  return chosen(found.reduce((most, one) => (one.file.size > most.file.size ? one : most), first));
}
