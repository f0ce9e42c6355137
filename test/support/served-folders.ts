import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect } from '@jest/globals';
import { HarnessApi } from './harness-api.js';
import { type Serve, startServe, temporaryRoot } from './mcp-clients.js';

/** Texts of files by path. */
type Files = Readonly<Record<string, string>>;

/** A `palimpsest serve` for the tests of one file. */
export interface ServedFolders {
  readonly serve: Pick<Serve, 'url' | 'token'>;
  /** A harness connected to it. */
  readonly api: HarnessApi;
  /** The folders; the first one is the served one. */
  readonly roots: readonly string[];
  readonly root: string;
}

async function makeFolder(files: Files) {
  const folder = await temporaryRoot();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder.root, path)), { recursive: true });
    await writeFile(join(folder.root, path), text);
  }
  return folder;
}

/**
 * Serves new folders with these files during the tests of the calling file. The server must exit
 * cleanly; the folders are removed.
 */
export function servedFolders({
  folders = [{}],
  args = () => [],
}: {
  readonly folders?: readonly Files[];
  readonly args?: (roots: readonly string[]) => readonly string[];
} = {}): ServedFolders {
  let made: readonly Awaited<ReturnType<typeof makeFolder>>[] = [];
  let running: Serve | undefined;
  const there = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('the server is available only while tests run');
    return value;
  };
  const serve = {
    get url() {
      return there(running).url;
    },
    get token() {
      return there(running).token;
    },
  };
  const api = new HarnessApi(serve);
  beforeAll(async () => {
    made = await Promise.all(folders.map(makeFolder));
    const roots = made.map(({ root }) => root);
    running = await startServe(args(roots), roots[0]);
  });
  afterAll(async () => {
    await api.close();
    expect(await running?.close()).toBe(0);
    await Promise.all(made.map(({ remove }) => remove()));
  });
  return {
    serve,
    api,
    get roots() {
      return made.map(({ root }) => root);
    },
    get root() {
      return there(made[0]).root;
    },
  };
}
