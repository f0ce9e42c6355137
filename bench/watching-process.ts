/**
 * Tracks the files of a folder in a separate process and prints the cost as JSON. The figures are
 * milliseconds until all are attached, and the added bytes of resident memory and heap. Arguments:
 * the folder, and the number of files. Creates the files in folders of a hundred.
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { MountTable } from '../src/filesystem/access/mounts.js';
import { AllowedRoots } from '../src/filesystem/access/roots.js';
import { FileTracker } from '../src/filesystem/tracking/file-tracker.js';
import { canonicalPath, filesystemId } from '../src/objects/ids.js';
import { filesystemSource } from '../src/objects/source.js';
import { makeFolders } from './fixtures.js';

const PER_FOLDER = 100;
const [folder = '', count = '0'] = process.argv.slice(2);
const host = filesystemId('bench');

async function settledMemory(): Promise<NodeJS.MemoryUsage> {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await pause(200);
  }
  return process.memoryUsage();
}

const folders = await makeFolders(folder, 'watched', Math.ceil(Number(count) / PER_FOLDER), PER_FOLDER);
const access = {
  roots: await AllowedRoots.open([folder], []),
  mounts: new MountTable({ mappings: [], defaultFilesystemId: host }),
};
const before = await settledMemory();
const began = performance.now();
const tracker = new FileTracker(access, { onChange: async () => undefined });
const paths = folders.flatMap((parent) => Array.from({ length: PER_FOLDER }, (_, n) => join(parent, `file-${n}.ts`)));
await tracker.trackMany(
  paths.slice(0, Number(count)).map((path) => ({ source: filesystemSource(host, canonicalPath(path)) })),
);
const ms = performance.now() - began;
const after = await settledMemory();
const { attached } = tracker.status();
await tracker.close();
console.log(JSON.stringify({ ms, attached, rss: after.rss - before.rss, heap: after.heapUsed - before.heapUsed }));
