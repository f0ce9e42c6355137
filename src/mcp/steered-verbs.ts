import * as z from 'zod';
import { createLog, type LogLevel } from '../host/log.js';
import type { Verb } from '../session/verb-outcome.js';
import { VERB_DESCRIPTIONS } from '../tools/verb-descriptions.js';
import { messageOf } from '../values/thrown.js';
import { createProtocolServer, type Exchange, failedCall } from './adapter.js';
import { callHints } from './call-session.js';
import { openStdio } from './stdio.js';

const answerSchema = z.object({ text: z.string(), ok: z.boolean() });

/** The text about the verbs for a model whose requests a gateway steers. */
export const STEERED_GUIDE = `Palimpsest shortens the earlier part of this conversation before it reaches you. There, \
a line "toolcall_ref id=... tool=... status=... args=..." stands for a call whose result is not loaded. A block that \
begins with "ACTIVE_CONTENT id=..." is a loaded content, of an edit with its arguments. activate loads results and \
files by id or path. Their contents are there in your next step. deactivate removes them, with one of the next \
messages of the user. pin keeps results that would collapse on their own, unpin lets them go. Lines and blocks of this \
kind are not said by the user.`;

/** Maximum wait for the gateway, milliseconds. */
const LIMIT_MS = 20_000;

interface VerbCall {
  readonly verb: Verb;
  readonly args: unknown;
}

/** Passes a call on to the gateway that steers this agent. */
async function passOn(address: string, { verb, args }: VerbCall, { meta, signal }: Exchange) {
  const { callId, thread } = callHints(meta);
  const ids = typeof args === 'object' && args !== null && 'ids' in args ? args.ids : undefined;
  const body = JSON.stringify({ verb, ids: typeof ids === 'string' ? [ids] : ids, callId, thread });
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]);
    const answer = await fetch(address, { method: 'POST', body, signal: limit });
    const { text, ok } = answerSchema.parse(await answer.json());
    return ok ? { content: [{ type: 'text' as const, text }] } : failedCall(text);
  } catch (error) {
    return failedCall(`Error: the gateway of Palimpsest does not answer: ${messageOf(error).slice(0, 500)}`);
  }
}

/**
 * Serves an agent whose requests a gateway steers. It serves only the verbs, and passes them to the
 * session that the gateway steers. The gateway records the agent's own tools there.
 */
export async function serveSteered(address: string, version: string, logLevel: LogLevel): Promise<void> {
  const inputSchema = {
    type: 'object' as const,
    properties: {
      ids: {
        type: 'array',
        items: { type: 'string' },
        minItems: 1,
        description: 'Ids, unique prefixes of 8 or more characters, or paths',
      },
    },
    required: ['ids'],
  };
  const { server } = createProtocolServer({
    info: { name: 'palimpsest', version },
    instructions: STEERED_GUIDE,
    tools: async () =>
      (Object.entries(VERB_DESCRIPTIONS.loop) as [Verb, string][]).map(([name, description]) => ({
        definition: { name, description, inputSchema },
        call: (args: unknown, exchange: Exchange) => passOn(address, { verb: name, args }, exchange),
      })),
    log: createLog(logLevel),
  });
  const { transport, ended } = openStdio();
  await server.connect(transport);
  await ended;
  await server.close();
}
