import { fileURLToPath } from 'node:url';
import type { Json } from '../objects/canonical-json.js';
import { aliasesFor } from '../tools/argument-aliases.js';

type Args = { readonly [key: string]: Json };

const SINGLE = ['path', 'notebook_path', 'notebookPath', 'uri', 'source', 'destination', 'old_path', 'new_path'] as const;
const SEVERAL = ['paths', 'files', 'file_paths', 'filePaths', 'edits'] as const;

function plainPath(value: unknown): readonly string[] {
  if (typeof value !== 'string' || value === '' || value.includes('\0')) return [];
  if (!value.startsWith('file://')) return [value];
  try {
    return [fileURLToPath(value)];
  } catch {
    return [];
  }
}

function listed(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((entry: unknown) => {
    if (typeof entry !== 'object' || entry === null) return plainPath(entry);
    const { path, file_path: filePath } = entry as Readonly<Record<string, unknown>>;
    return [...plainPath(path), ...plainPath(filePath)];
  });
}

/** Arguments under the names of our own `read`: `path`, `offset`, `limit`. */
export function normalArgs(args: Args): Readonly<Record<string, unknown>> {
  const given: Record<string, unknown> = { ...args };
  aliasesFor('read')(given);
  return given;
}

/** The paths that a call names in its arguments, each once, as the agent wrote them. */
export function argumentPaths(args: Args): readonly string[] {
  const given = normalArgs(args);
  const single = SINGLE.flatMap((name) => plainPath(given[name]));
  const several = SEVERAL.flatMap((name) => listed(given[name]));
  return [...new Set([...single, ...several])];
}

const PATCH_LINE = /^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$/;
const DIFF_LINE = /^(?:\+\+\+|---) (?:[ab]\/)?([^\t]+)/;

function patchTexts(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return Array.isArray(value) ? value.flatMap(patchTexts) : [];
}

/** The files that a patch in a call's arguments names. */
export function patchPaths(args: Args): readonly string[] {
  const texts = Object.values(args).flatMap(patchTexts);
  const named = texts.flatMap((text) =>
    text.split('\n').flatMap((line) => {
      const path = (PATCH_LINE.exec(line) ?? DIFF_LINE.exec(line))?.[1]?.trim();
      return path === undefined || path === '/dev/null' ? [] : [path];
    }),
  );
  return [...new Set([...argumentPaths(args), ...named])];
}
