import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { systemCode, unlessMissing } from '../process/system-error.js';

/** The log of a node. */
export interface LogFile {
  /** Appends whole lines. Never throws, because a full disk must not end the node's supervisor. */
  write(text: string): void;
  close(): void;
}

/**
 * Opens a log that rotates beyond `maxBytes` and keeps `kept` older files as `<path>.1` (the
 * latest) and so on.
 */
export function openLogFile(
  path: string,
  limits: { readonly maxBytes: number; readonly kept: number } = { maxBytes: 5_000_000, kept: 3 },
): LogFile {
  let fd: number | undefined = openSync(path, 'a', 0o600);
  let size = fstatSync(fd).size;
  const rotate = (): void => {
    if (fd !== undefined) closeSync(fd);
    fd = undefined;
    for (let n = limits.kept - 1; n >= 0; n--) {
      try {
        renameSync(n === 0 ? path : `${path}.${n}`, `${path}.${n + 1}`);
      } catch (error) {
        if (systemCode(error) !== 'ENOENT') throw error;
      }
    }
    fd = openSync(path, 'a', 0o600);
    size = 0;
  };
  return {
    write(text) {
      try {
        if (size > limits.maxBytes) rotate();
        fd ??= openSync(path, 'a', 0o600);
        size += writeSync(fd, text);
      } catch {
        // A log with missing lines is better than a dead supervisor.
      }
    },
    close() {
      if (fd !== undefined) closeSync(fd);
      fd = undefined;
    },
  };
}

const TAIL_BYTES = 1_000_000;

/**
 * Returns the last lines of a log file, at most `lines` and one megabyte; undefined if it does not
 * exist.
 */
export async function readLogTail(path: string, lines: number): Promise<string | undefined> {
  const file = await unlessMissing(open(path, 'r'));
  if (file === undefined) return undefined;
  try {
    const { size } = await file.stat();
    const start = Math.max(0, size - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start);
    const all = buffer.toString('utf8', 0, bytesRead).split('\n');
    // A line break at the end does not begin another line.
    if (all.at(-1) === '') all.pop();
    return all.slice(-lines).join('\n');
  } finally {
    await file.close();
  }
}
