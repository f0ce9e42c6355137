import type { IncomingMessage, ServerResponse } from 'node:http';
import { PrefixCheck, type ThinkingRequest, type WireBlock } from '../support/prefix-check.js';
import { startUpstream, type Upstream } from '../support/wire-ends.js';
import { pairFault } from './wire-checks.js';

type Json = Readonly<Record<string, unknown>>;

/** The action of the model at one call. */
export interface ModelMove {
  readonly tools?: readonly { readonly name: string; readonly args: Json }[];
  readonly say?: string;
}

/** An upstream that checks each request by the rules of its wire before it answers. */
export interface CheckingUpstream extends Upstream {
  /** The refusals that it sent; none if every request kept the rules. */
  readonly refusals: readonly string[];
  /** Moves that are to come. */
  readonly left: number;
  /** Number of answered calls of the agent itself, without titles and the like. */
  readonly turns: number;
  add(moves: readonly ModelMove[]): void;
}

/** The id of an answer, and the requested model. With another model a client drops its thinking. */
interface Answered {
  readonly id: string;
  readonly model: string;
}

const events = (response: ServerResponse, all: readonly Json[]): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of all) response.write(`event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
};

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
 * the 400 of the provider, in its words. A sub-agent gets one answer, a title or a summary another.
 */
export async function startCheckingUpstream(): Promise<CheckingUpstream> {
  const check = new PrefixCheck();
  const moves: ModelMove[] = [];
  const refusals: string[] = [];
  let number = 0;
  let turns = 0;
  const answerMain = (response: ServerResponse, request: ThinkingRequest, answered: Answered): void => {
    const { tools = [], say } = moves.shift() ?? { say: 'nothing left' };
    turns += 1;
    const thinking = `Thought ${number}: the next step follows.`;
    const signature = check.sign(request, thinking);
    const blocks: (readonly [Json, readonly Json[]])[] = [
      [
        { type: 'thinking', thinking: '', signature: '' },
        [
          { type: 'thinking_delta', thinking },
          { type: 'signature_delta', signature },
        ],
      ],
    ];
    if (say !== undefined) blocks.push([{ type: 'text', text: '' }, [{ type: 'text_delta', text: say }]]);
    for (const [i, { name, args }] of tools.entries())
      blocks.push([
        { type: 'tool_use', id: `toolu_${answered.id}_${i}`, name, input: {} },
        [{ type: 'input_json_delta', partial_json: JSON.stringify(args) }],
      ]);
    events(response, messageEvents(answered, blocks, tools.length === 0 ? 'end_turn' : 'tool_use'));
  };
  const say = (response: ServerResponse, answered: Answered, text: string): void =>
    events(
      response,
      messageEvents(answered, [[{ type: 'text', text: '' }, [{ type: 'text_delta', text }]]], 'end_turn'),
    );
  const upstream = await startUpstream((response, { start, body }, incoming: IncomingMessage) => {
    if (!/^POST \/v1\/messages(?:\?|$)/.test(start)) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"type":"error"}');
      return;
    }
    number += 1;
    const id = `msg_${process.pid}_${number}`;
    const whole = JSON.parse(body.toString('utf8')) as ThinkingRequest & { readonly model: string };
    const answered = { id, model: whole.model };
    const request = withoutBilling(whole);
    const isSub = incoming.headers['x-claude-code-agent-id'] !== undefined;
    const names = (request.tools ?? []).map((tool) => String((tool as Json).name));
    const asked = JSON.stringify(request.messages.at(-1) ?? '');
    if (asked.includes('CRITICAL: Respond with TEXT ONLY')) {
      say(response, answered, '<summary>The files were read.</summary>');
      return;
    }
    if (!names.includes('Read')) {
      say(response, answered, isSub ? 'nothing to do' : 'A title');
      return;
    }
    const unpaired = pairFault(request.messages.filter(({ role }) => role !== 'system'));
    const fault = unpaired ?? check.examine(request).fault;
    if (fault !== undefined) {
      refusals.push(fault);
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({
          type: 'error',
          error: { type: 'invalid_request_error', message: unpaired ?? boundElsewhere(fault) },
        }),
      );
    } else if (isSub) say(response, answered, `the sub-agent is done (${id})`);
    else answerMain(response, request, answered);
  });
  return {
    ...upstream,
    refusals,
    get left() {
      return moves.length;
    },
    get turns() {
      return turns;
    },
    add: (more) => void moves.push(...more),
  };
}
