import { z } from 'zod';
import { writeSource } from '../filesystem/access/write-source.js';
import { applyEdits, type Edit, type EditedText } from './apply-edits.js';
import { defineTool, type Performed, type ToolSettings, type Work } from './define-tool.js';
import { headerLine } from './framing.js';
import { type Readable, requireReadable } from './read-file.js';
import { shownId } from './shown-id.js';
import type { Tool } from './tool.js';
import { ToolError } from './tool-error.js';

const SHAPE = {
  path: z.string().min(1).describe('File to change'),
  edits: z
    .array(
      z.object({
        oldText: z.string().describe('Text that stands exactly once in the file'),
        newText: z.string().describe('Text to put in its place'),
      }),
    )
    .min(1)
    .max(200)
    .describe('Replacements, each matched against the original'),
};

function wholeText(reading: Readable, path: string): string {
  if (reading.kind === 'text') return reading.content;
  if (reading.chunks === undefined)
    throw new ToolError('not-text', `${path} is over 64 MiB and cannot be edited.`, 'Change it with another program.');
  return [...reading.chunks()].join('');
}

function linesText({ changed }: EditedText): string {
  const ranges = changed
    .slice(0, 20)
    .map(({ firstLine, lastLine }) => (firstLine === lastLine ? `${firstLine}` : `${firstLine}-${lastLine}`));
  return `${changed.length === 1 && ranges[0]?.includes('-') !== true ? 'line' : 'lines'} ${ranges.join(', ')}${changed.length > 20 ? ', ...' : ''}`;
}

async function perform(path: string, edits: readonly Edit[], work: Work): Promise<Performed> {
  const { files } = work.client;
  const file = await files.locate(path, { mustExist: false });
  const before = requireReadable(await files.read(file.source, work.signal), file, path);
  const original = wholeText(before, path);
  const edited = applyEdits(original, edits, path);
  work.signal.throwIfAborted();
  // Whoever changed the file since it was read must not lose that change.
  const written = await writeSource(files.access.roots, file.location.path, edited.text, { expected: before.fileHash, shown: path });
  const header = headerLine('file', { id: shownId(file.id, work), path: file.display, chars: edited.text.length });
  const said = `Edited ${path}: ${edits.length} ${edits.length === 1 ? 'replacement' : 'replacements'}, now ${linesText(edited)}.`;
  return {
    content: said,
    readings: [{ source: file.source, reading: await files.read(file.source), activate: false }],
    show: () => `${header}\n${said}`,
    meta: { id: file.id, path: file.display, file_hash: written.fileHash, chars: edited.text.length },
    effect: `The file ${path} was changed.`,
  };
}

/** `edit`: exact replacements, all or none, indexed from the disk afterwards. */
export function editTool(settings: ToolSettings): Tool {
  return defineTool(
    {
      name: 'edit',
      description: 'Replace exact texts in a file, all or none. Each oldText must stand exactly once; line ends are kept.',
      shape: SHAPE,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
      perform: ({ path, edits }, work) => perform(path, edits, work),
    },
    settings,
  );
}
