import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { loopTroubles } from '../../src/process/process-reports.js';
import { cliPath } from '../support/mcp-clients.js';
import { palimpsest } from './loop-project.js';
import { type LoopSetting, loopSetting } from './loop-setting.js';
import { showsLog } from './looped-agent.js';
import { PiProcess } from './pi-process.js';
import { checkUndone } from './wire-checks.js';

const run = promisify(execFile);

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
  let setting: LoopSetting;
  let session = '';

  beforeAll(async () => {
    setting = await loopSetting();
    const { root, model, where } = setting;
    const extra = await setting.folder();
    // The package as the registry would deliver it.
    const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', extra], {
      cwd: dirname(dirname(cliPath)),
    });
    const [{ filename }] = JSON.parse(stdout) as [{ readonly filename: string }];
    await run('tar', ['-xzf', join(extra, filename), '-C', extra]);
    await writeFile(join(extra, 'back.mjs'), BACK);
    await mkdir(join(where.home, 'agent'), { recursive: true });
    const installed = await PiProcess.install(where.home, root, join(extra, 'package'));
    expect({ code: installed.code, stderr: installed.stderr }).toEqual({ code: 0, stderr: '' });
    const pi = await PiProcess.start({ ...where, extension: join(extra, 'back.mjs') });
    setting.atEnd(() => pi.kill());
    session = String((await pi.command({ type: 'get_state' })).sessionId);
    const request = async (words: string, n: number, say: string): Promise<void> => {
      model.add([showsLog('pi', n), { say }]);
      await pi.prompt(words);
    };
    await request('request one', 1, 'This is the first.');
    await request('request two', 2, 'This is the second.');
    await pi.prompt('/back request two');
    await request('request two, otherwise', 3, 'This is another second.');
    await pi.end();
  }, 200_000);

  afterAll(() => setting.close());

  test('makes every model call with our context', async () => {
    const { dataDir, model } = setting;
    expect(await loopTroubles(dataDir)).toEqual([]);
    const main = model.calls.filter((call) => call.main);
    expect(main).toHaveLength(6);
    for (const { raw } of main.slice(1)) expect(raw).toContain('id=call_');
    expect(await palimpsest(dataDir, 'log', session)).toContain('request one');
  });

  test('keeps an abandoned part in the session and continues in a branch of it', async () => {
    await checkUndone(await setting.reader(), session, setting.model.calls);
  });
});
