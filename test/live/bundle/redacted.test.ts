import { createHash, randomUUID } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { checkBundle } from '../../../src/bundle/check-bundle.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { Json } from '../../../src/objects/canonical-json.js';
import { type SessionId, sessionId } from '../../../src/objects/ids.js';
import type { Packed, PageManifest } from '../../../src/page/server/page-format.js';
import { unpackedValue } from '../../../src/page/unpacked-value.js';
import { askHere } from '../../support/ask-here.js';
import { openClient, wholeRead } from '../../support/context.js';
import { suiteData, temporaryRoot } from '../../support/mcp-clients.js';
import { saidIn } from '../../support/said-in-json.js';

const SECRET = 'Blue "Heron" costs twelve\tper kilo';

const HIDDEN = [
  'Heron',
  'costs twelve',
  'filler filler',
  'correct-horse',
  '47110815',
  'dXNlcjpwYXNz',
  'PIN4711',
  'of the large item',
];

describe('a redacted session', () => {
  const name = `red${randomUUID().slice(0, 8)}`;
  const session = sessionId(name);
  let client: ContextClient;
  let folder: Awaited<ReturnType<typeof temporaryRoot>>;
  const path = (file: string) => join(folder.root, file);
  const run = (...args: string[]) => askHere([...args, '--data', suiteData()]);
  /** Hashes of texts with the secret, which would confirm a guess. */
  const hashes: string[] = [];

  beforeAll(async () => {
    folder = await temporaryRoot();
    client = await openClient(folder.root);
    const opened = await client.openSession({ id: name });
    const keep = (text: string): string => {
      hashes.push(createHash('sha256').update(text).digest('hex'));
      return text;
    };
    await opened.setSystemPrompt('Be careful.');
    await opened.reportMessage({ role: 'user', text: 'Begin with nothing to hide.' });
    await opened.assemble({ deliver: 'library' });
    await opened.reportMessage({ role: 'assistant', text: 'Yes.' });
    await opened.reportMessage({ role: 'user', text: keep(`What does it say? ${SECRET}`) });
    // Long enough for chunks, with the text across a chunk border.
    const long = keep(`${'filler '.repeat(9_360)}${SECRET}${' filler'.repeat(9_000)}\n`);
    await writeFile(path('notes.txt'), long);
    const call = async (args: { readonly [name: string]: Json }, content: string, more: object = {}) =>
      (await opened.recordCall({ tool: 'bash', args, status: 'ok', content, answer: () => content, ...more })).applied;
    await call({ path: 'notes.txt' }, long, { readings: [await wholeRead(client, 'notes.txt')] });
    await call({ command: `echo '${SECRET}'` }, keep(`{"said": ${JSON.stringify(`x ${SECRET}`)}}`));
    await call({ command: 'base64 it' }, keep(Buffer.from(`ab${SECRET}`).toString('base64')));
    await call({ password: 'correct-horse', pin: 47_110_815, headers: { Authorization: 'Basic dXNlcjpwYXNz' } }, 'ok');
    // Hidden as a whole, and larger than the rest.
    const large = Array.from({ length: 12 }, (_, i) => `${i} of the large item `.repeat(5_000)).join('\n');
    const report = { tool: 'dump', args: {}, status: 'ok', content: keep(large), answer: () => 'much' } as const;
    const dump = await opened.recordCall(report);
    await dump.applied;
    // Hidden as a whole by a rule that names the call.
    const pin = await opened.recordCall({
      tool: 'get_pin',
      args: { of: 7 },
      status: 'ok',
      content: keep('PIN4711'),
      answer: () => 'PIN4711',
    });
    await pin.applied;
    // One step has two contexts, and the page has only the later context's text.
    await opened.assemble({ deliver: 'library' });
    await opened.assemble({ deliver: 'library', shortIds: true });
    await opened.reportMessage({ role: 'assistant', text: `It says ${JSON.stringify(SECRET)}` }, undefined, {
      cacheMiss: { reason: SECRET },
    });
    await opened.assemble({ deliver: 'library' });
    await client.closeSession(opened);
    const store = await client.delivered();
    const body = {
      type: 'context.redaction.applied',
      subject: 'price',
      data: { redaction_state: 'masked', exact: [SECRET] },
    };
    const whole = { type: body.type, subject: pin.callId, data: { redaction_state: 'redacted' } };
    const event = { kind: 'event', owner: { session }, turn: 1, seq: 1, at: Date.now(), basis: null } as const;
    await store.putRecords([
      { ...event, body },
      { ...event, body: whole },
      { ...event, body: { ...whole, subject: dump.callId } },
    ]);
    for (const proof of await (await store.latest()).assemblies(session as SessionId))
      if (proof.step > 2) hashes.push(proof.sha256);
    await writeFile(path('rules'), '# what else is to be hidden\nfiller filler\n47110815\n');
  });
  afterAll(async () => {
    await client.close();
    await folder.remove();
  });

  test('requires an explicit flag, and an invalid rule changes nothing', async () => {
    const refused = await run('export', name, '--html', path('no.html'));
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/has redaction rules \(3\).*--redact/)]);
    // An item without any data cannot be hidden.
    const store = await client.delivered();
    const lost = { type: 'context.redaction.applied', subject: 'nobody', data: { redaction_state: 'redacted' } };
    const other = await client.openSession({ id: `${name}-lost` });
    await other.reportMessage({ role: 'user', text: 'Hello' });
    await client.closeSession(other);
    await client.delivered();
    await store.putRecords([
      { kind: 'event', owner: { session: other.id }, turn: 1, seq: 1, at: Date.now(), basis: null, body: lost },
    ]);
    for (const [flags, told] of [
      [[], /has redaction rules \(1\).*--redact/],
      [['--redact'], /1 of the rules .* do not exist in it.*--with-redacted/],
    ] as const)
      expect((await run('export', other.id, path('lost.bundle'), ...flags)).stderr).toMatch(told);
    expect((await run('export', other.id, path('lost.bundle'), '--redact', '--with-redacted')).code).toBe(0);
    await writeFile(path('bad-rules'), '/[/');
    const bad = await run('export', name, '--html', path('no.html'), '--redact', path('bad-rules'));
    expect([bad.code, bad.stderr]).toEqual([1, expect.stringContaining('line 1 of the rules')]);
    await expect(stat(path('no.html'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('has no form or hash of the text in a bundle, which still verifies', async () => {
    const written = await run('export', name, path('red.bundle'), '--redact', path('rules'), '--json');
    expect([written.code, written.stderr]).toEqual([0, '']);
    const raw = gunzipSync(await readFile(path('red.bundle'))).toString();
    const lines = raw
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { readonly text?: { readonly text?: string } });
    const whole = [raw, saidIn(lines), lines.map(({ text }) => text?.text ?? '').join('')].join('\n');
    for (const form of HIDDEN.concat(hashes)) expect([form, whole.includes(form)]).toEqual([form, false]);
    const { header, manifest } = await checkBundle(path('red.bundle'));
    expect([header.version, manifest.redacted]).toEqual([
      2,
      { rules: { session: 3, texts: 2, patterns: 0 }, versions: 7, steps: 6, contexts: 3, records: 1, names: 0 },
    ]);
  });

  test('has no form or hash of the text on a page; the rest of the page is unchanged', async () => {
    const written = await run('export', name, '--html', path('page.html'), '--redact', path('rules'), '--json');
    expect([written.code, written.stderr, written.code === 0 ? '' : written.stdout]).toEqual([0, '', '']);
    expect(JSON.parse(written.stdout).masked).toBeGreaterThan(10);
    const html = await readFile(path('page.html'), 'utf8');
    const dataOf = (id: string): Buffer =>
      Buffer.from(new RegExp(`id="${id}">([^<]*)<`).exec(html)?.[1] ?? '', 'base64');
    const manifest = JSON.parse(dataOf('palimpsest-manifest').toString()) as PageManifest;
    const raw = manifest.blocks.map((_, i) => gunzipSync(dataOf(`palimpsest-block-${i}`)).toString());
    const nodes = raw.flatMap((json) => JSON.parse(json) as Packed[]);
    const index = nodes[manifest.answers] as Readonly<Record<string, Packed>>;
    const answers = Object.fromEntries(
      Object.entries(index).map(([key, value]) => [key, unpackedValue(value, (node) => nodes[node])]),
    );
    const whole = [html, ...raw, saidIn(answers)].join('\n');
    for (const form of HIDDEN.concat(hashes)) expect([form, whole.includes(form)]).toEqual([form, false]);
    const contexts = Object.entries(answers).filter(([key]) => key.startsWith('/v1/context'));
    const states = contexts.map(([, one]) => {
      const {
        text,
        sha256,
        redacted = false,
      } = one as { readonly text: string; readonly sha256: string; readonly redacted?: boolean };
      expect(createHash('sha256').update(text).digest('hex')).toBe(sha256);
      return redacted;
    });
    expect(states).toEqual([false, true, true]);
  });
});
