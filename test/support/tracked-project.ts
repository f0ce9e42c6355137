import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CallReport } from '../../src/client/session/call-report.js';
import type { ContextClientOptions } from '../../src/client/session/client-options.js';
import type { ContextClient } from '../../src/client/session/context-client.js';
import type { ContextSession } from '../../src/client/session/context-session.js';
import { type FilesystemId, filesystemId, type ObjectId } from '../../src/objects/ids.js';
import { openClient, wholeRead } from './context.js';
import { historyOf } from './object-history.js';
import { until } from './until.js';

/** Returns a call as a tool reports it, with the given fields. */
export const callReport = (report: Partial<CallReport> = {}): CallReport => ({
  tool: 'read',
  args: {},
  status: 'ok',
  content: 'output',
  answer: (id) => `answer of ${id}`,
  ...report,
});

/**
 * Returns the contents of all versions of an object, oldest first; null for a version without one.
 */
export async function contentsOf(
  client: ContextClient,
  id: ObjectId | undefined,
): Promise<readonly (string | null | undefined)[]> {
  const history = await historyOf(await client.store.now(), id ?? '');
  return history.map(({ version }) => version?.content);
}

/** Waits for a number of versions of an object. */
export const versionsOf = (client: ContextClient, id: ObjectId | undefined, count: number) =>
  until(
    () => contentsOf(client, id),
    (all) => all.length >= count,
  );

/** A folder with a project, with a separate filesystem id, and the clients that track it. */
export class TrackedProject {
  readonly folder: string;
  readonly root: string;
  readonly host: FilesystemId = filesystemId(`fs-${randomUUID()}`);
  readonly #clients: ContextClient[] = [];

  private constructor(folder: string) {
    this.folder = folder;
    this.root = join(folder, 'project');
  }

  static async create(): Promise<TrackedProject> {
    const project = new TrackedProject(await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-tracking-'))));
    await mkdir(project.root);
    return project;
  }

  file(name: string): string {
    return join(this.root, name);
  }

  async open(options: Partial<ContextClientOptions> = {}): Promise<ContextClient> {
    const client = await openClient(this.root, {
      filesystemId: this.host,
      dataDir: join(this.folder, 'data'),
      ...options,
    });
    this.#clients.push(client);
    return client;
  }

  /** Makes a session read existing files. Waits for the database and for the tracker. */
  async read(
    client: ContextClient,
    session: ContextSession,
    ...paths: readonly string[]
  ): Promise<readonly ObjectId[]> {
    const before = client.tracking?.attached ?? 0;
    const readings = await Promise.all(paths.map((path) => wholeRead(client, path)));
    const recorded = await session.recordCall(callReport({ readings }));
    const { outcomes } = await recorded.applied;
    await until(
      () => client.tracking?.attached ?? 0,
      (attached) => attached >= before + outcomes.size || client.tracking === undefined,
    );
    return [...outcomes.keys()];
  }

  /**
   * Resolves once every earlier change has been decided. The tracker reads in rounds, one after
   * another.
   */
  async settled(client: ContextClient, session: ContextSession): Promise<void> {
    const name = `marker-${randomUUID()}`;
    await writeFile(this.file(name), 'before');
    const [id] = await this.read(client, session, name);
    await writeFile(this.file(name), 'after');
    await versionsOf(client, id, 2);
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map((client) => client.close()));
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** Returns a function that waits until a source was read at least `count` times after this call. */
export function looksOf(client: ContextClient): (path: string, count?: number) => Promise<unknown> {
  const seen: string[] = [];
  const plain = client.files.read.bind(client.files);
  client.files.read = async (source, signal) => {
    const reading = await plain(source, signal);
    seen.push(source.path);
    return reading;
  };
  return (path, count = 1) =>
    until(
      () => seen.filter((one) => one === path).length,
      (many) => many >= count,
    );
}
