import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { checkBundle } from '../../../src/bundle/check-bundle.js';
import { acquireSessionLock } from '../../../src/journal/session-lock.js';
import { assignedIdentityHash, hashText, sourcedIdentityHash } from '../../../src/objects/hashes.js';
import { type ObjectId, type SessionId, sessionId } from '../../../src/objects/ids.js';
import { toRecordPart } from '../../../src/store/context-records.js';
import { partId } from '../../../src/store/part-id.js';
import { chunkId } from '../../../src/store/texts.js';
import { askHere } from '../../support/ask-here.js';
import { effort } from '../../support/effort.js';
import { suiteClientFolder, suiteData, temporaryRoot } from '../../support/mcp-clients.js';
import { type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';

/** JSON whose form a test knows. */
type Loose = ReturnType<typeof JSON.parse>;
type Line = Readonly<Record<string, Loose>>;

describe('an invalid bundle', () => {
  const name = `bad${randomUUID().slice(0, 8)}`;
  let made: ReviewedSessions;
  let folder: Awaited<ReturnType<typeof temporaryRoot>>;
  let good: Buffer;
  let lines: readonly Line[];

  const run = (...args: string[]) => askHere([...args, '--data', suiteData()]);
  const path = (file: string) => join(folder.root, file);
  const sorted = (value: Loose): Loose =>
    Array.isArray(value)
      ? value.map(sorted)
      : value !== null && typeof value === 'object'
        ? Object.fromEntries(
            Object.keys(value)
              .sort()
              .map((key) => [key, sorted(value[key])]),
          )
        : value;
  const packed = (all: readonly Line[]) => gzipSync(all.map((line) => `${JSON.stringify(sorted(line))}\n`).join(''));
  /** Recomputes counts and hash for the altered lines, as a deliberate forger would. */
  const sealed = (all: readonly Line[]): Buffer => {
    const body = all
      .slice(0, -1)
      .map((line) => `${JSON.stringify(sorted(line))}\n`)
      .join('');
    const { manifest } = all.at(-1) as Line;
    const counts = { sha256: createHash('sha256').update(body).digest('hex'), bytes: Buffer.byteLength(body) };
    return packed([...all.slice(0, -1), { manifest: { ...manifest, ...counts } }]);
  };
  const refused = async (bytes: Buffer | string) => {
    await writeFile(path('bad.bundle'), bytes);
    return checkBundle(path('bad.bundle')).then(
      () => 'taken',
      ({ name: error, code, message }) => `${error} ${code}: ${message}`,
    );
  };
  /**
   * Returns whether a file unpacks to the exported content. Up to seven bits after the compressed
   * data have no meaning.
   */
  const isSame = (bytes: Buffer): boolean => {
    try {
      return gunzipSync(bytes).equals(gunzipSync(good));
    } catch {
      return false;
    }
  };
  const changed = (which: (line: Line) => boolean, change: (line: Line) => Line): readonly Line[] => {
    const at = lines.findIndex(which);
    expect(at).toBeGreaterThanOrEqual(0);
    return lines.map((line, i) => (i === at ? change(structuredClone(line)) : line));
  };
  /** Returns the lines with one more put after the last one of a type, counted correctly. */
  const withPut = (behind: string, put: Loose): readonly Line[] => {
    const at = lines.findLastIndex((line) => line.put?.type === behind);
    const { type } = put;
    const count = (counts: Loose) => (type in counts ? { ...counts, [type]: counts[type] + 1 } : counts);
    const more = lines.map((line) => {
      if (line.bundle !== undefined) return { bundle: { ...line.bundle, documents: line.bundle.documents + 1 } };
      if (line.manifest === undefined) return line;
      const { documents, objects, parts } = line.manifest;
      return { manifest: { ...line.manifest, documents: documents + 1, objects: count(objects), parts: count(parts) } };
    });
    return more.toSpliced(at + 1, 0, { put, valid: lines[at]?.valid });
  };
  const putOf = (type: string): Loose => structuredClone(lines.findLast((line) => line.put?.type === type)?.put);
  const renamed = (put: Loose, id: string): Loose => ({
    ...put,
    'xt/id': id,
    identity_hash: assignedIdentityHash(put.type, id as ObjectId),
  });
  const note = (valid: string): Loose => ({
    ...toRecordPart({
      kind: 'event',
      owner: { session: sessionId(`${name}-first`) },
      turn: 1,
      seq: 1,
      at: Date.parse(valid),
      basis: null,
      body: { type: 'later', data: {} },
    }),
  });
  const isPut = (type: string) => (line: Line) => line.put?.type === type;

  beforeAll(async () => {
    [made, folder] = await Promise.all([reviewedSessions(name), temporaryRoot()]);
    const { code, stderr } = await run('export', `${name}-first`, path('good.bundle'));
    expect([code, stderr]).toEqual([0, '']);
    good = await readFile(path('good.bundle'));
    lines = gunzipSync(good)
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
  });
  afterAll(() => Promise.all([made.close(), folder.remove()]));

  test('is refused; a real export is private, verifies, overwrites nothing, and is idempotent', async () => {
    expect((await stat(path('good.bundle'))).mode & 0o777).toBe(0o600);
    const mine = ['backup.json.1', 'backup.json.20261101', 'backup.json.new'];
    for (const file of mine) {
      await writeFile(path(file), 'mine');
      await utimes(path(file), 0, 0);
    }
    expect((await run('export', `${name}-first`, path('backup.json'))).code).toBe(0);
    for (const file of mine) expect(await readFile(path(file), 'utf8')).toBe('mine');
    expect(sealed(lines).equals(packed(lines))).toBe(true);
    const { header, manifest } = await checkBundle(path('good.bundle'));
    expect(header).toMatchObject({ session: `${name}-first`, sessions: [`${name}-first`], version: 1 });
    expect(manifest.objects).toMatchObject({ toolcall: 6, file: 4 });
    const again = await run('export', `${name}-first`, path('good.bundle'));
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('is not overwritten')]);
    const taken = await run('import', path('good.bundle'), '--json');
    expect(JSON.parse(taken.stdout)).toMatchObject({ session: `${name}-first`, imported: false });
    const past = await run('export', `${name}-first`, path('past.bundle'), '--as-of', 'turn:1', '--json');
    expect(JSON.parse(past.stdout)).toMatchObject({ turn: 1, step: 2 });
    expect((await checkBundle(path('past.bundle'))).header).toMatchObject({ turn: 1, step: 2 });
    const shorter = await run('import', path('past.bundle'));
    expect([shorter.code, shorter.stdout]).toEqual([0, expect.stringContaining('already complete')]);
  });

  test('is refused if it is cut short at any place', async () => {
    for (let length = 0; length < good.length; length += Math.ceil(good.length / effort(12, 200))) {
      expect(await refused(good.subarray(0, length))).toMatch(/^BundleError (cut-short|not-a-bundle): /);
    }
    for (const count of [1, 2, lines.length >> 1, lines.length - 1]) {
      expect(await refused(packed(lines.slice(0, count)))).toMatch(/^BundleError cut-short: .*without its last line/);
    }
  });

  test('is refused if it is altered at any place', async () => {
    for (let at = 12; at < good.length; at += Math.ceil(good.length / effort(15, 500))) {
      const bytes = Buffer.from(good);
      bytes[at] = (bytes[at] ?? 0) ^ 0x10;
      const answer = isSame(bytes)
        ? /^taken$/
        : /^BundleError (altered|cut-short|future-time|malformed|not-a-bundle|newer-version|too-large): /;
      expect([at, await refused(bytes)]).toEqual([at, expect.stringMatching(answer)]);
    }
    for (const [i, line] of lines.entries()) {
      if (i === 0 || i === lines.length - 1 || i % effort(4, 1) !== 0) continue;
      expect([i, await refused(sealed(lines.filter((_, at) => at !== i)))]).toEqual([
        i,
        expect.stringMatching(/^BundleError (altered|malformed): /),
      ]);
      if (line.put === undefined) continue;
      expect([i, await refused(sealed(lines.flatMap((one, at) => (at === i ? [one, one] : [one]))))]).not.toEqual([
        i,
        'taken',
      ]);
    }
  });

  test.each<[string, () => Buffer | string, RegExp]>([
    ['no file of ours', () => 'hello', /not-a-bundle/],
    ['another compressed file', () => gzipSync('hello\nthere\n'), /not-a-bundle/],
    ['another JSON', () => packed([{ bundle: { format: 'x', version: 1 } }]), /not-a-bundle/],
    [
      'a newer version',
      () => packed([{ bundle: { ...lines[0]?.bundle, version: 3, more: 1 } }, ...lines.slice(1)]),
      /newer-version.*version 3/,
    ],
    ['a line behind its last', () => packed([...lines, { text: {} }]), /malformed.*follows the last line/],
    [
      'a field that there is not',
      () =>
        sealed(
          changed(
            (line) => line.transaction !== undefined,
            (line) => ({ transaction: { ...line.transaction, x: 1 } }),
          ),
        ),
      /malformed/,
    ],
    [
      'a text that is another one',
      () => sealed(changed(isPut('toolcall'), (line) => ({ ...line, put: { ...line.put, content: 'forged' } }))),
      /altered.*content_hash/,
    ],
    [
      'a text sealed anew, under the old call',
      () =>
        sealed(
          changed(
            (line) => line.put?.type === 'file' && line.put.content !== null,
            (line) => ({ ...line, put: { ...line.put, content: 'forged', content_hash: hashText('forged') } }),
          ),
        ),
      /altered.*object hash/,
    ],
    [
      'a step of another session',
      () => sealed(changed(isPut('step'), (line) => ({ ...line, put: { ...line.put, session_ref: 'session:other' } }))),
      /altered.*not in the bundle/,
    ],
    [
      'a step that says something else',
      () =>
        sealed(
          changed(
            (line) => line.put?.body?.message !== undefined,
            (line) => {
              line.put.body.message.text = 'forged';
              return line;
            },
          ),
        ),
      /altered.*differs from the state that its \d+ steps give/,
    ],
    [
      'a session with another set',
      () =>
        sealed(
          changed(
            (line) => line.put?.body?.changes?.pin !== undefined,
            (line) => {
              delete line.put.body.changes.pin;
              return line;
            },
          ),
        ),
      /altered/,
    ],
    [
      'a path that climbs out',
      () =>
        sealed(
          changed(isPut('file'), (line) => ({
            ...line,
            put: { ...line.put, source: { ...line.put.source, path: `/x/..${line.put.source.path}` } },
          })),
        ),
      /altered.*(canonical|identity)/,
    ],
    [
      'a context of a later moment',
      () =>
        sealed(
          changed(isPut('assembly'), (line) => {
            line.put.body.basis.txId = 10_000;
            return line;
          }),
        ),
      /altered.*basis/,
    ],
    [
      'a context that shows something else',
      () =>
        sealed(
          changed(isPut('assembly'), (line) => {
            line.put.body.chars += 1;
            return line;
          }),
        ),
      /altered.*does not match its id/,
    ],
    [
      'a part of another kind',
      () =>
        sealed(
          changed(isPut('step'), (line) => ({ ...line, put: { 'xt/id': 'import:x:0~', type: 'import', text: '{}' } })),
        ),
      /altered.*cannot contain the type/,
    ],
    ...['constructor', 'toString', '__proto__'].map((type): [string, () => Buffer, RegExp] => [
      `an object of another session under the type ${type}`,
      () => sealed(withPut('step', { ...putOf('session'), 'xt/id': `session:${name}-second`, type })),
      /altered.*type/,
    ]),
    [
      'a call of another chat',
      () =>
        sealed(
          changed(isPut('toolcall'), (line) => ({ ...line, put: { ...line.put, chat_ref: `chat:${name}-second` } })),
        ),
      /altered.*not a chat of the bundle/,
    ],
    [
      "a call under an id that another session's calls have",
      () => sealed(withPut('toolcall', renamed(putOf('toolcall'), `call_1@${name}-second`))),
      /altered.*another session's call/,
    ],
    ...['step', 'file', 'session', 'assembly', 'record', 'toolcall'].flatMap((type) =>
      ['2999-01-01T00:00:00.000Z', '9999-12-31T00:00:00.000Z'].map((valid): [string, () => Buffer, RegExp] => [
        `a ${type} that holds from ${valid}`,
        () =>
          sealed(
            type === 'record' ? withPut('step', note(valid)) : changed(isPut(type), (line) => ({ ...line, valid })),
          ),
        new RegExp(`future-time: .*${valid}.*Correct the clock if it is wrong`),
      ]),
    ),
    [
      'a transaction of a later time',
      () =>
        sealed(
          changed(
            (line) => line.transaction !== undefined,
            (line) => ({ transaction: { ...line.transaction, time: '2999-01-01T00:00:00.000Z' } }),
          ),
        ),
      /future-time: transaction 1 /,
    ],
    ...Object.entries<(body: Loose) => void>({
      'changes.index': ({ changes }) => {
        changes.index = ['x', 5];
      },
      'event.kind': (body) => {
        body.event = { kind: 'constructor' };
      },
      native: (body) => {
        body.native = { x: 1 };
      },
      notes: (body) => {
        body.notes = 'text';
      },
      'usage.input': (body) => {
        body.usage = { input: 'many' };
      },
      'opens.rule': (body) => {
        body.opens = { rule: 'other' };
      },
      'call.answer.chars': (body) => {
        body.call = { id: 'x', answer: { sha256: 'a'.repeat(64), chars: '12' } };
      },
      turn: (body) => {
        body.turn = '1';
      },
      other: (body) => {
        body.other = 1;
      },
    }).map(([field, change]): [string, () => Buffer, RegExp] => [
      `a step whose ${field} is not of its form`,
      () =>
        sealed(
          changed(isPut('step'), (line) => {
            change(line.put.body);
            return line;
          }),
        ),
      new RegExp(`altered.*an invalid field: .*${field.replaceAll('.', '\\.').replace('\\.index', '\\.index\\.1')}`),
    ]),
    [
      'a context whose layout is not text',
      () =>
        sealed(
          changed(isPut('assembly'), (line) => {
            line.put.body.layout = 5;
            return line;
          }),
        ),
      /altered.*an invalid field: layout/,
    ],
    [
      'an attribute that there is not',
      () => sealed(changed(isPut('toolcall'), (line) => ({ ...line, put: { ...line.put, 'xtdb.api/fn': 1 } }))),
      /altered/,
    ],
    [
      'a prompt under the id of another session',
      () => sealed(withPut('system_prompt', renamed(putOf('system_prompt'), `session:abcdef${name}-first`))),
      /altered.*belongs to another object/,
    ],
    [
      'a call under the id of another session',
      () => sealed(withPut('toolcall', renamed(putOf('toolcall'), 'session:other'))),
      /altered.*its id belongs to another object/,
    ],
    [
      'a call under the id of a file',
      () => sealed(withPut('toolcall', renamed(putOf('toolcall'), 'a'.repeat(64)))),
      /altered.*it is not of type toolcall/,
    ],
    [
      'a file under the id of a call',
      () => sealed(withPut('file', { ...renamed(putOf('file'), 'call-1'), source: null })),
      /altered.*it is not of type file/,
    ],
    [
      'a file that no step has',
      () => {
        const { source, ...file } = putOf('file');
        const other = { ...source, path: `${source.path}.other` };
        const id = sourcedIdentityHash('file', other);
        return sealed(withPut('file', { ...file, source: other, 'xt/id': id, identity_hash: id }));
      },
      /altered.*no step of the session has/,
    ],
    [
      'heads that continue another session',
      () => {
        const parent = { session: 'other', seq: 0 };
        const isHead = (line: Line) => ['chat', 'session'].includes(line.put?.type);
        return sealed(lines.map((line) => (isHead(line) ? { ...line, put: { ...line.put, parent } } : line)));
      },
      /altered.*continues other/,
    ],
    [
      'a snapshot of other sets',
      () => {
        const body = { seq: 2, indexed: [], active: [], pinned: ['forged'] };
        const id = partId('snapshot', `${name}-first` as SessionId, 2);
        return sealed(withPut('step', { 'xt/id': id, type: 'snapshot', snapshot_ref: `session:${name}-first`, body }));
      },
      /altered.*differs from the state that its 2 steps give/,
    ],
    [
      'more documents than it says',
      () => packed([{ bundle: { ...lines[0]?.bundle, documents: 3 } }, ...lines.slice(1)]),
      /too-large/,
    ],
    ['a line without an end', () => gzipSync(Buffer.alloc(64 * 1_048_576, 'x')), /too-large/],
    ['nesting without an end', () => gzipSync(`${'['.repeat(1_000_000)}\n`), /not-a-bundle|malformed/],
  ])('is refused: %s', async (_, bytes, told) => {
    expect(await refused(bytes())).toMatch(told);
    const { code, stdout, stderr } = await run('import', path('bad.bundle'));
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });

  test('is refused in little memory if it is a compression bomb, for any declared size', async () => {
    const text = (n: number) => `${n}`.padEnd(500_000, ' ');
    const filler = (n: number) =>
      `${JSON.stringify({ text: { 'xt/id': chunkId(hashText(text(n))), type: 'chunk', text: text(n) } })}\n`;
    const bomb = gzipSync(`${JSON.stringify(lines[0])}\n${filler(0).repeat(500)}`);
    expect(bomb.length).toBeLessThan(1_000_000);
    expect(await refused(bomb)).toMatch(/^BundleError too-large: /);
    // Texts without a transaction, each with its correct hash. The reader holds no more of them
    // than one transaction may have.
    await writeFile(
      path('texts.bundle'),
      gzipSync(`${JSON.stringify(lines[0])}\n${Array.from({ length: 20 }, (_, n) => filler(n)).join('')}`),
    );
    const told = { code: 'too-large', message: expect.stringMatching(/line 9 .*more than 4000000 bytes/) };
    await expect(checkBundle(path('texts.bundle'), { mostAtOnce: 4_000_000 })).rejects.toMatchObject(told);
    await writeFile(path('small.bundle'), good);
    await expect(checkBundle(path('small.bundle'), { mostBytes: 1_000 })).rejects.toMatchObject({ code: 'too-large' });
  });

  test('is only exported with an explicit flag if the session has redaction rules', async () => {
    const session = sessionId(`${name}-second`);
    const body = { type: 'context.redaction.applied', subject: made.file, data: { redaction_state: 'removed' } };
    await (await made.client.delivered()).putRecords([
      { kind: 'event', owner: { session }, turn: 1, seq: 1, at: Date.now(), basis: null, body },
    ]);
    const { code, stderr } = await run('export', session, path('hidden.bundle'));
    expect([code, stderr]).toEqual([1, expect.stringMatching(/has redaction rules \(1\).*--with-redacted/)]);
    await expect(stat(path('hidden.bundle'))).rejects.toMatchObject({ code: 'ENOENT' });
    expect((await run('export', session, path('hidden.bundle'), '--with-redacted')).code).toBe(0);
  });

  test('is refused if it is missing, a folder, or for an open session', async () => {
    await mkdir(path('folder'), { recursive: true });
    for (const file of ['missing', 'folder'])
      expect((await run('import', path(file))).stderr).toMatch(/cannot be read|is not a file/);
    const lock = await acquireSessionLock(suiteClientFolder(), `${name}-first` as SessionId, { what: 'a test' });
    try {
      const { code, stderr } = await run('import', path('good.bundle'));
      expect([code, stderr]).toEqual([1, expect.stringContaining('a test')]);
    } finally {
      lock.release();
    }
  });

  test.each<[string, readonly string[], number, RegExp]>([
    ['neither a file nor a session', [], 64, /nothing to import: give a file or --finish SESSION/],
    ['both', ['x.bundle', '--finish', 's'], 64, /leave out "x.bundle"/],
    ['with what is of a file', ['--finish', 's', '--map', '/a=/b'], 64, /leave out --map/],
    ['no session id', ['--finish', 'a b'], 1, /not a session id/],
    ['of one that never came', ['--finish', 'never-came'], 1, /no import of session never-came has stored enough/],
    ['of one that is all there', ['--finish', `${name}-first`], 1, /has stored enough|is complete/],
  ])('leaves an import unfinished: %s', async (_, args, exit, told) => {
    const { code, stderr } = await run('import', ...args);
    expect([code, stderr]).toEqual([exit, expect.stringMatching(told)]);
  });

  test('is valid up to the stored steps of a running session', async () => {
    const session = await made.client.openSession({ id: `${name}-open` });
    await session.reportMessage({ role: 'user', text: 'Begin' });
    const call = async (i: number) => {
      const report = {
        tool: 'bash',
        args: { i },
        status: 'ok',
        content: `out ${i}`,
        answer: () => `out ${i}`,
      } as const;
      await (await session.recordCall(report)).applied;
    };
    await call(0);
    const writing = Promise.all(Array.from({ length: 20 }, (_, i) => call(i + 1)));
    const steps: number[] = [];
    for (const file of ['open-1.bundle', 'open-2.bundle']) {
      const { code, stderr } = await run('export', session.id, path(file));
      expect([code, stderr]).toEqual([0, '']);
      steps.push((await checkBundle(path(file))).header.step);
    }
    await writing;
    await made.client.closeSession(session);
    await made.client.delivered();
    expect(steps[0]).toBeGreaterThanOrEqual(2);
    expect(steps[1]).toBeGreaterThanOrEqual(steps[0] ?? 0);
    expect((await run('export', session.id, path('closed.bundle'))).code).toBe(0);
    expect((await checkBundle(path('closed.bundle'))).header.step).toBe(22);
  });

  test('uses the folders named at a second import afterwards, also for forks', async () => {
    const here = async (session: string) =>
      JSON.parse((await run('restore', session, '--plan', '--json')).stdout).files.map((one: Loose) => one.here);
    expect((await run('fork', `${name}-first`, '--id', `${name}-fork`)).code).toBe(0);
    expect(await here(`${name}-fork`)).toContain(join(made.root, 'a.ts'));
    const again = await run('import', path('good.bundle'), '--map', `${made.root}=${folder.root}`);
    expect(again.stdout).toMatch(/already complete, and its files now use the given folders/);
    for (const session of ['first', 'fork']) expect(await here(`${name}-${session}`)).toContain(path('a.ts'));
  });
});
