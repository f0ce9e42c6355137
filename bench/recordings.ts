import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';

/** A synthetic recording. */
export interface MadeRecording {
  readonly path: string;
  readonly calls: number;
  readonly bytes: number;
}

const START = Date.UTC(2026, 0, 5, 9);

/** Returns the text of one version of a file in a recording. */
function fileText(file: number, version: number, bytes: number): string {
  const line = (n: number): string =>
    `export const value${n} = 'file ${file}, line ${n}, and words enough to fill it up to some length';\n`;
  let text = `export const version = ${version};\n`;
  for (let n = 1; text.length < bytes; n++) text += line(n);
  return text;
}

const gutter = (text: string): string =>
  text
    .replace(/\n$/, '')
    .split('\n')
    .map((line, i) => `${String(i + 1).padStart(6)}→${line}`)
    .join('\n');

/**
 * Writes a recording in the format of Claude Code, with at least the required calls and bytes. Each
 * turn reads and edits one of a few files.
 */
export async function makeRecording(
  path: string,
  wanted: { readonly calls: number; readonly bytes?: number },
  files: number,
  fileBytes: number,
): Promise<MadeRecording> {
  const out = createWriteStream(path);
  let bytes = 0;
  let lines = 0;
  let calls = 0;
  const add = async (type: 'user' | 'assistant', content: unknown, more: object = {}): Promise<void> => {
    const timestamp = new Date(START + ++lines * 1_000).toISOString();
    const message =
      type === 'assistant'
        ? { id: `m${lines}`, type: 'message', role: type, model: 'made', content }
        : { role: type, content };
    const record = {
      parentUuid: lines === 1 ? null : `u${lines - 1}`,
      isSidechain: false,
      userType: 'external',
      cwd: '/p',
      sessionId: 'made',
      version: '2.1.0',
      type,
      message,
      uuid: `u${lines}`,
      timestamp,
      ...more,
    };
    const line = `${JSON.stringify(record)}\n`;
    bytes += Buffer.byteLength(line);
    if (!out.write(line)) await once(out, 'drain');
  };
  const call = async (name: string, input: object, answer: string, twin: object): Promise<void> => {
    calls += 1;
    const id = `toolu_${String(calls).padStart(8, '0')}`;
    await add('assistant', [{ type: 'tool_use', id, name, input }]);
    await add('user', [{ type: 'tool_result', tool_use_id: id, content: answer }], { toolUseResult: twin });
  };
  const versions = new Map<number, number>();
  for (let turn = 0; calls < wanted.calls || bytes < (wanted.bytes ?? 0); turn++) {
    const file = turn % files;
    const version = versions.get(file) ?? 0;
    versions.set(file, version + 1);
    const filePath = `/p/src/file-${file}.ts`;
    const text = fileText(file, version, fileBytes);
    const [oldString, newString] = [`version = ${version};`, `version = ${version + 1};`];
    const numLines = text.split('\n').length - 1;
    await add('user', `Raise the version of file ${file}.`);
    await call('Read', { file_path: filePath }, gutter(text), {
      type: 'text',
      file: { filePath, content: text, numLines, startLine: 1, totalLines: numLines },
    });
    await call(
      'Edit',
      { file_path: filePath, old_string: oldString, new_string: newString },
      `The file ${filePath} has been updated.`,
      {
        filePath,
        oldString,
        newString,
        originalFile: text,
        structuredPatch: [],
        userModified: false,
        replaceAll: false,
      },
    );
    await add('assistant', [{ type: 'text', text: `Version ${version + 1} it is.` }]);
  }
  out.end();
  await finished(out);
  return { path, calls, bytes };
}
