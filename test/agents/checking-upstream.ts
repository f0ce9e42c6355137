import { PrefixCheck, type ThinkingRequest, type WireBlock } from '../support/prefix-check.js';
import { type CheckedCall, type CheckingUpstream, startCheckedModel } from './checked-model.js';
import { pairFault } from './wire-checks.js';

type Json = Readonly<Record<string, unknown>>;

/** The id of an answer, and the requested model. With another model a client drops its thinking. */
interface Answered {
  readonly id: string;
  readonly model: string;
}

/** The provider's own words, by which Claude Code knows that it has to leave the thinking out. */
const BOUND = 'Invalid `signature` in `thinking` block. The block is bound to a different conversation';
const boundElsewhere = (fault: string): string => `${fault.split(':', 1)[0]}: ${BOUND}`;

/** Claude Code's first block differs in every request, and the provider does not count it. */
function withoutBilling(request: ThinkingRequest): ThinkingRequest {
  const { system } = request;
  if (!Array.isArray(system)) return request;
  const blocks = system as readonly WireBlock[];
  return { ...request, system: blocks.filter(({ text }) => !String(text).startsWith('x-anthropic-billing-header')) };
}

function messageEvents(
  { id, model }: Answered,
  blocks: readonly (readonly [Json, readonly Json[]])[],
  stop: string,
): readonly Json[] {
  const usage = { input_tokens: 7, cache_read_input_tokens: 100, cache_creation_input_tokens: 20, output_tokens: 1 };
  const message = { id, type: 'message', role: 'assistant', model, content: [], stop_reason: null, usage };
  return [
    { type: 'message_start', message },
    ...blocks.flatMap(([start, deltas], index) => [
      { type: 'content_block_start', index, content_block: start },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ];
}

/**
 * Starts a model on the wire of Anthropic that thinks before each answer and binds its thoughts to
 * everything before them. A request that breaks the prefix or the pairs of calls and results gets
 * the 400 of the provider, in its words. Sub-agents get one fixed answer; requests for titles and
 * summaries get another.
 */
export function startCheckingUpstream(): Promise<CheckingUpstream> {
  const check = new PrefixCheck();
  const text = (said: string): readonly [Json, readonly Json[]] => [
    { type: 'text', text: '' },
    [{ type: 'text_delta', text: said }],
  ];
  const answerMain = (call: CheckedCall, request: ThinkingRequest, answered: Answered): void => {
    const { tools = [], say } = call.move();
    const thinking = `Thought ${call.number}: the next step follows.`;
    const signature = check.sign(request, thinking);
    const thought: readonly [Json, readonly Json[]] = [
      { type: 'thinking', thinking: '', signature: '' },
      [
        { type: 'thinking_delta', thinking },
        { type: 'signature_delta', signature },
      ],
    ];
    const calls = tools.map(({ name, args }, i): readonly [Json, readonly Json[]] => [
      { type: 'tool_use', id: `toolu_${answered.id}_${i}`, name, input: {} },
      [{ type: 'input_json_delta', partial_json: JSON.stringify(args) }],
    ]);
    const blocks = [thought, ...(say === undefined ? [] : [text(say)]), ...calls];
    call.send(messageEvents(answered, blocks, tools.length === 0 ? 'end_turn' : 'tool_use'));
  };
  return startCheckedModel(/^\/v1\/messages$/, (call) => {
    const whole = call.body as unknown as ThinkingRequest & { readonly model: string };
    const answered = { id: `msg_${process.pid}_${call.number}`, model: whole.model };
    const say = (said: string): void => call.send(messageEvents(answered, [text(said)], 'end_turn'));
    const request = withoutBilling(whole);
    const isSub = call.headers['x-claude-code-agent-id'] !== undefined;
    const names = (request.tools ?? []).map((tool) => String((tool as Json).name));
    const asked = JSON.stringify(request.messages.at(-1) ?? '');
    if (asked.includes('CRITICAL: Respond with TEXT ONLY')) return say('<summary>The files were read.</summary>');
    if (!names.includes('Read')) return say(isSub ? 'nothing to do' : 'A title');
    const unpaired = pairFault(request.messages.filter(({ role }) => role !== 'system'));
    const fault = unpaired ?? check.examine(request).fault;
    if (fault !== undefined) {
      const error = { type: 'invalid_request_error', message: unpaired ?? boundElsewhere(fault) };
      return call.refuse(fault, { type: 'error', error });
    }
    if (isSub) return say(`the sub-agent is done (${answered.id})`);
    return answerMain(call, request, answered);
  });
}
