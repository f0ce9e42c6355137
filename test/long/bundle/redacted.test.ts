import { hash, randomUUID } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { exportBundle } from '../../../src/bundle/export-bundle.js';
import { importBundle } from '../../../src/bundle/import-bundle.js';
import type { BundleMask } from '../../../src/bundle/masked-names.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import type { Json } from '../../../src/objects/canonical-json.js';
import { type ContextRecord, contextRecord } from '../../../src/objects/context-record.js';
import { hashText } from '../../../src/objects/hashes.js';
import { filesystemId, type SessionId, sessionId } from '../../../src/objects/ids.js';
import { type MaskRules, TextMask } from '../../../src/redaction/text-mask.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { openClient, wholeRead } from '../../support/context.js';
import { effort } from '../../support/effort.js';
import { temporaryRoot } from '../../support/mcp-clients.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { fixtures, replay } from '../../support/replays.js';
import { saidIn } from '../../support/said-in-json.js';
import { openTestClient } from '../../support/xtdb.js';

const maskOf = (rules: MaskRules): BundleMask => {
  const { masked, maskedValue } = new TextMask(rules);
  return { masked, maskedValue, hides: () => false, rules: { session: 0, texts: rules.texts.length, patterns: 0 } };
};

type Line = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

const linesOf = (bytes: Buffer): readonly Line[] =>
  gunzipSync(bytes)
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);

/**
 * Returns every text that may contain a secret: the lines, their decoded content, and long texts
 * joined from their parts.
 */
function everythingIn(bytes: Buffer): string {
  const lines = linesOf(bytes);
  const joined = lines.map(({ text }) => (typeof text?.text === 'string' ? text.text : '')).join('');
  return [gunzipSync(bytes).toString(), saidIn(lines), joined].join('\n');
}

/** Returns hashes that would confirm a guess of a hidden text. */
function hashesIn(bytes: Buffer, isHidden: (text: string) => boolean): readonly string[] {
  const hashes = new Set<string>();
  for (const { put, text } of linesOf(bytes)) {
    const { content, content_hash, file_hash, object_hash, body } = (put ?? {}) as Readonly<Record<string, unknown>>;
    const message = (body as { readonly message?: { readonly text?: string } } | undefined)?.message?.text;
    for (const one of [content, message, text?.text])
      if (typeof one === 'string' && isHidden(one)) for (const name of ['sha256', 'md5']) hashes.add(hash(name, one));
    if (typeof content === 'string' && isHidden(content))
      for (const one of [content_hash, file_hash, object_hash]) if (typeof one === 'string') hashes.add(one);
  }
  return [...hashes];
}

describe('a redacted bundle', () => {
  let node: OwnNode;
  let xtdb: XtdbClient;
  let here: ObjectStore;
  let hereXtdb: XtdbClient;
  let there: ObjectStore;
  let files: Awaited<ReturnType<typeof temporaryRoot>>;

  beforeAll(async () => {
    [files, node] = await Promise.all([temporaryRoot(), ownNode()]);
    xtdb = new XtdbClient(node.address);
    there = new ObjectStore(xtdb);
    hereXtdb = openTestClient();
    here = new ObjectStore(hereXtdb);
  });
  afterAll(async () => {
    await Promise.all([there.close(), here.close()]);
    await Promise.all([xtdb.close(), hereXtdb.close()]);
    await Promise.all([node.stop(), files.remove()]);
  });

  let count = 0;
  const write = async (store: ObjectStore, session: string, mask?: BundleMask) => {
    count += 1;
    const file = join(files.root, `${count}.bundle`);
    const written = await exportBundle(await Timeline.open(store), { session: session as SessionId, file, mask });
    return { file, bytes: await readFile(file), redacted: written.manifest.redacted };
  };

  /**
   * Exports a session redacted and imports it elsewhere. Returns the plain and the redacted bundle.
   */
  const throughRedaction = async (session: string, mask: BundleMask) => {
    const origin = await verifySession(here, session);
    expect([session, origin.ok]).toEqual([session, true]);
    const plain = await write(here, session);
    const left = await write(here, session, mask);
    expect((await write(here, session, mask)).bytes.equals(left.bytes)).toBe(true);
    expect(await importBundle(there, left.file, { clientDir: node.dataDir })).toMatchObject({ isNew: true });
    const { ok, contexts, answers, parts } = await verifySession(there, session);
    expect({ session, ok, unequal: contexts.unequal, answers: answers.unequal, damages: parts.damages }).toEqual({
      session,
      ok: true,
      unequal: [],
      answers: [],
      damages: [],
    });
    expect(contexts.equal).toBeGreaterThan(0);
    expect((await write(there, session)).bytes.equals(left.bytes)).toBe(true);
    // Masking a masked session changes nothing.
    expect((await write(there, session, mask)).bytes.equals(left.bytes)).toBe(true);
    return { plain, left, contexts };
  };

  const word = fc.stringMatching(/^[A-Z][a-z]{3}[0-9]{3}$/);
  const phrase = fc
    .tuple(fc.stringMatching(/^[A-Z][a-z]{6}$/), fc.string({ unit: 'grapheme', minLength: 3, maxLength: 8 }))
    .map(([a, b]) => `${a} "${b.trim()}" 7-9`);

  test('contains no form or hash of a text planted in every member; the rest verifies and exports', async () => {
    await fc.assert(
      fc.asyncProperty(
        word,
        phrase,
        fc.integer({ min: 10_000, max: 99_999 }).map((n) => 100 * n + 37),
        async (short, long, number) => {
          const name = `red-${randomUUID().slice(0, 8)}`;
          const session = sessionId(name);
          const { root, remove } = await temporaryRoot();
          const client = await openClient(root, { filesystemId: filesystemId(`fs-${short}-${randomUUID()}`) });
          try {
            const opened = await client.openSession({ id: name });
            const say = (text: string, role = 'user') =>
              opened.reportMessage({ role, text, name: `by ${short}` }, `native-${short}-${randomUUID()}`);
            await say('Nothing yet', 'user');
            await opened.assemble({ deliver: 'library' });
            await opened.setSystemPrompt(`Never say ${long}`);
            await say(`${long} and ${short}`);
            await mkdir(join(root, `of-${short}`));
            const path = `of-${short}/a.${short}`;
            await writeFile(join(root, path), `${'x'.repeat(3_000)}${long}\n${short}\n`);
            await writeFile(join(root, 'large.txt'), `${'filler '.repeat(9_362)}${long}${' filler'.repeat(160_000)}\n`);
            await writeFile(join(root, 'raw.bin'), Buffer.concat([Buffer.from([0, 255, 254]), Buffer.from(short)]));
            await writeFile(join(root, 'plain.txt'), 'plain\n');
            const call = async (args: { readonly [key: string]: Json }, content: string, more: object = {}) => {
              const { applied, callId } = await opened.recordCall({
                tool: 'bash',
                args,
                status: 'ok',
                content,
                answer: (id) => `${id}: ${content}`,
                ...more,
              });
              await applied;
              return callId;
            };
            for (const file of [path, 'large.txt', 'raw.bin', 'plain.txt']) {
              const readings = [await wholeRead(client, file)];
              await call({ path: file }, `read ${file}`, { tool: 'read', readings, answer: () => 'plain' });
            }
            await call({ [short]: { deep: [long, number, { pin: number }] } }, JSON.stringify({ said: long }), {
              callId: `call-${short}`,
            });
            await call(
              { url: `https://me:${short}@host/x`, password: 'hunter-seven' },
              Buffer.from(`ab${long}`).toString('base64'),
            );
            await call(
              { header: 'Authorization: Basic dXNlcjpwYXNzd29yZA==' },
              `${'y'.repeat(2_000)} ${Buffer.from(short).toString('base64')} ${Buffer.from(long).toString('hex')}`,
            );
            await call({ text: `${'z'.repeat(5_000)}${long}` }, short, {
              notes: [`not taken: ${short}`],
              tool: `tool ${short}`,
              turnRef: `turn ${short}`,
            });
            await call({ command: `sha256sum <<< '${short}'` }, `${hash('sha256', `${short}\n`)}  -\n`);
            await say(JSON.stringify(JSON.stringify(long)), 'assistant');
            await opened.assemble({ deliver: 'library' });
            await opened.assemble({ deliver: 'library', shortIds: true });
            await opened.assemble({ deliver: 'library', renderer: 'messages' });
            await say(`${'w'.repeat(4_000)} ${short}`);
            await opened.assemble({ deliver: 'library' });
            await client.closeSession(opened);
            const store = await client.delivered();
            const text = `kept ${long}`;
            const records = [
              {
                kind: 'note',
                body: { name: short, note: 'fact', text: long, source: short, extra: { [short]: [number, long] } },
              },
              {
                kind: 'event',
                texts: [hashText(text)],
                body: { type: `about ${short}`, subject: short, data: { [long]: long, pin: number } },
              },
              { kind: 'event', body: { type: `about ${short}`, subject: 'twice', data: short } },
              { kind: 'event', body: { type: `about ${short}`, subject: 'twice', data: long } },
              { kind: 'review', body: { object: short, verdict: 'wrong', text: long, by: short } },
              { kind: 'call', body: { native: short, tool: short, args: { a: long, pin: number }, by: 1 } },
              { kind: 'approval', body: { approval: short, state: 'pending', text: long, tool: short, reason: short } },
              {
                kind: 'missing',
                body: {
                  question: long,
                  severity: 'info',
                  status: 'open',
                  neededFor: short,
                  candidates: [short],
                  blocked: [long],
                },
              },
              { kind: 'report', body: { format: short, name: short, body: { text: long, chars: number } } },
              {
                kind: 'injection',
                body: { target: short, point: short, visibility: [short], sha256: hashText(long), items: [short] },
              },
              { kind: 'import', body: { format: 'x', whole: hashText(short), part: 0, parts: 1, text: short } },
              {
                kind: 'compaction',
                body: {
                  counter: 'c',
                  trigger: short,
                  method: 'm',
                  before: number,
                  after: 7,
                  lines: [short],
                  gone: [],
                  cut: [],
                  summary: { text: long, by: short, identifiers: [short], lost: [long] },
                  state: { checkpoint: long, [short]: number },
                },
              },
            ].map((record) =>
              contextRecord({ owner: { session }, turn: 1, seq: 2, at: Date.now(), basis: null, ...record }),
            ) as readonly ContextRecord[];
            await store.putRecords(records, { texts: [text] });

            const texts = [short, long, String(number)];
            const { plain, left, contexts } = await throughRedaction(name, maskOf({ texts, patterns: [] }));
            expect(left.redacted).toMatchObject({ contexts: 4, rules: { session: 0, texts: 3, patterns: 0 } });
            expect(contexts).toMatchObject({ total: 5, equal: 5, redacted: 4 });
            const everything = everythingIn(left.bytes);
            const escaped = JSON.stringify(long).slice(1, -1);
            const forms = [
              ...texts,
              'hunter-seven',
              'dXNlcjpwYXNzd29yZA',
              escaped,
              JSON.stringify(escaped).slice(1, -1),
              ...[short, long].flatMap((one) => [
                Buffer.from(one).toString('hex'),
                Buffer.from(one).toString('base64'),
                encodeURIComponent(one.toWellFormed()),
              ]),
              ...[short, long].flatMap((one) => [hash('sha256', one), hash('sha256', `${one}\n`), hash('md5', one)]),
              ...hashesIn(plain.bytes, (one) => texts.some((hidden) => one.includes(hidden))),
              hash('sha256', Buffer.concat([Buffer.from([0, 255, 254]), Buffer.from(short)])),
            ];
            for (const form of forms) expect([form, everything.includes(form)]).toEqual([form, false]);
          } finally {
            await client.close();
            await remove();
          }
        },
      ),
      { numRuns: effort(2, 12), endOnFailure: true },
    );
  });

  test('is made from recordings of every format without some of their words', async () => {
    let redacted = 0;
    for (const [, paths] of await fixtures()) {
      const report = await replay(paths[0] ?? '');
      for (const { session } of report.sessions) {
        const plain = await write(here, session);
        const said = linesOf(plain.bytes).flatMap(({ put }) => (typeof put?.content === 'string' ? [put.content] : []));
        const words = [...new Set(said.join(' ').match(/[A-Za-z]{9,14}/g) ?? [])]
          .filter((one) => !session.includes(one))
          .slice(0, 3);
        const mask = maskOf({ texts: words, patterns: [] });
        const { left, contexts } = await throughRedaction(session, mask).catch((error: unknown) => {
          // The session conflicts with that of another recording with the same files, so it is
          // skipped.
          if ((error as { readonly code?: unknown }).code === 'conflict')
            return { left: undefined, contexts: { redacted: 0 } };
          throw error;
        });
        if (left === undefined) continue;
        const everything = everythingIn(left.bytes);
        for (const form of words) expect([session, form, everything.includes(form)]).toEqual([session, form, false]);
        redacted += contexts.redacted;
      }
    }
    expect(redacted).toBeGreaterThan(0);
  });
});
