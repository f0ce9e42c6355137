import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { HarnessClient } from '../../../src/harness/harness-client.js';
import type { Json } from '../../../src/objects/canonical-json.js';
import { keptArgs, keptArgsHash } from '../../../src/objects/kept-args.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { openClient } from '../../support/context.js';
import { namesOfOneHash, nested } from '../../support/hostile-json.js';
import { temporaryRoot } from '../../support/mcp-clients.js';

let folder: Awaited<ReturnType<typeof temporaryRoot>>;
let client: ContextClient;
let harness: HarnessClient;

beforeAll(async () => {
  folder = await temporaryRoot();
  client = await openClient(folder.root);
  harness = new HarnessClient(client, { mineShell: false, strict: false });
});
afterAll(async () => {
  await harness.close();
  await folder.remove();
});

test.each<[string, { readonly [key: string]: Json }]>([
  ['names of one hash', Object.fromEntries(namesOfOneHash(32_768).map((name) => [name, 'x']))],
  ['a value of 100,000 levels', { deep: nested(100_000) as Json }],
  ['a text of 20 million characters', { content: 'text '.repeat(4_000_000) }],
])('%s: stores, recognises and verifies the call, and the session continues', async (_what, args) => {
  const session = await harness.openSession();
  const call = { id: `hostile-${randomUUID()}`, name: 'a_tool', args, content: 'done' };
  const first = await session.reportToolCall(call);
  await first.applied;
  expect(await session.reportToolCall(call)).toMatchObject({ outcome: 'known', callId: first.callId });
  const found = await (await client.snapshot()).get(first.callId);
  const version = found?.version;
  if (version?.type !== 'toolcall') throw new Error('the call is not there');
  const hash = keptArgsHash(version.args);
  if (hash === undefined) throw new Error('the arguments are not kept as a text');
  expect((await (await client.snapshot()).texts([hash])).get(hash) === keptArgs(args).text?.text).toBe(true);
  await (await session.reportToolCall({ id: `next-${randomUUID()}`, name: 'a_tool', args: {}, content: 'more' }))
    .applied;
  expect(await verifySession(await client.delivered(), session.session.id)).toMatchObject({
    ok: true,
    parts: { damages: [] },
  });
});
