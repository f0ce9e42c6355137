import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Larger files are data rather than texts that agents read. */
const MOST_BYTES = 4_000_000;
/** Parts of one file, so that large files are not most of the texts. */
const PARTS = 8;
const SHORTEST = 200;

async function* filesBelow(folder: string): AsyncGenerator<string> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path);
    else if (entry.isFile()) yield path;
  }
}

async function readText(path: string): Promise<string> {
  const bytes = (await stat(path)).size > MOST_BYTES ? Buffer.alloc(0) : await readFile(path);
  const text = bytes.includes(0) ? '' : bytes.toString('utf8');
  return text.includes('\uFFFD') ? '' : text;
}

/**
 * Yields the texts of files in some folders, each once, cut as agents read them. The order of the
 * files is random and repeatable.
 */
export async function* realTexts(
  folders: readonly string[],
  { random, size }: { readonly random: () => number; readonly size: () => number },
): AsyncGenerator<string> {
  const paths: string[] = [];
  for (const folder of folders) for await (const path of filesBelow(folder)) paths.push(path);
  const ordered = paths
    .sort()
    .map((path) => ({ path, at: random() }))
    .sort((a, b) => a.at - b.at);
  const seen = new Set<string>();
  for (const { path } of ordered) {
    const text = await readText(path).catch(() => '');
    for (let [at, part] = [0, 0]; part < PARTS && at < text.length; part += 1) {
      const piece = text.slice(at, at + size()).toWellFormed();
      at += piece.length;
      if (piece.length < SHORTEST || seen.has(piece)) continue;
      seen.add(piece);
      yield piece;
    }
  }
}
