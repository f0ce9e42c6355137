import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ownId } from '../host/own-id.js';
import { bytesHold, type Forgetter, type Forgotten } from '../objects/forgotten.js';
import { namesIn } from '../process/owned-file.js';
import { isAlive } from '../process/process-identity.js';
import { GatewayError } from './gateway-error.js';
import { gatewayFolder, LOG_ENDING } from './gateway-log.js';
import { logWriter, readGatewayLog } from './read-log.js';

async function concerns(path: string, { sessions, texts }: Forgotten): Promise<boolean> {
  const bytes = await readFile(path);
  if (bytesHold(bytes, texts)) return true;
  if (sessions.size === 0) return false;
  for await (const { session } of readGatewayLog(path))
    if (session !== undefined && sessions.has(ownId(session.subagent ?? session.native))) return true;
  return false;
}

async function logsOf(dataDir: string, forgotten: Forgotten): Promise<readonly string[]> {
  const folder = gatewayFolder(dataDir);
  const found: string[] = [];
  for (const name of await namesIn(folder).catch(() => []))
    if (name.endsWith(LOG_ENDING) && (await concerns(join(folder, name), forgotten))) found.push(join(folder, name));
  return found;
}

/**
 * Erases each log file of the gateway that contains a request of the erasure order. It removes the
 * whole file. The other requests in it are usually recorded as contexts already, and the log would
 * keep them for a few days only.
 */
export const FORGET_REQUESTS: Forgetter = {
  keeps: "the gateway's log",
  find: async (dataDir, forgotten) =>
    (await logsOf(dataDir, forgotten)).map((path) => `the log of a gateway, ${path}, with all its requests`),
  forget: async (dataDir, forgotten) => {
    for (const path of await logsOf(dataDir, forgotten)) {
      const writer = await logWriter(path);
      if (writer !== undefined && (await isAlive(writer)))
        throw new GatewayError(
          'log-in-use',
          `the gateway of process ${writer.pid} still writes ${path}, which holds a request of the order: ` +
            'end it, then continue with: palimpsest erase --resume',
        );
      await rm(path, { force: true });
    }
  },
};
