import * as z from 'zod';
import { callSuffix, type ObjectId, type SessionId } from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';

const PARENT = z.object({
  type: z.literal('parent-session'),
  subject: z.string(),
  data: z.object({ relation: z.string(), call: z.string().optional() }),
});

const REASONING = z.object({ type: z.literal('reasoning-left-out'), data: z.object({ texts: z.number() }) });

const EVENTS = { kinds: ['event'] as const, onDamaged: () => undefined };

/** The session that started another one as its sub-agent, and the call that did. */
export interface Starter {
  readonly session: string;
  readonly kind: 'sub-agent';
  readonly call?: ObjectId;
}

/** Reads which session started another one as its sub-agent, and the call that did. */
export async function readStarter(snapshot: StoreSnapshot, id: SessionId): Promise<Starter | undefined> {
  for (const { body } of await snapshot.records(id, { ...EVENTS, last: 0 })) {
    const { data: found } = PARENT.safeParse(body);
    if (found?.data.relation !== 'subagent') continue;
    const { subject: session, data } = found;
    const call =
      data.call === undefined
        ? undefined
        : (`${data.call.slice(0, 300)}${callSuffix(session as SessionId)}` as ObjectId);
    return { session, kind: 'sub-agent', ...defined({ call }) };
  }
  return undefined;
}

/** Reads how many texts of reasoning the transcript of a session has. They are not imported. */
export async function readReasoning(snapshot: StoreSnapshot, id: SessionId): Promise<number> {
  const records = await snapshot.records(id, EVENTS);
  return Math.max(0, ...records.flatMap(({ body }) => REASONING.safeParse(body).data?.data.texts ?? []));
}
