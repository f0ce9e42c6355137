import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ownId } from '../../../src/host/own-id.js';
import { sessionId } from '../../../src/objects/ids.js';
import { AGENT_NAMES, type Agent } from '../../../src/own-sessions/agent-homes.js';
import { importSession } from '../../../src/own-sessions/import-session.js';
import { readStart } from '../../../src/watch/transcript-start.js';
import { suiteDatabase } from '../../support/replays.js';
import { WatchedMachine } from '../../support/watched.js';

let watched: WatchedMachine;
beforeEach(async () => {
  watched = await WatchedMachine.create();
});
afterEach(() => watched.remove());

const fixture = (name: string): string => join(import.meta.dirname, '..', '..', 'recordings', name);

/** Returns the text of a recording under another id of its session. */
async function under(agent: Agent, name: string, id: string) {
  const home = watched.homes.find((one) => one.agent === agent);
  if (home === undefined) throw new Error(`no home of ${agent}`);
  const start = await readStart({ home, path: fixture(name), size: 0, mtime: 0 });
  const native = start?.native.split('/')[0] ?? '';
  return { text: (await readFile(fixture(name), 'utf8')).replaceAll(native, id), native: start?.native ?? '' };
}

/** All data of a session's steps except its id. */
async function stepsOf(id: string, own: string) {
  const steps = await (await watched.store.latest()).steps(sessionId(id));
  return JSON.parse(
    JSON.stringify(
      steps.map(({ usage: _usage, ...step }) => step),
      (_key, value) =>
        // Files are known by the session's own filesystem.
        typeof value === 'string' ? (/^[0-9a-f]{64}$/.test(value) ? 'a hash' : value.replaceAll(own, 'ID')) : value,
    ),
  );
}

const LINES: readonly (readonly [Agent, string, string])[] = [
  ['claude-code', 'claude-code/coding.jsonl', '.claude/projects/-p/a.jsonl'],
  ['codex', 'codex/coding.jsonl', '.codex/sessions/2026/02/25/rollout-a.jsonl'],
  ['codex', 'codex/fork.jsonl', '.codex/sessions/2026/02/25/rollout-b.jsonl'],
  ['pi', 'pi/coding.jsonl', '.pi/agent/sessions/--p--/a.jsonl'],
  ['gemini-cli', 'gemini-cli/session.jsonl', '.gemini/tmp/p/chats/session-a.jsonl'],
  ['claude-code', 'claude-code/traps.jsonl', '.claude/projects/-p/b.jsonl'],
];

describe('a transcript that pauses after every line', () => {
  test.each(LINES)('of %s (%s) gives the steps of a whole import, and is recognised later', async (...given) => {
    const [agent, name, at] = given;
    const { text } = await under(agent, name, watched.prefix);
    await watched.start();
    const lines = text.trimEnd().split('\n');
    const session = () => watched.followed.session(agent, watched.prefix, { transcript: watched.path(at) });
    for (const line of lines) {
      await watched.append(at, `${line}\n`);
      await session().catch(() => undefined);
    }
    // After a rewind, the session continues in a branch.
    const last = (await session()).session;
    const before = [last.id, last.state.seq];
    await watched.stop();
    const whole = await under(agent, name, `${watched.prefix}w`);
    const path = watched.path('whole.jsonl');
    await watched.write('whole.jsonl', whole.text);
    const chosen = { id: `${watched.prefix}w`, agent: AGENT_NAMES[agent], title: '', path, size: 1, mtime: 1 };
    await importSession(chosen, { database: { ...suiteDatabase(), dataDir: watched.dataDir }, store: watched.store });
    const own = ownId(watched.prefix);
    const live = await stepsOf(own, watched.prefix);
    if (name !== 'claude-code/traps.jsonl') expect(live).toEqual(await stepsOf(`${own}w`, `${watched.prefix}w`));
    await watched.start();
    const again = (await session()).session;
    expect([again.id, again.state.seq]).toEqual(before);
    expect(await watched.steps(`${own}+2`)).toEqual([]);
    expect((await watched.state())?.failed).toEqual([]);
  });
});

describe('a document that its agent rewrites', () => {
  test('is imported again after each change, once it is complete', async () => {
    const { text } = await under('cline', 'cline/session.messages.json', watched.prefix);
    const document = JSON.parse(text);
    const at = '.cline/data/sessions/one/one.messages.json';
    await watched.start();
    const own = ownId(watched.prefix);
    let before = 0;
    for (const count of [2, 4, document.messages.length]) {
      const grown = JSON.stringify({ ...document, messages: document.messages.slice(0, count) });
      await watched.write(at, grown.slice(0, grown.length / 2));
      await watched.write(at, grown);
      const steps = await watched.reached(own, before + 1);
      before = steps.length;
    }
    await watched.rests();
    expect((await watched.state())?.failed).toEqual([]);
    expect(await watched.steps(`${own}+2`)).toEqual([]);
  });
});
