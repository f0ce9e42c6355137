import { openClient } from './open-client.js';
import type { Settings } from './settings.js';

/** Options and callbacks of a delivery. */
export interface DeliveryOptions {
  /** This process's name in process lists. */
  readonly what: string;
  /** Time in milliseconds without a delivered record after which the delivery fails. */
  readonly stuckMs: number;
  /** Receives one line about each unreadable part of a journal. */
  readonly onNotice?: (line: string) => void;
  /** Receives the number of waiting records, repeatedly. */
  readonly onWaiting?: (records: number) => void;
}

/**
 * Delivers the journals that dead processes left in the settings' data folder (decision F6). Does
 * not touch journals of living processes. Finds or starts the node first.
 * @throws {SessionError} `node-unavailable` – the database took no record for too long. Waiting
 *   records stay in the journals.
 * @throws {NodeError} every code – the node cannot be started.
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
