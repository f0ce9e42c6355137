import { posix } from 'node:path';
import type { JsonObject } from '../../../values/json-object.js';
import { ownMember } from '../../../values/own-member.js';
import { numberAt, objectAt, textAt } from '../entries/fields.js';
import { type FileEvidence, fileEvidence, fileText, namedFile, printedFile, wholeFile } from '../entries/shown-file.js';
import type { ShownFile } from '../neutral-session.js';

/** Reads the evidence about files in a call's result. */
type Reader = (args: JsonObject, output: string) => FileEvidence;

const pathOf = (args: JsonObject): string | undefined =>
  ['file_path', 'absolute_path', 'path', 'dir_path']
    .map((name) => textAt(args, name))
    .find((path) => path !== undefined && path !== '');

const PART = new RegExp(
  '^IMPORTANT: The file content has been truncated\\.[\\s\\S]*?' +
    'Showing lines (\\d+)-(\\d+) of (\\d+) total lines[\\s\\S]*?--- FILE CONTENT \\(truncated\\) ---\\n',
);

const readFile: Reader = (args, output) => {
  const path = pathOf(args);
  if (path === undefined) return {};
  const part = PART.exec(output);
  if (part !== null) {
    const range = { start: Math.max(1, Number(part[1])), total: Number(part[3]), whole: false };
    return { files: [fileText(path, output.slice(part[0].length), range)] };
  }
  const first = numberAt(args, 'start_line') ?? (numberAt(args, 'offset') ?? 0) + 1;
  if (first <= 1) return { files: [wholeFile(path, output, 'after')] };
  return { files: [fileText(path, output, { start: Math.floor(first), whole: false })] };
};

/** Reads a result with several files, each after a line `--- PATH ---`. */
const readMany: Reader = (_args, output) => {
  const body = output.replace(/\n?--- End of content ---\s*$/, '');
  const heads = [...body.matchAll(/^--- (.+) ---\n\n/gm)];
  const files = heads.map((head, index) => {
    const from = head.index + head[0].length;
    const text = body.slice(from, heads[index + 1]?.index ?? body.length).replace(/\n\n$/, '');
    const cut = /^\[WARNING: This file was truncated/.test(text);
    return cut ? namedFile(head[1] ?? '') : wholeFile(head[1] ?? '', text, 'after');
  });
  return fileEvidence(files);
};

const listDirectory: Reader = (args, output) => {
  const [header = '', ...lines] = output.split('\n');
  const folder = /^Directory listing for (.+):$/.exec(header)?.[1] ?? pathOf(args);
  if (folder === undefined) return {};
  const names = lines.filter((line) => line !== '' && !line.startsWith('('));
  return {
    listed: names.map((line) =>
      posix.join(folder, line.startsWith('[DIR] ') ? `${line.slice(6)}/` : line.replace(/ \(\d+ bytes\)$/, '')),
    ),
  };
};

const glob: Reader = (_args, output) => {
  const [header = '', ...lines] = output.split('\n');
  return /^Found \d+ (?:file|match)/.test(header)
    ? { listed: lines.filter((line) => line !== '' && !/^[[(]/.test(line)) }
    : {};
};

/** Reads the report on a command, which includes the command's output. */
const shell: Reader = (args, output) => {
  const own = /(?:^|\n)Output: ([\s\S]*?)(?:\n(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): |$)/.exec(
    output,
  )?.[1];
  const dir = /(?:^|\n)Directory: (.+)/.exec(output)?.[1];
  const printed =
    own === undefined || own === '(empty)' ? undefined : printedFile(textAt(args, 'command') ?? '', `${own}\n`);
  if (printed === undefined) return {};
  return {
    files: [{ ...printed, path: dir === undefined || dir === '(root)' ? printed.path : posix.join(dir, printed.path) }],
  };
};

const READERS: Readonly<Record<string, Reader>> = {
  read_file: readFile,
  read_many_files: readMany,
  list_directory: listDirectory,
  glob,
  run_shell_command: shell,
};

/**
 * Returns the evidence about files in a call. `resultDisplay`, which Gemini CLI shows to the
 * person, has the whole text of a changed file before and after the change. Otherwise the call's
 * output is read.
 */
export function geminiEvidence(tool: string, call: JsonObject, output: string): FileEvidence {
  const args = objectAt(call, 'args') ?? {};
  const view = objectAt(call, 'resultDisplay');
  const before = textAt(view, 'originalContent');
  const after = textAt(view, 'newContent');
  const path = pathOf(args) ?? textAt(view, 'filePath') ?? textAt(view, 'fileName');
  if (path !== undefined && (before !== undefined || after !== undefined)) {
    const known = before === undefined || before === '' ? [] : [wholeFile(path, before, 'before')];
    return { files: after === undefined ? known : [...known, wholeFile(path, after, 'after')] };
  }
  return ownMember(READERS, tool)?.(args, output) ?? {};
}

/** Returns the files that a prompt includes (`@path`). */
export function referencedFiles(text: string): readonly ShownFile[] {
  const block = /--- Content from referenced files ---\s*\n([\s\S]*?)(?:\n--- End of content ---|$)/.exec(text)?.[1];
  if (block === undefined) return [];
  const heads = [...block.matchAll(/(?:^|\n)Content from @?(.+):\n/g)];
  return heads.map((head, index) => {
    const content = block.slice(head.index + head[0].length, heads[index + 1]?.index ?? block.length);
    return wholeFile(head[1] ?? '', content, 'before');
  });
}
