import { request } from 'node:http';
import { z } from 'zod';
import type { OwnNodeAddress } from './state-file.js';

/** What a node says of itself. */
export interface ProbeAnswer {
  readonly version: string | undefined;
  /** True when its indexer is dead: it still answers queries, from stale data, and takes no more writes. */
  readonly ingesterFailed: boolean;
}

const statusSchema = z.looseObject({
  version: z.string().optional(),
  'ingesterFailed?': z.boolean().nullish(),
  ingesterFailed: z.boolean().nullish(),
});

/** Reads the body of `/_xtdb/status` as JSON; undefined when it is none. */
export function parseStatus(body: string): ProbeAnswer | undefined {
  try {
    const status = statusSchema.parse(JSON.parse(body));
    return { version: status.version, ingesterFailed: (status['ingesterFailed?'] ?? status.ingesterFailed) === true };
  } catch {
    return undefined;
  }
}

/** Asks a node for its status; undefined when it does not answer properly within the limit. */
export function probeNode(address: OwnNodeAddress, limitMs: number): Promise<ProbeAnswer | undefined> {
  const target =
    address.kind === 'unix'
      ? { socketPath: address.socketPath, host: 'localhost' }
      : { host: new URL(address.origin).hostname, port: new URL(address.origin).port };
  const headers = { accept: 'application/json', ...(address.kind === 'tcp' ? { authorization: `Bearer ${address.token}` } : {}) };
  return new Promise((resolve) => {
    const call = request({ ...target, path: '/_xtdb/status', headers, agent: false, signal: AbortSignal.timeout(limitMs) }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => resolve(response.statusCode === 200 ? parseStatus(body) : undefined));
      response.on('error', () => resolve(undefined));
    });
    call.on('error', () => resolve(undefined));
    call.end();
  });
}
