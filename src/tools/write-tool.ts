import { z } from 'zod';
import { unreachableError } from '../filesystem/access/access.js';
import { writeSource } from '../filesystem/access/write-source.js';
import { defineTool, type Performed, type ToolSettings, type Work } from './define-tool.js';
import { headerLine } from './framing.js';
import { shownId } from './shown-id.js';
import type { Tool } from './tool.js';

const SHAPE = {
  path: z.string().min(1).describe('File to write; missing folders are made'),
  content: z.string().describe('The whole new text'),
};

function countLines(text: string): number {
  if (text === '') return 0;
  let lines = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < text.length - 1; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}

async function perform(path: string, content: string, work: Work): Promise<Performed> {
  const { files } = work.client;
  const file = await files.locate(path, { mustExist: false });
  if (!file.location.reachable) throw unreachableError(path);
  work.signal.throwIfAborted();
  const written = await writeSource(files.access.roots, file.location.path, content, { shown: path });
  const header = headerLine('file', { id: shownId(file.id, work), path: file.display, chars: content.length });
  const lines = countLines(content);
  const said = `${written.created ? 'Created' : 'Overwrote'} ${path}: ${lines} ${lines === 1 ? 'line' : 'lines'}, ${content.length} characters.`;
  return {
    content: said,
    // What stands on the disk now is what is indexed; the agent wrote it but did not read it [§5.6].
    readings: [{ source: file.source, reading: await files.read(file.source), activate: false }],
    show: () => `${header}\n${said}`,
    meta: { id: file.id, path: file.display, file_hash: written.fileHash, chars: content.length, created: written.created },
    effect: `The file ${path} was written.`,
  };
}

/** `write`: a whole file, atomically, indexed from the disk afterwards. */
export function writeTool(settings: ToolSettings): Tool {
  return defineTool(
    {
      name: 'write',
      description: 'Write a file: create it or replace all of it. Use edit to change a part.',
      shape: SHAPE,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
      perform: ({ path, content }, work) => perform(path, content, work),
    },
    settings,
  );
}
