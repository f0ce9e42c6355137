import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import * as z from 'zod';
import { ownId } from '../../host/own-id.js';
import { pollUntil } from '../../process/within-limit.js';
import { messageOf } from '../../values/thrown.js';
import type { Steering } from './steering.js';

const callSchema = z.object({
  verb: z.enum(['activate', 'deactivate', 'pin', 'unpin']),
  ids: z.array(z.string()).min(1).max(1_000),
  /** The call's id in the model's answer. It identifies the session. */
  callId: z.string().max(400).optional(),
  /** The agent's own id of the session. */
  thread: z.string().max(400).optional(),
});

const MOST_BYTES = 1_048_576;
/** Maximum wait for a call's id, in milliseconds. The model's answer may still be arriving. */
const CALL_SEEN_MS = 2_000;

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > MOST_BYTES) throw new RangeError(`the call has more than ${MOST_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

/**
 * The endpoint to which `palimpsest mcp`, running inside a steered agent, forwards the model's verb
 * calls. Its path contains a secret, so only the agent's processes can call it.
 */
export class VerbEndpoint {
  readonly #steering: Steering;
  readonly #secret = randomBytes(24).toString('base64url');

  constructor(steering: Steering) {
    this.#steering = steering;
  }

  /** The path of the endpoint. */
  get path(): string {
    return `/palimpsest/${this.#secret}`;
  }

  /** Returns whether a request is for the endpoint. */
  takes(url: string | undefined): boolean {
    const [given, own] = [Buffer.from(url ?? ''), Buffer.from(this.path)];
    return given.length === own.length && timingSafeEqual(given, own);
  }

  /** Runs a tool call and responds with the text for the model. Never rejects. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = (text: string, ok: boolean): void => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ text, ok }));
    };
    try {
      const { verb, ids, callId, thread } = callSchema.parse(JSON.parse(await textOf(request)));
      const session = await this.#sessionOf(callId, thread);
      if (session === undefined)
        answer(
          `Error: no steered session has the call ${callId ?? 'without an id'}. Continue without this tool.`,
          false,
        );
      else answer(await this.#steering.verb({ session, verb, ids, ...(callId === undefined ? {} : { callId }) }), true);
    } catch (error) {
      answer(`Error: ${messageOf(error).slice(0, 1_500)}`, false);
    }
  }

  async #sessionOf(callId: string | undefined, thread: string | undefined) {
    const found =
      callId === undefined
        ? undefined
        : await pollUntil(async () => this.#steering.sessionOfCall(callId), { limitMs: CALL_SEEN_MS });
    if (found !== undefined || thread === undefined) return found;
    const id = ownId(thread);
    return this.#steering.has(id) ? id : undefined;
  }
}
