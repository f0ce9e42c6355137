import { describe, expect, test } from '@jest/globals';
import { PrefixCheck, type ThinkingMessage, type ThinkingRequest, type WireBlock } from '../../support/prefix-check.js';

const TOOLS = [{ name: 'read', description: 'reads', input_schema: { type: 'object' } }];
const SYSTEM = [{ type: 'text', text: 'You are an agent.' }];

/** A conversation of `calls` calls, each with a thought that the provider signed at the time. */
function conversation(calls: number): { readonly check: PrefixCheck; readonly request: ThinkingRequest } {
  const check = new PrefixCheck();
  let messages: readonly ThinkingMessage[] = [{ role: 'user', content: 'Begin.' }];
  for (let n = 0; n < calls; n++) {
    const thinking = `thought ${n}`;
    const signature = check.sign({ system: SYSTEM, tools: TOOLS, messages }, thinking);
    messages = [
      ...messages,
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking, signature },
          { type: 'tool_use', id: `t${n}`, name: 'read', input: { path: 'a', lines: 3 } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: `t${n}`, content: `result ${n}` }] },
    ];
  }
  return { check, request: { system: SYSTEM, tools: TOOLS, messages } };
}

/** Returns the request with rebuilt messages; null removes a block. */
function changed(
  { messages, ...others }: ThinkingRequest,
  change: (block: WireBlock, message: number) => WireBlock | null,
): ThinkingRequest {
  const made = messages.map(({ role, content }, i) => {
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
    return { role, content: blocks.flatMap((block) => change(block, i) ?? []) };
  });
  return { ...others, messages: made };
}

const withoutThoughts = (request: ThinkingRequest, of: (message: number) => boolean): ThinkingRequest =>
  changed(request, (block, i) => (block.type === 'thinking' && of(i) ? null : block));

describe('a provider that binds thinking to the whole prefix', () => {
  const cases: readonly (readonly [
    string,
    (request: ThinkingRequest) => ThinkingRequest,
    readonly [returned: number, valid: number],
  ])[] = [
    ['all of it, as it was', (request) => request, [4, 4]],
    [
      'cache marks that moved',
      (request) => changed(request, (block, i) => (i === 4 ? { ...block, cache_control: {} } : block)),
      [4, 4],
    ],
    [
      'keys in another order',
      (request) => changed(request, (block) => Object.fromEntries(Object.entries(block).reverse()) as never),
      [4, 4],
    ],
    [
      'more behind it',
      (request) => ({ ...request, messages: [...request.messages, { role: 'user', content: 'Go on.' }] }),
      [4, 4],
    ],
    ['thinking left out from the beginning', (request) => withoutThoughts(request, (i) => i < 4), [2, 2]],
    ['thinking left out from the end', (request) => withoutThoughts(request, (i) => i > 4), [2, 2]],
    ['all thinking left out', (request) => withoutThoughts(request, () => true), [0, 0]],
    ['a hole in the thinking', (request) => withoutThoughts(request, (i) => i === 3), [3, 1]],
    [
      'a result that became shorter',
      (request) => changed(request, (block, i) => (i === 4 ? { ...block, content: 'line' } : block)),
      [4, 2],
    ],
    ['another system prompt', (request) => ({ ...request, system: 'You are another agent.' }), [4, 0]],
    ['another tool', (request) => ({ ...request, tools: [...TOOLS, { name: 'write' }] }), [4, 0]],
    [
      'another first message',
      (request) => changed(request, (block, i) => (i === 0 ? { ...block, text: 'Otherwise.' } : block)),
      [4, 0],
    ],
    [
      'a message put in',
      ({ messages, ...others }) => ({ ...others, messages: messages.toSpliced(3, 0, { role: 'user', content: 'x' }) }),
      [4, 1],
    ],
    [
      'thinking that was changed',
      (request) =>
        changed(request, (block, i) => (i === 5 && block.type === 'thinking' ? { ...block, thinking: 'y' } : block)),
      [4, 2],
    ],
  ];
  test.each(cases)('counts returned and valid thinking after a change: %s', (_name, change, [returned, valid]) => {
    const { check, request } = conversation(4);
    const verdict = check.examine(change(request));
    expect([verdict.returned, verdict.valid]).toEqual([returned, valid]);
    expect(verdict.fault === undefined).toBe(returned === valid);
  });

  test('rejects a block that returns after it was left out', () => {
    const { check, request } = conversation(2);
    const shorter = withoutThoughts(request, (i) => i < 2);
    const signature = check.sign(shorter, 'later');
    const later: ThinkingMessage = { role: 'assistant', content: [{ type: 'thinking', thinking: 'later', signature }] };
    const verdict = (of: ThinkingRequest) => check.examine({ ...of, messages: [...of.messages, later] });
    expect(verdict(shorter)).toEqual({ returned: 2, valid: 2 });
    expect(verdict(request)).toMatchObject({ returned: 3, valid: 2 });
  });
});
