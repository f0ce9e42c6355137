import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { upstreamBases } from '../../src/gateway/bases.js';
import { openGateway } from '../../src/gateway/gateway-action.js';
import { gatewayFolder } from '../../src/gateway/gateway-log.js';
import { GatewayLogReader, type SentRequest } from '../../src/gateway/read-log.js';
import type { MaskSetting } from '../../src/host/environment.js';
import { type Answering, type Sent, send, startUpstream, type Upstream, type WireMessage } from './wire-ends.js';

/** A gateway between a test and a scripted upstream. */
export interface ObservedGateway {
  readonly address: string;
  readonly dataDir: string;
  readonly upstream: Upstream;
  /** The gateway's messages about its log. */
  readonly troubles: readonly string[];
  /** Sends a request over the gateway to the upstream of a name. */
  readonly send: (path: string, sent: Sent) => Promise<WireMessage>;
  /** Returns the requests that were logged since the last call. */
  readonly logged: () => Promise<readonly SentRequest[]>;
  readonly close: () => Promise<void>;
}

/**
 * Starts a gateway whose upstreams are all one, which answers with `answer`. A data folder of its
 * own is removed at the end.
 */
export async function observe(answer: Answering, folder?: string, mask?: MaskSetting): Promise<ObservedGateway> {
  const dataDir = folder ?? (await mkdtemp(join(tmpdir(), 'palimpsest-gateway-')));
  const upstream = await startUpstream(answer);
  const names = ['anthropic', 'openai', 'codex', 'gemini', 'code-assist'];
  const troubles: string[] = [];
  const gateway = await openGateway({
    dataDir,
    bases: upstreamBases(names.map((name) => `${name}=${upstream.url}`)),
    port: 0,
    onTrouble: (message) => troubles.push(message),
    ...(mask === undefined ? {} : { mask }),
  });
  const reader = new GatewayLogReader(gatewayFolder(dataDir));
  return {
    address: gateway.address,
    dataDir,
    upstream,
    troubles,
    send: (path, sent) => send(`${gateway.address}${path}`, sent),
    logged: async () => {
      const requests: SentRequest[] = [];
      for await (const request of reader.more()) requests.push(request);
      return requests;
    },
    close: async () => {
      await gateway.close();
      await upstream.close();
      if (folder === undefined) await rm(dataDir, { recursive: true, force: true });
    },
  };
}
