import { posix } from 'node:path';
import { numberAt, objectAt, textAt } from '../entries/fields.js';
import { printedFile } from '../evidence/printed-file.js';
import { wholeFile } from '../evidence/shown-file.js';
import type { JsonObject } from '../json/json-text.js';
import type { ShownFile } from '../neutral-session.js';

/** What a call of Gemini CLI shows of files. */
export interface GeminiEvidence {
  readonly files?: ShownFile[];
  readonly listed?: string[];
}

type Reader = (args: JsonObject, output: string) => GeminiEvidence;

const pathOf = (args: JsonObject): string | undefined =>
  ['file_path', 'absolute_path', 'path', 'dir_path'].map((name) => textAt(args, name)).find((path) => path !== undefined && path !== '');

const PART =
  /^IMPORTANT: The file content has been truncated\.[\s\S]*?Showing lines (\d+)-(\d+) of (\d+) total lines[\s\S]*?--- FILE CONTENT \(truncated\) ---\n/;

const readFile: Reader = (args, output) => {
  const path = pathOf(args);
  if (path === undefined) return {};
  const part = PART.exec(output);
  if (part !== null) {
    const place = { start_line: Math.max(1, Number(part[1])), total_lines: Number(part[3]) };
    return { files: [{ path, moment: 'after', text: output.slice(part[0].length), whole: false, ...place }] };
  }
  const first = numberAt(args, 'start_line') ?? (numberAt(args, 'offset') ?? 0) + 1;
  if (first <= 1) return { files: [wholeFile(path, output, 'after')] };
  return { files: [{ path, moment: 'after', text: output, whole: false, start_line: Math.floor(first) }] };
};

/** Several files in one answer, each behind `--- PATH ---`. */
const readMany: Reader = (_args, output) => {
  const body = output.replace(/\n?--- End of content ---\s*$/, '');
  const heads = [...body.matchAll(/^--- (.+) ---\n\n/gm)];
  const files = heads.map((head, index): ShownFile => {
    const from = head.index + head[0].length;
    const text = body.slice(from, heads[index + 1]?.index ?? body.length).replace(/\n\n$/, '');
    const cut = /^\[WARNING: This file was truncated/.test(text);
    return { path: head[1] ?? '', moment: 'after', ...(cut ? { whole: false } : { text, whole: true }) };
  });
  return files.length === 0 ? {} : { files };
};

const listDirectory: Reader = (args, output) => {
  const [header = '', ...lines] = output.split('\n');
  const folder = /^Directory listing for (.+):$/.exec(header)?.[1] ?? pathOf(args);
  if (folder === undefined) return {};
  const names = lines.filter((line) => line !== '' && !line.startsWith('('));
  return {
    listed: names.map((line) => posix.join(folder, line.startsWith('[DIR] ') ? `${line.slice(6)}/` : line.replace(/ \(\d+ bytes\)$/, ''))),
  };
};

const glob: Reader = (_args, output) => {
  const [header = '', ...lines] = output.split('\n');
  return /^Found \d+ (?:file|match)/.test(header) ? { listed: lines.filter((line) => line !== '' && !/^[[(]/.test(line)) } : {};
};

/** What a command printed, out of the report on it. */
const shell: Reader = (args, output) => {
  const own = /(?:^|\n)Output: ([\s\S]*?)(?:\n(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): |$)/.exec(output)?.[1];
  const dir = /(?:^|\n)Directory: (.+)/.exec(output)?.[1];
  const printed = own === undefined || own === '(empty)' ? undefined : printedFile(textAt(args, 'command') ?? '', `${own}\n`);
  if (printed === undefined) return {};
  return { files: [{ ...printed, path: dir === undefined || dir === '(root)' ? printed.path : posix.join(dir, printed.path) }] };
};

const READERS: Readonly<Record<string, Reader>> = {
  read_file: readFile,
  read_many_files: readMany,
  list_directory: listDirectory,
  glob,
  run_shell_command: shell,
};

/** Of the answer to a call, and of the view for people beside it, which has a file whole before and after a change. */
export function geminiEvidence(tool: string, call: JsonObject, output: string): GeminiEvidence {
  const args = objectAt(call, 'args') ?? {};
  const view = objectAt(call, 'resultDisplay');
  const before = textAt(view, 'originalContent');
  const after = textAt(view, 'newContent');
  const path = pathOf(args) ?? textAt(view, 'filePath') ?? textAt(view, 'fileName');
  if (path !== undefined && (before !== undefined || after !== undefined)) {
    const known = before === undefined || before === '' ? [] : [wholeFile(path, before, 'before')];
    return { files: after === undefined ? known : [...known, wholeFile(path, after, 'after')] };
  }
  return Object.hasOwn(READERS, tool) ? (READERS[tool]?.(args, output) ?? {}) : {};
}

/** Files that the text of a prompt was given along with (`@path`). */
export function referencedFiles(text: string): readonly ShownFile[] {
  const block = /--- Content from referenced files ---\s*\n([\s\S]*?)(?:\n--- End of content ---|$)/.exec(text)?.[1];
  if (block === undefined) return [];
  const heads = [...block.matchAll(/(?:^|\n)Content from @?(.+):\n/g)];
  return heads.map((head, index) => {
    const content = block.slice(head.index + head[0].length, heads[index + 1]?.index ?? block.length);
    return wholeFile(head[1] ?? '', content, 'before');
  });
}
