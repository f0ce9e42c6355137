import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { ContextClient } from '../../src/client/session/context-client.js';
import { sym } from '../../src/edn/values.js';
import { NodeUse } from '../../src/host/open-store.js';
import { adoptableJournals } from '../../src/journal/journals.js';
import { canonicalJson } from '../../src/objects/canonical-json.js';
import { hashBytes, hashText } from '../../src/objects/hashes.js';
import {
  chatObjectId,
  type FilesystemId,
  type ObjectId,
  type SessionId,
  sessionObjectId,
} from '../../src/objects/ids.js';
import { triple } from '../../src/xtdb/datalog.js';
import { XtdbClient } from '../../src/xtdb/xtdb-client.js';
import { historyOf } from '../support/object-history.js';
import { type AcknowledgedCall, type AcknowledgedContext, type Line, lineMarks } from './acknowledged.js';
import { checkSession, type SessionFindings } from './check-session.js';
import { FILE_NAMES } from './workload-plan.js';

/** The number of checked things. */
export interface CheckCounts {
  readonly sessions: number;
  readonly steps: number;
  readonly calls: number;
  /** Steps without an acknowledgement: the process died before the workload could record one. */
  readonly untold: number;
  readonly files: number;
  /**
   * Files that are not on disk, have content in the database, and are in the index of no session
   * that the last process resumed.
   */
  readonly unmet: number;
  /** Versions of all objects that were restored, each with its five hashes. */
  readonly versions: number;
  readonly contexts: number;
}

export interface Place {
  readonly dataDir: string;
  readonly root: string;
  readonly filesystemId: FilesystemId;
  /** Addresses of nodes that others run; default: the node of the data folder. */
  readonly nodeUrl?: string;
}

/** The sessions and the acknowledged lines of a run. */
export interface Run {
  readonly sessions: readonly SessionId[];
  /** The sessions that the last process resumed before it ended in order. */
  readonly resumed: readonly SessionId[];
  /** Sessions that other programs began in the same database. */
  readonly others?: readonly SessionId[];
  readonly said: readonly Line[];
  /** Number of contexts that are rebuilt, spread over the run. */
  readonly contexts?: number;
}

/** Number of concurrent requests to the node. */
const AT_ONCE = 6;
/** Default number of contexts that are rebuilt. */
const CONTEXTS = 80;

const e = sym('?e');
const chat = sym('?chat');

/** The tool calls that name a chat as theirs, with or without a step that names them. */
async function callsOfChat(xtdb: XtdbClient, session: SessionId): Promise<readonly string[]> {
  const rows = await (await xtdb.db()).query({ find: [e], in: [chat], where: [triple(e, 'chat_ref', chat)] }, [
    chatObjectId(session),
  ]);
  return rows.map(([id]) => String(id)).filter((id) => id !== sessionObjectId(session));
}

interface DiskFindings {
  readonly problems: readonly string[];
  readonly unmet: number;
}

interface FileFindings {
  readonly problems: readonly string[];
  readonly versions: number;
}

/**
 * Checks that every version of a file restores, and that no version repeats the previous one. Also
 * checks that every acknowledged reading is among the versions.
 */
async function checkFile(client: ContextClient, id: ObjectId, read: ReadonlySet<string>): Promise<FileFindings> {
  const history = await historyOf(await client.store.now(), id);
  const problems: string[] = [];
  const hashes = new Set(history.map(({ version }) => version?.file_hash ?? null));
  for (const hash of read)
    if (!hashes.has(hash as never))
      problems.push(`file ${id}: the reading ${hash} is in none of its ${history.length} versions`);
  history.forEach(({ version, marks, validTime }, i) => {
    const before = history[i - 1];
    if (version === undefined) problems.push(`file ${id}: version ${i + 1} is not a version`);
    else if (before?.version?.object_hash === version.object_hash && before.marks.gone === marks.gone)
      problems.push(`file ${id}: version ${i + 1} repeats the one before it`);
    if (before !== undefined && before.validTime >= validTime)
      problems.push(`file ${id}: version ${i + 1} is not dated after the one before it`);
  });
  return { problems, versions: history.length };
}

async function checkFiles(
  client: ContextClient,
  ids: ReadonlySet<ObjectId>,
  said: readonly Line[],
): Promise<FileFindings & { readonly files: number }> {
  const limit = pLimit(AT_ONCE);
  const reads = new Map<ObjectId, Set<string>>();
  for (const line of said) {
    if (line.kind !== 'call') continue;
    for (const { id, fileHash } of line.reads) reads.set(id, (reads.get(id) ?? new Set()).add(fileHash));
  }
  const all = [...new Set([...ids, ...reads.keys()])];
  const found = await Promise.all(all.map((id) => limit(() => checkFile(client, id, reads.get(id) ?? new Set()))));
  return {
    problems: found.flatMap(({ problems }) => problems),
    versions: found.reduce((sum, { versions }) => sum + versions, 0),
    files: all.length,
  };
}

/**
 * Checks that the database has the files of the disk, once the last process has resumed its
 * sessions and read every file.
 *
 * Only a session that knows a deleted file reports it, because reading a missing path makes no
 * object (§5.6). A file in no open session's index keeps its last version until one resumes.
 */
async function checkDisk(client: ContextClient, root: string, met: ReadonlySet<ObjectId>): Promise<DiskFindings> {
  const snapshot = await client.store.now();
  const looks = FILE_NAMES.map(async (name) => {
    const bytes = await readFile(join(root, name)).catch(() => undefined);
    const { id } = await client.files.locate(name, { mustExist: false });
    const stored = await snapshot.get(id);
    const [had, there] = [stored?.version.file_hash ?? null, bytes === undefined ? null : hashBytes(bytes)];
    if (bytes === undefined && !met.has(id)) return { problems: [], unmet: had === null ? 0 : 1 };
    const problems = had === there ? [] : [`${name}: on disk ${there}, in the database ${had}`];
    // A stub was never read, so its deletion is not reported.
    if (
      bytes === undefined &&
      stored !== undefined &&
      stored.marks.gone !== true &&
      (await historyOf(snapshot, id)).length > 1
    )
      problems.push(`${name}: not on disk, and its last version does not say so`);
    return { problems, unmet: 0 };
  });
  const found = await Promise.all(looks);
  return {
    problems: found.flatMap(({ problems }) => problems),
    unmet: found.reduce((sum, { unmet }) => sum + unmet, 0),
  };
}

async function checkContexts(
  client: ContextClient,
  contexts: readonly AcknowledgedContext[],
): Promise<readonly string[]> {
  const limit = pLimit(2);
  const looks = contexts.map((line) =>
    limit(async () => {
      const basis = {
        validTime: new Date(line.basis.validTime),
        ...(line.basis.txId === undefined ? {} : { txId: line.basis.txId }),
      };
      const again = await client.contextAsOf(line.session, basis);
      const same = again !== undefined && hashText(again.text) === line.text && again.record.step === line.step;
      if (same) return [];
      const marks = lineMarks(again?.text ?? '');
      const at = marks.findIndex((mark, i) => mark !== line.lines[i]);
      const shown = again?.text.split('\n')[at]?.slice(0, 200);
      return [
        `${line.session}: the context after step ${line.step} differs when rebuilt from ` +
          `${canonicalJson(line.basis)}; its line ${at} is ${shown}`,
      ];
    }),
  );
  return (await Promise.all(looks)).flat();
}

function spread<T>(of: readonly T[], count: number): readonly T[] {
  const every = Math.max(1, Math.ceil(of.length / count));
  return of.filter((_, i) => i % every === 0);
}

async function checkWith(
  client: ContextClient,
  xtdb: XtdbClient,
  place: Place,
  { sessions, resumed, others = [], said, contexts: most = CONTEXTS }: Run,
) {
  const problems: string[] = [];
  const found: SessionFindings[] = [];
  const met = new Set<ObjectId>();
  for (const session of sessions) {
    const own = said.filter((line) => 'session' in line && line.session === session);
    const findings = await checkSession(client.store, session, own, await callsOfChat(xtdb, session));
    found.push(findings);
    if (resumed.includes(session)) for (const id of findings.files) met.add(id);
  }
  const known = (await (await client.store.now()).sessions()).map(({ id }) => id);
  for (const id of known)
    if (!sessions.includes(id) && !others.includes(id))
      problems.push(`there is a session ${id} that was not begun by this run`);
  const waiting = await adoptableJournals(place.dataDir);
  if (waiting.length > 0) problems.push(`journals still wait: ${waiting.join(', ')}`);
  const told = new Map(
    said.flatMap((line) => (line.kind === 'call' ? [[line.id, line] as [ObjectId, AcknowledgedCall]] : [])),
  );
  const contexts = spread(
    said.flatMap((line) => (line.kind === 'context' ? [line] : [])),
    most,
  );
  const files = await checkFiles(client, new Set(found.flatMap(({ files: ids }) => ids)), said);
  problems.push(...found.flatMap((one) => one.problems), ...files.problems);
  const disk = await checkDisk(client, place.root, met);
  problems.push(...disk.problems, ...(await checkContexts(client, contexts)));
  const sum = (of: (one: SessionFindings) => number): number => found.reduce((total, one) => total + of(one), 0);
  const counts: CheckCounts = {
    sessions: sessions.length,
    steps: sum(({ steps }) => steps),
    calls: sum(({ calls }) => calls.length),
    untold: sum(({ calls }) => calls.filter((id) => !told.has(id)).length),
    files: files.files,
    unmet: disk.unmet,
    versions: sum(({ versions }) => versions) + files.versions,
    contexts: contexts.length,
  };
  return { problems, counts };
}

/** Checks everything that a run left in the database against the workload's acknowledgements. */
export async function checkEverything(
  place: Place,
  run: Run,
): Promise<{ readonly problems: readonly string[]; readonly counts: CheckCounts }> {
  const { dataDir, nodeUrl } = place;
  const node = new NodeUse({ dataDir, profile: 'rocksdb', idleExitSeconds: 600 }, { nodeUrl, nodeToken: undefined });
  const address = await node.address();
  const xtdb = new XtdbClient(address);
  const client = await ContextClient.create({
    address,
    roots: [place.root],
    cwd: place.root,
    filesystemId: place.filesystemId,
  });
  try {
    return await checkWith(client, xtdb, place, run);
  } finally {
    await client.close();
    await xtdb.close();
    await node.release();
  }
}
