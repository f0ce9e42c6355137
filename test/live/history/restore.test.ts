import { randomUUID } from 'node:crypto';
import { chmod, lstat, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { AllowedRoots } from '../../../src/filesystem/access/roots.js';
import { acquireSessionLock } from '../../../src/journal/session-lock.js';
import { hashText } from '../../../src/objects/hashes.js';
import { canonicalPath, filesystemId, sessionId } from '../../../src/objects/ids.js';
import { keptReplacements, replaceKept, undoReplacements } from '../../../src/restore/kept-replacements.js';
import { RestoreError } from '../../../src/restore/restore-error.js';
import { writeCopies } from '../../../src/restore/write-copies.js';
import { askHere } from '../../support/ask-here.js';
import { openClient } from '../../support/context.js';
import { suiteClientFolder, suiteData, temporaryRoot } from '../../support/mcp-clients.js';
import { type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';

describe('restoring from a moment', () => {
  const name = `res${randomUUID().slice(0, 8)}`;
  let made: ReviewedSessions;
  let file: string;

  // The session has its own filesystem; its files are recorded as moved here.
  const flags = (): string[] => ['--root', made.root, '--moved', `${made.root}=${made.root}`];
  const run = (...args: string[]) => askHere(['restore', ...args, '--data', suiteData()]);
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args, '--json');
    expect([code, code === 0 ? '' : stdout + stderr]).toEqual([0, '']);
    return JSON.parse(stdout);
  };
  const states = async (...args: string[]): Promise<Record<string, string>> => {
    const { files } = await json(...args, ...flags());
    return Object.fromEntries(
      files.map(({ path, state }: { path: string; state: string }) => [path.slice(made.root.length + 1), state]),
    );
  };
  const refused = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args);
    expect([code === 0, stdout]).toEqual([false, '']);
    return stderr;
  };

  beforeAll(async () => {
    made = await reviewedSessions(name);
    file = join(made.root, 'a.ts');
  });
  beforeEach(() => writeFile(file, 'three\nshared\n'));
  afterAll(() => made.close());

  test('plans the differences of each file and changes nothing', async () => {
    const at1 = `${name}-first@turn:1`;
    expect(await states(at1)).toEqual({ 'a.ts': 'changed' });
    expect(await states(`${name}-first@turn:2`, '--plan')).toEqual({ 'a.ts': 'changed', 'b.ts': 'never-read' });
    expect(await states(`${name}-second`)).toEqual({ 'a.ts': 'same' });
    await writeFile(file, 'nobody has read this');
    expect(await states(at1)).toEqual({ 'a.ts': 'newer-outside' });
    await rm(file);
    expect(await states(at1)).toEqual({ 'a.ts': 'missing' });
    await mkdir(file);
    expect(await states(at1)).toEqual({ 'a.ts': 'not-regular' });
    await rm(file, { recursive: true });
    await symlink('b.ts', file);
    expect(await states(at1)).toEqual({ 'a.ts': 'not-regular' });
    await rm(file);
    await writeFile(file, 'one\nshared\n');
    expect(await states(at1)).toEqual({ 'a.ts': 'same' });
    const elsewhere = await json(at1, '--root', suiteData(), '--moved', `${made.root}=${made.root}`);
    expect(elsewhere.files).toMatchObject([{ state: 'outside-roots' }]);
    const foreign = await json(at1, '--root', made.root);
    expect(foreign.files).toMatchObject([{ state: 'unreachable', why: 'foreign-filesystem' }]);
    expect(foreign.in_the_way).toHaveLength(1);
    expect(await readFile(file, 'utf8')).toBe('one\nshared\n');
  });

  test('writes into a new folder: completely, privately, only below it, and over no file', async () => {
    const { root: path, remove } = await temporaryRoot();
    try {
      const to = join(path, 'then');
      const answer = await json(`${name}-first@turn:2`, '--apply', '--to', to, ...flags());
      expect(answer).toMatchObject({ folder: to, written: ['a.ts'], not_kept: [] });
      expect(await readFile(join(to, 'a.ts'), 'utf8')).toBe('two\nshared\n');
      expect((await stat(join(to, 'a.ts'))).mode & 0o777).toBe(0o600);
      expect((await stat(to)).mode & 0o777).toBe(0o700);
      const hostile = await run(`${name}-first@turn:2`, '--apply', '--to', join(path, 'x\u001b[2J\nok'), ...flags());
      await rm(join(path, 'x\u001b[2J\nok'), { recursive: true });
      expect(hostile).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/x\\x1b\[2J\\nok: 1 files as the agent had them [^\n]*\n$/),
      });
      expect(await refused(`${name}-first@turn:1`, '--apply', '--to', to)).toMatch(/not empty/);
      await symlink(to, join(path, 'link'));
      expect(await refused(`${name}-first@turn:1`, '--apply', '--to', join(path, 'link'))).toMatch(/symbolic link/);
      expect(await readFile(join(to, 'a.ts'), 'utf8')).toBe('two\nshared\n');
      expect((await readdir(path)).sort()).toEqual(['link', 'then']);
      const bytes = Buffer.from('x');
      async function* climbing() {
        yield { path: 'fine', bytes };
        yield { path: '../../climbed', bytes };
      }
      await expect(writeCopies(join(path, 'out'), climbing())).rejects.toMatchObject({ code: 'outside-roots' });
      async function* exchanged() {
        yield { path: 'sub/one', bytes };
        const [draft = ''] = (await readdir(path)).filter((one) => one.startsWith('.out.'));
        await rename(join(path, draft, 'sub'), join(path, draft, 'kept'));
        await symlink(to, join(path, draft, 'sub'));
        yield { path: 'sub/two', bytes };
      }
      await expect(writeCopies(join(path, 'out'), exchanged())).rejects.toMatchObject({
        code: expect.stringMatching(/outside-roots|changed-underneath|not-regular/),
      });
      expect((await readdir(path)).sort()).toEqual(['link', 'then']);
      expect(await readdir(to)).toEqual(['a.ts']);
    } finally {
      await remove();
    }
  });

  test('writes in place only with a clean plan, and is undone with the old content and mode', async () => {
    await chmod(file, 0o640);
    const { undo, written } = await json(`${name}-first@turn:1`, '--apply', '--in-place', ...flags());
    expect(written).toEqual([file]);
    expect(await readFile(file, 'utf8')).toBe('one\nshared\n');
    expect((await lstat(file)).mode & 0o777).toBe(0o640);
    expect((await json('--list')).restores).toContainEqual(
      expect.objectContaining({ id: undo, session: `${name}-first`, isUndone: false }),
    );
    // Another session of the same folder is open: its agent keeps its files.
    const lock = await acquireSessionLock(suiteClientFolder(), sessionId(`${name}-second`), { what: 'a test' });
    try {
      await writeFile(file, 'three\nshared\n');
      const told = /second is open in process \d+ \(a test\) and works on .*a\.ts/;
      expect(await refused(`${name}-first@turn:1`, '--apply', '--in-place', ...flags())).toMatch(told);
      await writeFile(file, 'one\nshared\n');
      expect(await refused('--undo', undo)).toMatch(told);
      expect(await readFile(file, 'utf8')).toBe('one\nshared\n');
    } finally {
      lock.release();
    }
    // A followed session has the root `/` on the filesystem of its transcript.
    const recorded = await openClient(made.root, { agentFilesystemId: filesystemId(`fs-${name}-recorded`) });
    const { id: followed } = await recorded.openSession({ id: `${name}-followed` });
    await recorded.close();
    const follower = await acquireSessionLock(suiteClientFolder(), followed, { what: 'a test' });
    // A session can be open before the database has it.
    const begun = await acquireSessionLock(suiteClientFolder(), sessionId(`${name}-begun`), { what: 'a test' });
    try {
      await writeFile(file, 'three\nshared\n');
      await json('--undo', (await json(`${name}-first@turn:1`, '--apply', '--in-place', ...flags())).undo);
    } finally {
      follower.release();
      begun.release();
    }
    await writeFile(file, 'somebody went on');
    expect(await refused('--undo', undo)).toMatch(/a\.ts.* changed since/);
    await writeFile(file, 'one\nshared\n');
    expect(await json('--undo', undo)).toEqual({ undone: undo, paths: [file] });
    expect((await askHere(['restore', '--undo', undo, '--data', suiteData()])).stdout).toBe(
      `${undo}: already undone; no changes made\n`,
    );
    expect(await readFile(file, 'utf8')).toBe('three\nshared\n');
    expect((await lstat(file)).mode & 0o777).toBe(0o640);
    await rm(file);
    const again = await json(`${name}-first@turn:1`, '--apply', '--in-place', ...flags());
    expect(await readFile(file, 'utf8')).toBe('one\nshared\n');
    expect((await json('--undo', again.undo)).paths).toEqual([file]);
    await expect(lstat(file)).rejects.toMatchObject({ code: 'ENOENT' });
    await writeFile(file, 'mine alone');
    expect(await refused(`${name}-first@turn:1`, '--apply', '--in-place', ...flags())).toMatch(
      /a\.ts has a change that the database does not have/,
    );
    expect(await readFile(file, 'utf8')).toBe('mine alone');
  });

  test('restores the others if one of several writes fails; undo completes a half-done restore', async () => {
    const { root: path, remove } = await temporaryRoot();
    try {
      const [dataDir, tree] = [join(path, 'data'), join(path, 'tree')];
      await mkdir(tree);
      const roots = await AllowedRoots.open([tree]);
      const names = ['a', 'b', 'c'];
      for (const one of names) await writeFile(join(tree, one), `before ${one}`);
      const replacement = (one: string) => ({
        path: canonicalPath(join(roots.roots[0] ?? '', one)),
        before: hashText(`before ${one}`),
        after: hashText(`after ${one}`),
        bytes: async () => Buffer.from(`after ${one}`),
      });
      const texts = () => Promise.all(names.map((one) => readFile(join(tree, one), 'utf8')));
      const of = { session: 'S', turn: 1, step: 1 };
      const failing = { ...replacement('c'), bytes: () => Promise.reject(new RestoreError('not-clean', 'gone')) };
      const half = [replacement('a'), replacement('b'), failing];
      await expect(replaceKept(dataDir, { roots, of, replacements: half })).rejects.toMatchObject({
        code: 'not-clean',
      });
      expect(await texts()).toEqual(['before a', 'before b', 'before c']);
      // Another writer changes the last file meanwhile, or also a written one. Our files are
      // restored, and the conflict is reported.
      const meddled = (others: readonly string[]) => ({
        ...replacement('c'),
        bytes: async () => {
          for (const one of others) await writeFile(join(tree, one), `mine ${one}`);
          return Buffer.from('after c');
        },
      });
      const meddle = (...others: string[]) =>
        replaceKept(dataDir, { roots, of, replacements: [replacement('a'), replacement('b'), meddled(others)] });
      await expect(meddle('c')).rejects.toMatchObject({ code: 'changed-underneath' });
      expect(await texts()).toEqual(['before a', 'before b', 'mine c']);
      await writeFile(join(tree, 'c'), 'before c');
      await expect(meddle('a', 'c')).rejects.toThrow(
        /c.* was changed meanwhile.*a.* was changed since.*restore --undo r/s,
      );
      expect(await texts()).toEqual(['mine a', 'before b', 'mine c']);
      const left = (await keptReplacements(dataDir)).at(-1);
      expect(left?.isUndone).toBe(false);
      await expect(undoReplacements(dataDir, left?.id ?? '')).rejects.toMatchObject({ code: 'changed-since' });
      for (const one of ['a', 'c']) await rename(join(tree, one), join(tree, `${one}.mine`));
      expect(await undoReplacements(dataDir, left?.id ?? '')).toHaveLength(2);
      expect(await texts()).toEqual(['before a', 'before b', 'before c']);
      const id = await replaceKept(dataDir, { roots, of, replacements: names.map(replacement) });
      // The state left by a process that was killed after the first file.
      for (const one of ['b', 'c']) await writeFile(join(tree, one), `before ${one}`);
      expect(await undoReplacements(dataDir, id)).toEqual([join(roots.roots[0] ?? '', 'a')]);
      expect(await texts()).toEqual(['before a', 'before b', 'before c']);
      await expect(undoReplacements(dataDir, 'r20010101-aaaaaa')).rejects.toMatchObject({ code: 'unknown-restore' });
      await expect(undoReplacements(dataDir, '../../x')).rejects.toMatchObject({ code: 'unknown-restore' });
    } finally {
      await remove();
    }
  });

  test('forks a named session at the end of a turn, and refuses a bad moment, session or taken name', async () => {
    const ask = (...args: string[]) => askHere([...args, '--data', suiteData()]);
    const forked = JSON.parse((await ask('fork', `${name}-first@turn:2`, '--json')).stdout);
    expect(forked).toMatchObject({ parent: { session: `${name}-first`, turn: 2 } });
    const { turns } = JSON.parse((await ask('log', forked.id, '--json')).stdout);
    expect(turns.map(({ turn }: { turn: number }) => turn)).toEqual([2, 1]);
    expect((await ask('context', forked.id, '--assemble')).stdout).toContain('two\nshared');
    expect((await ask('fork', `${name}-first`, '--at', 'turn:1', '--id', `${name}-kept`)).stdout).toBe(
      `${name}-kept\n`,
    );
    const refusals = [
      [['fork', `${name}-first@turn:9`], 1, /no turn 9: its last one is 3/],
      [['fork', `${name}-first@turn:x`], 64, /not a moment/],
      [['fork', `no-${name}`], 1, /no session/],
      [['fork', `${name}-first`, '--id', `${name}-kept`], 1, /choose another id for the fork/],
      [['fork', `${name}-first`, '--id', '../x'], 1, /not a session id/],
    ] as const;
    for (const [args, code, why] of refusals) {
      const refused = await ask(...args);
      expect([refused.code, refused.stdout]).toEqual([code, '']);
      expect(refused.stderr).toMatch(why);
    }
  });

  test('stores notes on a session, a step, an object: shown, exported, in no set and no context', async () => {
    const note = async (...args: string[]) => {
      const { code, stdout, stderr } = await askHere(['note', ...args, '--data', suiteData(), '--json']);
      return code === 0 ? JSON.parse(stdout).said : stdout + stderr;
    };
    const session = `${name}-first`;
    const before = (await askHere(['context', session, '--assemble', '--data', suiteData(), '--json'])).stdout;
    expect(await note(session)).toEqual([]);
    expect(
      await note(`${session}@turn:2`, '--object', 'a.ts', '--verdict', 'wrong', '--text', 'too\nold', '--by', 'me'),
    ).toMatchObject([{ session, turn: 2, object: made.file, verdict: 'wrong', text: 'too\nold', by: 'me' }]);
    await note(session, '--verdict', 'right');
    expect(await note(session)).toMatchObject([{ turn: 2 }, { turn: 3, verdict: 'right', text: null, object: null }]);
    expect(await note(session, '--object', 'a.ts')).toHaveLength(1);
    expect(await note(`${session}@turn:1`)).toEqual([]);
    const shown = await askHere(['note', session, '--data', suiteData()]);
    expect(shown.stdout).toMatch(/turn 2, step 7 {2}wrong .*a\.ts .* by me\n {2}too\n {2}old\nturn 3/);
    expect(await note(session, '--text', ' ')).toMatch(/verdict or a text/);
    expect(await note(`no-${name}`)).toMatch(/no session/);
    expect(await note(session, '--object', 'nothing.ts', '--verdict', 'right')).toMatch(/no object/);
    expect(
      JSON.parse((await askHere(['context', session, '--assemble', '--data', suiteData(), '--json'])).stdout).text,
    ).toBe(JSON.parse(before).text);
  });

  test.each([
    [['--apply'], /missing session/],
    [[`${name}-first`, '--apply'], /--to FOLDER or --in-place/],
    [[`${name}-first`, '--to', 'x'], /need --apply/],
    [[`${name}-first`, '--undo', 'x'], /take no other arguments/],
    [['--list', '--undo', 'x'], /exclude each other/],
    [[`${name}-first@turn:99`], /no turn 99/],
    [[`${name}-first`, '--moved', 'here'], /OLD=NEW/],
    [[`${name}-first`, '--root', '/nowhere/at/all'], /does not exist/],
    [['--undo', 'r1'], /no restore "?r1/],
  ])('refuses %j with a reason', async (args, why) => {
    expect(await refused(...args)).toMatch(why);
  });
});
