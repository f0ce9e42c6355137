import type { IncomingMessage, ServerResponse } from 'node:http';
import { startUpstream, type Upstream } from '../support/wire-ends.js';

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
  /** Number of moves left. */
  readonly left: number;
  /** Number of answered calls of the agent itself, without titles and the like. */
  readonly turns: number;
  add(moves: readonly ModelMove[]): void;
}

/** A call of the model. */
export interface CheckedCall {
  readonly body: Json;
  readonly headers: IncomingMessage['headers'];
  /** Number of the call, from 1. */
  readonly number: number;
  /** Takes the next move; the call counts as one of the agent itself. */
  move(): ModelMove;
  /** Number of calls of the agent itself so far. */
  readonly turns: number;
  /** Answers with a stream of events, named by their types. */
  send(events: readonly Json[]): void;
  /** Refuses the request for a fault with the provider's answer. */
  refuse(fault: string, answer: Json): void;
}

function stream(response: ServerResponse, events: readonly Json[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events) response.write(`event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}

/**
 * Starts a model whose calls are POST requests with this path. All other requests are not found.
 */
export async function startCheckedModel(path: RegExp, answer: (call: CheckedCall) => void): Promise<CheckingUpstream> {
  const moves: ModelMove[] = [];
  const refusals: string[] = [];
  let [number, turns] = [0, 0];
  const upstream = await startUpstream((response, { start, body }, { headers }) => {
    const [, asked = ''] = /^POST ([^\s?]*)/.exec(start) ?? [];
    if (!path.test(asked)) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"type":"error"}');
      return;
    }
    number += 1;
    answer({
      body: JSON.parse(body.toString('utf8')) as Json,
      headers,
      number,
      move: () => {
        turns += 1;
        return moves.shift() ?? { say: 'nothing left' };
      },
      get turns() {
        return turns;
      },
      send: (events) => stream(response, events),
      refuse: (fault, refusal) => {
        refusals.push(fault);
        response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(refusal));
      },
    });
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
