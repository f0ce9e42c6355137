import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { loopTroubles } from '../../src/process/process-reports.js';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { cliPath, temporaryRoot } from '../support/mcp-clients.js';
import { type LoopModel, type Move, startLoopModel } from './loop-model.js';
import { makeProject, palimpsest, reader, startNode, stopUnusedNode } from './loop-project.js';
import { PiProcess } from './pi-process.js';

const run = promisify(execFile);
const shell = (n: number): Move => ({ tools: [{ name: 'bash', args: { command: `cat notes/s${n}.log` } }] });

/** Goes back in pi's tree to before a user message, like `/tree`. pi has no pipe command for it. */
const BACK = `export default (pi) => pi.registerCommand('back', {
  description: 'goes back',
  handler: async (text, context) => {
    const entry = context.sessionManager.getBranch().find(({ type, message }) =>
      type === 'message' && message.role === 'user' && JSON.stringify(message.content).includes(text));
    await context.navigateTree(entry.id, { summarize: false });
  },
});\n`;

describe('pi with Palimpsest installed as a package', () => {
  const removals: (() => Promise<unknown>)[] = [];
  let [root, home, dataDir, extra] = ['', '', '', ''];
  let model: LoopModel;
  let session = '';

  beforeAll(async () => {
    const places = await Promise.all([temporaryRoot(), temporaryRoot(), temporaryRoot(), temporaryRoot()]);
    [root, home, dataDir, extra] = places.map((place) => place.root) as [string, string, string, string];
    model = await startLoopModel();
    removals.push(() => model.close(), ...places.map(({ remove }) => remove));
    await makeProject(root);
    await startNode(dataDir);
    removals.unshift(() => stopUnusedNode(dataDir));
    // As it would come from the registry.
    const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', extra], {
      cwd: dirname(dirname(cliPath)),
    });
    const [{ filename }] = JSON.parse(stdout) as [{ readonly filename: string }];
    await run('tar', ['-xzf', join(extra, filename), '-C', extra]);
    await writeFile(join(extra, 'back.mjs'), BACK);
    await mkdir(join(home, 'agent'), { recursive: true });
    const installed = await PiProcess.install(home, root, join(extra, 'package'));
    expect({ code: installed.code, stderr: installed.stderr }).toEqual({ code: 0, stderr: '' });
    const pi = await PiProcess.start({ home, cwd: root, dataDir, model, extension: join(extra, 'back.mjs') });
    removals.unshift(async () => pi.kill());
    session = String((await pi.command({ type: 'get_state' })).sessionId);
    model.add([shell(1), { say: 'This is the first.' }]);
    await pi.prompt('request one');
    model.add([shell(2), { say: 'This is the second.' }]);
    await pi.prompt('request two');
    await pi.prompt('/back request two');
    model.add([shell(3), { say: 'This is another second.' }]);
    await pi.prompt('request two, otherwise');
    await pi.end();
  }, 200_000);

  afterAll(async () => {
    for (const remove of removals) await remove();
  });

  test('makes every model call with our context', async () => {
    expect(await loopTroubles(dataDir)).toEqual([]);
    const main = model.calls.filter((call) => call.main);
    expect(main).toHaveLength(6);
    for (const { raw } of main.slice(1)) expect(raw).toContain('id=call_');
    expect(await palimpsest(dataDir, 'log', session)).toContain('request one');
  });

  test('keeps an abandoned part in the session and continues in a branch of it', async () => {
    const last = model.calls.filter((call) => call.main).at(-1)?.raw ?? '';
    expect(last).toContain('This is the first.');
    expect(last).not.toContain('This is the second.');
    const client = await reader(dataDir, root);
    const words = async (id: string) =>
      (await client.openSession({ id })).state.turns.flatMap(({ messages }) =>
        messages.map(({ text }) => text).filter((text) => text !== ''),
      );
    expect(await words(session)).toEqual(['request one', 'This is the first.', 'request two', 'This is the second.']);
    expect(await words(`${session}.2`)).toEqual([
      'request one',
      'This is the first.',
      'request two, otherwise',
      'This is another second.',
    ]);
    for (const id of [session, `${session}.2`])
      expect((await verifySession(await client.delivered(), id)).contexts.unequal).toEqual([]);
    await client.close();
  });
});
