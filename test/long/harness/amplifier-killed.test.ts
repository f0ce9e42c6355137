import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { HarnessApi } from '../../support/harness-api.js';
import { startServe, temporaryRoot } from '../../support/mcp-clients.js';

interface Named {
  readonly id: string;
  readonly message: { readonly role: 'user' | 'assistant' | 'tool'; readonly [member: string]: unknown };
}

/** A turn with two calls whose results come one by one. */
function turn(n: number): readonly Named[] {
  const call = (id: string) => ({ id, tool: 'look', arguments: { n } });
  const ids = [`k${n}a`, `k${n}b`];
  const messages: readonly Named['message'][] = [
    { role: 'user', content: `question ${n}`, metadata: { place: n } },
    { role: 'assistant', content: null, tool_calls: ids.map(call) },
    ...ids.map((id) => ({ role: 'tool' as const, tool_call_id: id, content: `result ${id}` })),
    { role: 'assistant', content: [{ type: 'text', text: `answer ${n}` }] },
  ];
  return messages.map((message) => ({ id: randomUUID(), message }));
}

test('the list of Amplifier survives kills of servers between and inside its requests, whole and once', async () => {
  const { root, remove } = await temporaryRoot();
  const id = `killed-${randomUUID().slice(0, 8)}`;
  const given = Array.from({ length: 6 }, (_, n) => turn(n)).flat();
  let next = 0;
  for (const until of [4, 11, 18, given.length]) {
    const serve = await startServe([], root);
    const api = new HarnessApi(serve);
    await api.call('openSession', undefined, { id });
    for (; next < until; next += 1) await api.call('addAmplifierMessages', id, { messages: [given[next] as Named] });
    if (next === given.length) {
      const wish = { budget: 5_000 };
      const { messages } = await api.call('getAmplifierMessages', id);
      expect(messages.map(({ metadata: _metadata, ...message }) => message)).toEqual(
        given.map(({ message: { metadata: _metadata, ...message } }) => message),
      );
      expect(messages.flatMap(({ metadata }) => metadata?.place ?? [])).toEqual([0, 1, 2, 3, 4, 5]);
      expect((await api.call('viewAmplifierMessages', id, wish)).messages).toEqual(messages);
      await api.close();
      expect(await serve.close()).toBe(0);
      break;
    }
    // The answer may be lost, so the request is sent again to the next server, under the same name.
    const path = `/v1/sessions/${id}/amplifier/messages`;
    const unanswered = api.send(path, { body: { messages: [given[next]] } }).catch(() => undefined);
    await serve.kill();
    await unanswered;
    await api.close();
  }
  await remove();
});
