import { openClient } from './open-client.js';
import type { Settings } from './settings.js';

/** How a delivery is made, and whom it tells. */
export interface DeliveryOptions {
  /** What this process is called where others list it. */
  readonly what: string;
  /** A database that takes not one record in so long a time is not working on it, milliseconds. */
  readonly stuckMs: number;
  /** Called with one line about what cannot be read of a journal. */
  readonly onNotice?: (line: string) => void;
  /** Called with how many records wait, again and again. */
  readonly onWaiting?: (records: number) => void;
}

/**
 * Brings what dead processes left in the journals of the settings' data folder to the database (decision F6), however much that is, for as long as the database takes some
 * of it. What living processes hold stays theirs. The node is found or started first.
 * @throws {SessionError} `node-unavailable` – the database took nothing for too long; what waits stays in the journals
 * @throws {NodeError} every code – the node cannot be started
 * @throws {XtdbError} every code – the database does not answer
 */
export async function deliverJournals(
  settings: Settings,
  { stuckMs, onWaiting, ...options }: DeliveryOptions,
): Promise<void> {
  const { dataDir } = settings.node;
  const { client, close } = await openClient(settings, { roots: [dataDir], cwd: dataDir, track: false, ...options });
  try {
    await client.ready();
    for (let { waiting } = client.status; waiting > 0; { waiting } = client.status) {
      onWaiting?.(waiting);
      await client.backpressure(waiting - 1, stuckMs);
    }
    await client.delivered({ others: false });
  } finally {
    await close();
  }
}
