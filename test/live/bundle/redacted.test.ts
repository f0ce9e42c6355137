import { createHash, randomUUID } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { Packed, PageManifest } from '../../../src/http/page-format.js';
import type { Json } from '../../../src/objects/canonical-json.js';
import { type SessionId, sessionId } from '../../../src/objects/ids.js';
import { unpackedValue } from '../../../web/unpacked-value.js';
import { askHere } from '../../support/ask-here.js';
import { openClient, wholeRead } from '../../support/context.js';
import { suiteData, temporaryRoot } from '../../support/mcp-clients.js';

const SECRET = 'Blue "Heron" costs twelve\tper kilo';

/** Everything that stands in some values, in every text with what it says in base64. */
function said(value: unknown): string {
  const texts: string[] = [];
  const visit = (one: unknown): void => {
    if (typeof one === 'string') texts.push(one);
    else if (typeof one === 'object' && one !== null)
      for (const [name, inner] of Object.entries(one)) {
        texts.push(name);
        visit(inner);
      }
  };
  visit(value);
  const decoded = texts.flatMap((text) =>
    (text.match(/[\w+/-]{16,}/g) ?? []).flatMap((run) => [0, 1, 2, 3].map((from) => Buffer.from(run.slice(from), 'base64').toString())),
  );
  return [...texts, ...decoded].join('\n');
}

describe('a session without what is to be hidden', () => {
  const name = `red${randomUUID().slice(0, 8)}`;
  const session = sessionId(name);
  let client: ContextClient;
  let folder: Awaited<ReturnType<typeof temporaryRoot>>;
  const path = (file: string) => join(folder.root, file);
  const run = (...args: string[]) => askHere([...args, '--data', suiteData()]);
  /** Hashes of what holds the secret: whoever guesses it could tell by them. */
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
    // Long enough for pieces, with the text over the border of two.
    const long = keep(`${'filler '.repeat(9_360)}${SECRET}${' filler'.repeat(9_000)}\n`);
    await writeFile(path('notes.txt'), long);
    const call = async (args: { readonly [name: string]: Json }, content: string, more: object = {}) =>
      (await opened.recordCall({ tool: 'bash', args, status: 'ok', content, answer: () => content, ...more })).applied;
    await call({ path: 'notes.txt' }, long, { readings: [await wholeRead(client, 'notes.txt')] });
    await call({ command: `echo '${SECRET}'` }, keep(`{"said": ${JSON.stringify(`x ${SECRET}`)}}`));
    await call({ command: 'base64 it' }, keep(Buffer.from(`ab${SECRET}`).toString('base64')));
    await call({ password: 'correct-horse', pin: 47_110_815, headers: { Authorization: 'Basic dXNlcjpwYXNz' } }, 'ok');
    // Two contexts of one step: the page has the later one's text alone.
    await opened.assemble({ deliver: 'library' });
    await opened.assemble({ deliver: 'library', shortIds: true });
    await opened.reportMessage({ role: 'assistant', text: `It says ${JSON.stringify(SECRET)}` });
    await opened.assemble({ deliver: 'library' });
    await client.closeSession(opened);
    const store = await client.delivered();
    const body = { type: 'context.redaction.applied', subject: 'price', data: { redaction_state: 'masked', exact: [SECRET] } };
    await store.putRecords([{ kind: 'event', owner: { session }, turn: 1, seq: 1, at: Date.now(), basis: null, body }]);
    for (const proof of await (await store.latest()).assemblies(session as SessionId)) if (proof.step > 2) hashes.push(proof.sha256);
    await writeFile(path('rules'), '# what else is to be hidden\nfiller filler\n47110815\n');
  });
  afterAll(async () => {
    await client.close();
    await folder.remove();
  });

  test('is refused unless that is said, and a rule that cannot be used changes nothing', async () => {
    const refused = await run('export', name, '--html', path('no.html'));
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/has redaction rules \(1\).*--redact/)]);
    await writeFile(path('bad-rules'), '/[/');
    const bad = await run('export', name, '--html', path('no.html'), '--redact', path('bad-rules'));
    expect([bad.code, bad.stderr]).toEqual([1, expect.stringContaining('line 1 of the rules')]);
    await expect(stat(path('no.html'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('as a page: it stands there in no form, nor does a hash of it; what is whole is whole', async () => {
    const written = await run('export', name, '--html', path('page.html'), '--redact', path('rules'), '--json');
    expect([written.code, written.stderr]).toEqual([0, '']);
    expect(JSON.parse(written.stdout).masked).toBeGreaterThan(10);
    const html = await readFile(path('page.html'), 'utf8');
    const dataOf = (id: string): Buffer => Buffer.from(new RegExp(`id="${id}">([^<]*)<`).exec(html)?.[1] ?? '', 'base64');
    const manifest = JSON.parse(dataOf('palimpsest-manifest').toString()) as PageManifest;
    const raw = manifest.blocks.map((_, i) => gunzipSync(dataOf(`palimpsest-block-${i}`)).toString());
    const nodes = raw.flatMap((json) => JSON.parse(json) as Packed[]);
    const index = nodes[manifest.answers] as Readonly<Record<string, Packed>>;
    const answers = Object.fromEntries(Object.entries(index).map(([key, value]) => [key, unpackedValue(value, (node) => nodes[node])]));
    const whole = [html, ...raw, said(answers)].join('\n');
    for (const form of ['Heron', 'costs twelve', 'filler filler', 'correct-horse', '47110815', 'dXNlcjpwYXNz', ...hashes])
      expect([form, whole.includes(form)]).toEqual([form, false]);
    const contexts = Object.entries(answers).filter(([key]) => key.startsWith('/v1/context'));
    const states = contexts.map(([, one]) => {
      const { text, sha256, redacted = false } = one as { readonly text: string; readonly sha256: string; readonly redacted?: boolean };
      expect(createHash('sha256').update(text).digest('hex')).toBe(sha256);
      return redacted;
    });
    expect(states).toEqual([false, true, true]);
  });
});
