import { randomUUID } from 'node:crypto';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { AssemblyRebuilder } from '../../../src/history/rebuild/rebuild-assembly.js';
import { filesystemId, systemPromptObjectId } from '../../../src/objects/ids.js';
import { type AssemblyMismatch, verifyAssembly } from '../../../src/review/verify/verify-assembly.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { stepId } from '../../../src/store/step-part.js';
import { testAddress, wholeRead } from '../../support/context.js';
import { effort } from '../../support/effort.js';
import { onOneNode } from '../../support/on-one-node.js';
import { callReport } from '../../support/tracked-project.js';
import { executeForeign, openTestClient } from '../../support/xtdb.js';

const TURNS = 8;
const FILES = 3;

describe('proofs of context bases from the transaction log', () => {
  let root: string;
  let client: ContextClient;
  const xtdb = openTestClient();

  beforeAll(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-proved-')));
    const host = filesystemId(`fs-${randomUUID()}`);
    client = await ContextClient.create({
      address: testAddress(),
      roots: [root],
      cwd: root,
      filesystemId: host,
      track: false,
    });
  });
  afterAll(async () => {
    await client.close();
    await xtdb.close();
    await rm(root, { recursive: true, force: true });
  });

  /**
   * A session whose prompt and files change while contexts are delivered. `between` runs after each
   * turn.
   */
  const made = async (between: (session: ContextSession, turn: number) => Promise<void>): Promise<ContextSession> => {
    const session = await client.openSession({});
    for (let turn = 1; turn <= TURNS; turn++) {
      if (turn % FILES === 1) await session.setSystemPrompt(`prompt of turn ${turn}`);
      await session.reportMessage({ role: 'user', text: `turn ${turn}` });
      await session.assemble({ deliver: 'library' });
      // Each session has its own files: changes for another session would appear in this one, too.
      const name = `${session.id}-${turn % FILES}.ts`;
      await writeFile(join(root, name), `${session.id} ${turn}`);
      const { applied } = await session.recordCall(
        callReport({ content: `${turn}`, args: { path: name }, readings: [await wholeRead(client, name)] }),
      );
      await session.assemble({ deliver: 'library' });
      await applied;
      await between(session, turn);
    }
    await client.snapshot();
    return session;
  };

  const fileOf = ({ state }: ContextSession): string => String(state.sets.index.find((id) => !state.isToolResult(id)));

  /** The findings on contexts without the newest transaction, which every writer moves on. */
  const said = (found: readonly AssemblyMismatch[]) =>
    found.map(({ why, ...one }) => ({ ...one, why: why.replace(/transaction \d+$/, '') }));

  const verified = async (session: string) => {
    const reader = openTestClient();
    const { contexts } = await verifySession(new ObjectStore(reader), session).finally(() => reader.close());
    return said(contexts.unequal);
  };

  /** The findings on each context read only at its own basis. */
  const alone = async (session: ContextSession) => {
    const reader = openTestClient();
    try {
      const store = new ObjectStore(reader);
      const present = await store.latest();
      const proofs = await present.assemblies(session.id);
      const found = [];
      for (const proof of proofs)
        found.push(await verifyAssembly({ rebuilder: new AssemblyRebuilder(store), present }, proof));
      return said(found.flatMap((mismatch) => mismatch ?? []));
    } finally {
      await reader.close();
    }
  };

  test('agree with a read at each context’s own basis, for any foreign writes into a running session', async () => {
    const happening = fc.record({
      turn: fc.integer({ min: 1, max: TURNS }),
      target: fc.constantFrom('file' as const, 'prompt' as const, 'step' as const),
      nth: fc.nat(2 * TURNS),
      /** The document of another moment, or no document. */
      from: fc.option(fc.nat(2 * TURNS), { freq: 4 }),
      at: fc.nat(2 * TURNS),
      later: fc.constantFrom(0, 1, 3_600_000),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { minLength: 1, maxLength: 6 }), async (happenings) => {
        const session = await made(async ({ id: name, state }, turn) => {
          const steps = await (await client.snapshot()).steps(name);
          const moment = (n: number): Date => new Date(steps[n % steps.length]?.at ?? 0);
          const files = state.sets.index.filter((id) => !state.isToolResult(id));
          for (const one of happenings.filter((happening) => happening.turn === turn)) {
            const ids = {
              file: files[one.nth % files.length],
              prompt: systemPromptObjectId(name),
              step: stepId(name, 1 + (one.nth % steps.length)),
            };
            const id = String(ids[one.target]);
            const validTime = new Date(moment(one.at).getTime() + one.later);
            const then =
              one.from === null ? undefined : await (await xtdb.db({ validTime: moment(one.from) })).entity(id);
            if (then !== undefined) await xtdb.execute([{ op: 'put', doc: then, validTime }]);
            // If a step were deleted, the session itself could not continue.
            else if (one.target !== 'step') await executeForeign('delete', id, validTime);
          }
        });
        expect(await verified(session.id)).toEqual(await alone(session));
        await executeForeign('evict', fileOf(session));
        const without = await alone(session);
        expect(without.length).toBeGreaterThan(0);
        expect(await verified(session.id)).toEqual(without);
      }),
      { numRuns: effort(3, 60) },
    );
  });

  // Over a shared log XTDB loses a document that is put again soon after its eviction. A node that
  // reaches the eviction later empties it in the shared store.
  onOneNode(
    'a file that was evicted and is put as if it had always been there is missing at the bases of contexts all ' +
      'the same',
    async () => {
      const session = await made(async () => undefined);
      const file = fileOf(session);
      const held = await (await xtdb.db()).entity(file);
      if (held === undefined) throw new Error(`no object ${file}`);
      await executeForeign('evict', file);
      await xtdb.execute([{ op: 'put', doc: held, validTime: new Date(0) }]);
      const missing = await alone(session);
      expect(missing.length).toBeGreaterThan(0);
      expect(await verified(session.id)).toEqual(missing);
    },
  );
});
