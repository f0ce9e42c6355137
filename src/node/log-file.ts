import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { systemCode, unlessMissing } from '../process/system-error.js';

/** The log of a node. */
export interface LogFile {
  /** Appends whole lines; never throws, because a full disk must not end the process that watches over the node. */
  write(text: string): void;
  close(): void;
}

/** Opens a log that starts anew beyond `maxBytes`, keeping `kept` older files as `<path>.1` (the latest) and so on. */
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
        // Lost lines are the lesser harm.
      }
    },
    close() {
      if (fd !== undefined) closeSync(fd);
      fd = undefined;
    },
  };
}

const TAIL_BYTES = 1_000_000;

/** The last lines of a log file, at most `lines` and at most one megabyte; undefined when there is no such file. */
export async function readLogTail(path: string, lines: number): Promise<string | undefined> {
  const file = await unlessMissing(open(path, 'r'));
  if (file === undefined) return undefined;
  try {
    const { size } = await file.stat();
    const start = Math.max(0, size - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start);
    const all = buffer.toString('utf8', 0, bytesRead).split('\n');
    // A file that ends with a line break has no line after it.
    if (all.at(-1) === '') all.pop();
    return all.slice(-lines).join('\n');
  } finally {
    await file.close();
  }
}
