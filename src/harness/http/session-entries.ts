import type * as z from 'zod';
import type { ContextClient } from '../../client/session/context-client.js';
import type { Backend } from '../../host/backend.js';
import { contractEntries, type Exchange, type Held, type Operation, type Schemas } from '../../http/http-contract.js';
import type { HarnessSession } from '../harness-session.js';
import { ApiSessions } from './api-sessions.js';

/** An open session and the client that it belongs to. */
export interface OpenContext {
  readonly client: ContextClient;
  readonly session: HarnessSession;
}

const kept = new WeakMap<Backend, ApiSessions>();

/** Creates the store of the sessions that harnesses open on a server. */
export function holdSessions(backend: Backend, settings: ConstructorParameters<typeof ApiSessions>[1]): Held {
  const sessions = new ApiSessions(backend, settings);
  kept.set(backend, sessions);
  return { forgetIdle: (idleMs) => sessions.forgetIdle(idleMs), close: () => sessions.closeAll() };
}

/** Returns the open sessions of the server that got a request. */
export function sessionsOf({ backend }: Pick<Exchange, 'backend'>): ApiSessions {
  const sessions = kept.get(backend);
  if (sessions === undefined) throw new Error('BUG: this server keeps no open sessions');
  return sessions;
}

/** Returns the functions that declare a contract's operations on open sessions. */
export function sessionEntries<R extends Schemas, A extends Schemas>(schemas: {
  readonly requests: R;
  readonly answers: A;
}) {
  const { operation } = contractEntries(schemas);
  type Declared<N, Q> = Omit<Operation, 'request' | 'answer' | 'handle' | 'statusOf'> & {
    readonly request?: Q;
    readonly answer: N;
  };
  return {
    operation,
    /**
     * Declares an operation on an open session. It may succeed while the database is unavailable.
     */
    onSession: <N extends keyof A & string, Q extends keyof R & string = never>({
      handle,
      ...entry
    }: Declared<N, Q> & {
      handle(session: HarnessSession, body: z.output<R[Q]>): Promise<z.input<A[N]>>;
    }) => ({
      ...entry,
      handle: (exchange: Exchange, body: z.output<R[Q]>) =>
        sessionsOf(exchange).use(exchange.id, (session) => handle(session, body)),
    }),
    /**
     * Declares an operation on an open session that reads the database, and therefore waits for it.
     */
    onStored: <N extends keyof A & string, Q extends keyof R & string = never>({
      handle,
      ...entry
    }: Declared<N, Q> & {
      handle(open: OpenContext, body: z.output<R[Q]>): Promise<z.input<A[N]>>;
    }) => ({
      ...entry,
      handle: (exchange: Exchange, body: z.output<R[Q]>) =>
        sessionsOf(exchange).use(exchange.id, async (session) =>
          handle({ client: await exchange.client(), session }, body),
        ),
    }),
  };
}
