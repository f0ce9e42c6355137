import { isAlive, type ProcessIdentity, signalProcess } from '../process/process-identity.js';
import { waitFor } from './pause.js';

/** A clean close may take XTDB ten seconds, and its supervisor waits twenty. */
const GRACE_MS = 25_000;
const KILL_LIMIT_MS = 5_000;

/** Ends exactly this process: asks it, and kills it when it does not go. False when it lives on all the same. */
export async function endProcess(identity: ProcessIdentity): Promise<boolean> {
  const gone = async (): Promise<true | undefined> => ((await isAlive(identity)) ? undefined : true);
  await signalProcess(identity, 'SIGTERM');
  if (await waitFor(gone, { limitMs: GRACE_MS })) return true;
  await signalProcess(identity, 'SIGKILL');
  return (await waitFor(gone, { limitMs: KILL_LIMIT_MS })) === true;
}
