import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { answerReviewRequest } from '../../../src/http/review-routes.js';
import { PAGE_ANSWERS } from '../../../src/page/server/page-schemas.js';
import { askHere } from '../../support/ask-here.js';
import { openClient } from '../../support/context.js';
import { hiddenTexts, question } from '../../support/contracts.js';
import { suiteData, temporaryRoot } from '../../support/mcp-clients.js';

const TOLD = 'Endpoint{Token: "my-token"}\nwantPass: "my-token"\nt.Fatalf("write token: %v", err)\n';

describe('the value of a secret name that a session repeats', () => {
  let folder: Awaited<ReturnType<typeof temporaryRoot>>;
  let client: ContextClient;
  let session: string;
  const server = createServer((request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://localhost');
    const folders = { dataDir: folder.root, clientDir: folder.root };
    answerReviewRequest(question(pathname), { client, query, all: true, hiddenTexts, folders }, response).catch(
      (error: unknown) => response.destroy(error as Error),
    );
  });
  const path = (file: string): string => join(folder.root, file);
  const exported = async (...args: string[]) => {
    const { code, stdout, stderr } = await askHere(['export', session, ...args, '--data', suiteData(), '--json']);
    expect([code, stderr]).toEqual([0, '']);
    return JSON.parse(stdout) as { readonly masked?: number };
  };

  beforeAll(async () => {
    folder = await temporaryRoot();
    client = await openClient(folder.root);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const opened = await client.openSession();
    session = opened.id;
    await opened.reportMessage({ role: 'user', text: 'Is the password "my-token", or is it my-tokens?' });
    await opened.recordCall({
      tool: 'bash',
      args: { command: 'cat' },
      status: 'ok',
      content: TOLD,
      answer: () => TOLD,
    });
    await opened.recordCall({ tool: 'bash', args: { of: 'my-token' }, status: 'ok', content: '', answer: () => '' });
    await opened.assemble({ deliver: 'library' });
    await client.closeSession(opened);
    await client.delivered();
  });
  afterAll(async () => {
    await new Promise((resolve) => server.close(resolve));
    await client.close();
    await folder.remove();
  });

  test('is masked in each text of a page and of a bundle, and the preview counts the same texts', async () => {
    const { masked } = await exported('--html', path('page.html'), '--redact');
    const url = new URL('/v1/redaction', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    url.searchParams.set('session', session);
    const { matches } = PAGE_ANSWERS.Redaction.parse(await (await fetch(url)).json());
    expect([masked, matches]).toEqual([3, 3]);
    await exported(path('bundle'), '--redact');
    const html = await readFile(path('page.html'), 'utf8');
    const blocks = [...html.matchAll(/id="palimpsest-block-\d+">([^<]*)</g)];
    const page = blocks.map(([, base64 = '']) => gunzipSync(Buffer.from(base64, 'base64')).toString()).join('\n');
    for (const text of [page, gunzipSync(await readFile(path('bundle'))).toString()]) {
      expect(text).toContain('or is it my-tokens?');
      expect(text).toContain('write token: %v');
      expect(text).not.toMatch(/my-token(?!s)/);
    }
  });
});
