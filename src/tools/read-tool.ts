import { z } from 'zod';
import { defineTool, type ToolSettings } from './define-tool.js';
import { readFile } from './read-file.js';
import { readObject, readStored } from './read-object.js';
import type { Tool } from './tool.js';
import { ToolError } from './tool-error.js';

const SHAPE = {
  path: z.string().min(1).optional().describe('File to read'),
  id: z.string().min(1).optional().describe('Object to read instead of a path: file or tool call'),
  offset: z.int().min(1).optional().describe('First line, from 1 (default 1)'),
  limit: z.int().min(1).optional().describe('Number of lines (default: as many as fit)'),
  column: z.int().min(1).optional().describe('First character within that line (default 1)'),
  version: z.int().min(0).optional().describe('Transaction of an older version (default newest)'),
};

/** `read` [§3.3, decision D8]. */
export function readTool(settings: ToolSettings): Tool {
  return defineTool(
    {
      name: 'read',
      description: `Read a text file, or any known object by id: old tool output, older file versions. Shows up to ${settings.limits.lines} lines / ${settings.limits.chars} characters; continue with offset. A file read whole becomes active context.`,
      shape: SHAPE,
      annotations: { readOnlyHint: true, openWorldHint: false },
      perform: async ({ path, id, offset = 1, limit, column = 1, version }, work) => {
        const start = { offset, limit, column };
        if (id !== undefined) return readObject(id, version, start, work);
        if (path === undefined) throw new ToolError('invalid-arguments', 'read needs a path or an id.', 'For example: read path=README.md');
        const file = await work.client.files.locate(path, { mustExist: false });
        if (version !== undefined) return readStored(file.id, version, start, work);
        return readFile(file, { start, call: { path } }, work);
      },
    },
    settings,
  );
}
